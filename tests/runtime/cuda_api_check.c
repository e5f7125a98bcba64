/* The declarations of runtime/cuda/api.h beside the real header: this file compiles or it does not.
 * Built where CUDA's headers are found; run, it only says which they were. */
#include <stddef.h>
#include <stdio.h>

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "runtime/cuda/api.h"

/* A function of the one type can be called through a pointer to the other. */
#define CHECK_ENTRY(name, parameters)                                                    \
    _Static_assert(                                                                      \
        __builtin_types_compatible_p(tarn_cuda_code parameters, __typeof__(cuda##name)), \
        "cuda" #name);
TARN_CUDA_ENTRIES(CHECK_ENTRY)
#if CUDART_VERSION >= 12050
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations" /* one of them, since CUDA 13 */
TARN_CUDA_LOOKUP_ENTRIES(CHECK_ENTRY)
#pragma GCC diagnostic pop
#endif
#if CUDART_VERSION >= 12080
TARN_CUDA_LIBRARY_ENTRIES(CHECK_ENTRY)
#endif
_Static_assert(__builtin_types_compatible_p(const char *(tarn_cuda_code),
                                            __typeof__(cudaGetErrorString)),
               "");

/* cuda.h gives the names to their newest versions, which is what the runtime is asked for. */
#define CHECK_DRIVER(name, parameters)                                                            \
    _Static_assert(__builtin_types_compatible_p(tarn_cuda_code parameters, __typeof__(cu##name)), \
                   "cu" #name);
TARN_CUDA_DRIVER_ENTRIES(CHECK_DRIVER)

#define CHECK_VALUE(ours, theirs) _Static_assert((int)TARN_CUDA_##ours == (int)theirs, #theirs);
CHECK_VALUE(OUT_OF_MEMORY, cudaErrorMemoryAllocation)
CHECK_VALUE(NOT_INITIALIZED, cudaErrorInitializationError)
CHECK_VALUE(UNLOADING, cudaErrorCudartUnloading)
CHECK_VALUE(INSUFFICIENT_DRIVER, cudaErrorInsufficientDriver)
CHECK_VALUE(NO_DEVICE, cudaErrorNoDevice)
CHECK_VALUE(ECC_UNCORRECTABLE, cudaErrorECCUncorrectable)
CHECK_VALUE(NVLINK_UNCORRECTABLE, cudaErrorNvlinkUncorrectable)
CHECK_VALUE(NOT_READY, cudaErrorNotReady)
CHECK_VALUE(ILLEGAL_ADDRESS, cudaErrorIllegalAddress)
CHECK_VALUE(LAUNCH_TIMEOUT, cudaErrorLaunchTimeout)
CHECK_VALUE(CONTEXT_IS_DESTROYED, cudaErrorContextIsDestroyed)
CHECK_VALUE(ASSERT, cudaErrorAssert)
CHECK_VALUE(HARDWARE_STACK_ERROR, cudaErrorHardwareStackError)
CHECK_VALUE(ILLEGAL_INSTRUCTION, cudaErrorIllegalInstruction)
CHECK_VALUE(MISALIGNED_ADDRESS, cudaErrorMisalignedAddress)
CHECK_VALUE(INVALID_ADDRESS_SPACE, cudaErrorInvalidAddressSpace)
CHECK_VALUE(INVALID_PC, cudaErrorInvalidPc)
CHECK_VALUE(LAUNCH_FAILURE, cudaErrorLaunchFailure)
CHECK_VALUE(NOT_SUPPORTED, cudaErrorNotSupported)
CHECK_VALUE(MPS_CLIENT_TERMINATED, cudaErrorMpsClientTerminated)
CHECK_VALUE(EXTERNAL_DEVICE, cudaErrorExternalDevice)
#if CUDART_VERSION >= 13000
CHECK_VALUE(CONTAINED, cudaErrorContained)
CHECK_VALUE(TENSOR_MEMORY_LEAK, cudaErrorTensorMemoryLeak)
#endif
CHECK_VALUE(STREAM_NON_BLOCKING, cudaStreamNonBlocking)
CHECK_VALUE(EVENT_TIMING, cudaEventDefault)
CHECK_VALUE(EVENT_NO_TIMING, cudaEventDisableTiming)
CHECK_VALUE(RECORD_PLAIN, cudaEventRecordDefault)
CHECK_VALUE(RECORD_EXTERNAL, cudaEventRecordExternal)
CHECK_VALUE(CAPTURE_GLOBAL, cudaStreamCaptureModeGlobal)
CHECK_VALUE(CAPTURE_RELAXED, cudaStreamCaptureModeRelaxed)
CHECK_VALUE(CAPTURE_THREAD_LOCAL, cudaStreamCaptureModeThreadLocal)
CHECK_VALUE(CAPTURE_NONE, cudaStreamCaptureStatusNone)
CHECK_VALUE(COPY_BY_ADDRESSES, cudaMemcpyDefault)
CHECK_VALUE(HOST_PORTABLE, cudaHostRegisterPortable)
CHECK_VALUE(HOST_PORTABLE, cudaHostAllocPortable)
CHECK_VALUE(MULTIPROCESSORS, cudaDevAttrMultiProcessorCount)
CHECK_VALUE(RELEASE_THRESHOLD, cudaMemPoolAttrReleaseThreshold)
CHECK_VALUE(PINNED_ALLOCATION, cudaMemAllocationTypePinned)
CHECK_VALUE(LOCATION_IS_DEVICE, cudaMemLocationTypeDevice)
CHECK_VALUE(NODE_PRIORITIES, cudaGraphInstantiateFlagUseNodePriority)

#define CHECK_MEMBER(ours, our_member, theirs, their_member)                               \
    _Static_assert(offsetof(ours, our_member) == offsetof(theirs, their_member) &&         \
                       sizeof((ours *)0)->our_member == sizeof((theirs *)0)->their_member, \
                   #theirs "." #their_member);
#define CHECK_ATTRIBUTES(our, their) \
    CHECK_MEMBER(struct tarn_cuda_pointer_attributes, our, struct cudaPointerAttributes, their)
CHECK_ATTRIBUTES(type, type)
CHECK_ATTRIBUTES(device, device)
CHECK_ATTRIBUTES(device_pointer, devicePointer)
CHECK_ATTRIBUTES(host_pointer, hostPointer)
_Static_assert(sizeof(struct tarn_cuda_pointer_attributes) >= sizeof(struct cudaPointerAttributes),
               "room for what the runtime writes");

#define CHECK_PROPS(our, their) \
    CHECK_MEMBER(struct tarn_cuda_pool_props, our, struct cudaMemPoolProps, their)
CHECK_PROPS(allocation_type, allocType)
CHECK_PROPS(handle_types, handleTypes)
CHECK_PROPS(location_type, location.type)
CHECK_PROPS(location_id, location.id)
CHECK_PROPS(security_attributes, win32SecurityAttributes)
_Static_assert(sizeof(struct tarn_cuda_pool_props) == sizeof(struct cudaMemPoolProps),
               "as much as the runtime reads");

#define CHECK_LAUNCH(our, their) \
    CHECK_MEMBER(struct tarn_cuda_launch, our, cudaLaunchConfig_t, their)
CHECK_LAUNCH(blocks, gridDim)
CHECK_LAUNCH(threads, blockDim)
CHECK_LAUNCH(shared_memory_bytes, dynamicSmemBytes)
CHECK_LAUNCH(stream, stream)
CHECK_LAUNCH(attributes, attrs)
CHECK_LAUNCH(attributes_count, numAttrs)
_Static_assert(sizeof(struct tarn_cuda_launch) == sizeof(cudaLaunchConfig_t), "launch");

int main(void)
{
    printf("the declarations agree with CUDA %d.%d\n", CUDART_VERSION / 1000,
           CUDART_VERSION % 1000 / 10);
    return 0;
}
