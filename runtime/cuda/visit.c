/* Surrounds every call of CUDA: sets the device's context and the relaxed capture mode in the
 * thread, and restores both afterwards. Source: CUDA Driver API, "Context Management"; CUDA Runtime
 * API, cudaThreadExchangeStreamCaptureMode. Cost: three cheap calls of CUDA, two more in a thread
 * whose current device is another one. */
#include "device.h"

/* A bit for each kernel in this thread that has not returned, the latest in the lowest bit: was the
 * context pushed for it? It is current already in threads that use the device's own context. */
static _Thread_local uint64_t pushed;

struct tarn_cuda_visit tarn_cuda_enter(struct tarn_cuda *cuda)
{
    struct tarn_cuda_visit visit = {.cuda = cuda, .api = &cuda->api};
    tarn_cuda_context current = NULL;
    visit.code = visit.api->CtxGetCurrent(&current);
    if (!visit.code && current != cuda->context) {
        visit.code = visit.api->CtxPushCurrent(cuda->context);
        visit.is_lent = !visit.code;
    }
    if (visit.code) return visit;
    visit.mode = TARN_CUDA_CAPTURE_RELAXED;
    visit.code = visit.api->ThreadExchangeStreamCaptureMode(&visit.mode);
    visit.is_relaxed = !visit.code;
    return visit;
}

/* The contract says that capture_end fails after any failure in between, CUDA does not: so failures
 * on the capturing thread are recorded here. */
static void spoil_captures(struct tarn_cuda *cuda, tarn_cuda_code code)
{
    pthread_mutex_lock(&cuda->lock);
    for (struct tarn_cuda_capture *capture = cuda->captures; capture; capture = capture->next) {
        if (pthread_equal(capture->thread, pthread_self()) && !capture->failure)
            capture->failure = code;
    }
    pthread_mutex_unlock(&cuda->lock);
}

int tarn_cuda_leave(struct tarn_cuda_visit *visit)
{
    tarn_cuda_context own;
    bool has_failed = visit->code;
    if (visit->is_relaxed && visit->api->ThreadExchangeStreamCaptureMode(&visit->mode))
        has_failed = true;
    if (has_failed) visit->api->GetLastError();
    if (visit->is_lent) visit->api->CtxPopCurrent(&own);
    if (visit->code) spoil_captures(visit->cuda, visit->code);
    return (int)visit->code;
}

void tarn_cuda_lend(struct tarn_cuda *cuda)
{
    tarn_cuda_context current = NULL;
    bool is_there = !cuda->api.CtxGetCurrent(&current) && current == cuda->context;
    pushed = pushed << 1 | (!is_there && !cuda->api.CtxPushCurrent(cuda->context));
}

void tarn_cuda_take_back(struct tarn_cuda *cuda)
{
    tarn_cuda_context own;
    if (pushed & 1) cuda->api.CtxPopCurrent(&own);
    pushed >>= 1;
}
