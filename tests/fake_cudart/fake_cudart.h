/* How tests steer the stand-in for the CUDA runtime. It is a shared object with CUDA's soname, so
 * Tarn loads it as it would load the real one; these functions are found beside CUDA's with dlsym.
 *
 * The stand-in runs what is enqueued on threads of the host, in a random order that streams, events
 * and captured graphs allow. It looks at every call: handles that are dead, a capture synchronised
 * inside or mixed with events of another time, something destroyed while it is in use. What CUDA
 * would refuse is refused with CUDA's code and counted as a violation (but for a fork left
 * unjoined, which everybody learns at the capture's end); what CUDA would take but Tarn's device
 * table forbids is only counted. Nothing here measures a GPU.
 *
 * Where CUDA's documents leave it open, the stand-in does what is hardest for its user. Streams,
 * events and memory belong to the device that was current when they were made; kernels, host
 * functions and graphs are launched with the stream's device current; a call in a thread without a
 * context makes the one of the current device, which is device 0 at first. While a thread captures,
 * calls that its mode forbids to others fail and spoil the capture. cudaFree waits for all work of
 * the device. A copy from or to host memory that is not registered is over when the call returns.
 * Host functions run one at a time. Streams share a few channels: work of a channel begins in the
 * order in which it was enqueued, whatever its stream; launching a kernel or a graph waits while
 * the channel holds 1021 of them. Kernels follow the addresses of a peer only where access was
 * enabled.
 *
 * Without a test around it, the environment says the same: FAKE_CUDART is a list of words:
 * seed=N workers=N devices=N driver=N host capacity=BYTES fail=ENTRY:CALLS:CODE[:sticky] strict
 * tell; strict: a violation ends the process with code 96 when it exits; tell: the process then
 * says which version of the runtime it used. */
#ifndef TARN_TESTS_FAKE_CUDART_H
#define TARN_TESTS_FAKE_CUDART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fake_options {
    uint64_t seed;
    uint32_t workers;  /* threads; 0: 2 */
    int devices;       /* 0: 1; negative: none */
    int driver;        /* CUDA version of the driver; 0: new enough; negative: no driver */
    bool host_access;  /* host code may follow device addresses */
    uint64_t capacity; /* bytes of device memory; 0: 64 GiB */
    uint32_t channels; /* of a device; 0: 8, as CUDA has them */
    uint32_t depth;    /* kernels and graphs that a channel holds; 0: 1021, as measured */
    bool priorities;   /* of what can go on the most urgent does; otherwise they are but noted */
};

struct fake_control {
    /* Takes down whatever is left, as if the process began anew. NULL: defaults. */
    void (*reset)(const struct fake_options *options);
    /* Lets `calls` more calls of that entry ("cudaEventRecord"; "cuCtxPushCurrent"; NULL: of any
     * that can fail by itself; "work": pieces of work on the device) succeed and the next one fail.
     * Sticky: all calls from then on fail, and the device stops. */
    void (*inject)(const char *entry, uint64_t calls, unsigned code, bool sticky);
    bool (*has_failed)(void);
    uint64_t (*calls)(const char *entry); /* since the reset */
    uint64_t (*alive)(
        void); /* objects: memory, pools, streams, events, graphs, libraries, captures */
    uint64_t (*violations)(char text[static 256]); /* how many, and the first */
    void (*hold)(bool hold);                       /* nothing new begins to run on the device */
    uint64_t (*contexts)(void);                    /* bit d: device d has a context */
    uint64_t (*instantiate_flags)(void);           /* of the latest cudaGraphInstantiate */
};

/* Loads the stand-in by path; false after saying why not. */
bool fake_control_load(const char *path, struct fake_control *control);

/* The names by which the functions above are exported. */
void fake_cudart_reset(const struct fake_options *options);
void fake_cudart_inject(const char *entry, uint64_t calls, unsigned code, bool sticky);
bool fake_cudart_has_failed(void);
uint64_t fake_cudart_calls(const char *entry);
uint64_t fake_cudart_alive(void);
uint64_t fake_cudart_violations(char text[static 256]);
void fake_cudart_hold(bool hold);
uint64_t fake_cudart_contexts(void);
uint64_t fake_cudart_instantiate_flags(void);

#endif
