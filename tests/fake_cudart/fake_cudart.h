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
 * Without a test around it, the environment says the same: FAKE_CUDART is a list of words:
 * seed=N workers=N devices=N driver=N host capacity=BYTES fail=ENTRY:CALLS:CODE[:sticky] strict;
 * strict: a violation ends the process with code 96 when it exits. */
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
};

struct fake_control {
    /* Takes down whatever is left, as if the process began anew. NULL: defaults. */
    void (*reset)(const struct fake_options *options);
    /* Lets `calls` more calls of that entry ("cudaEventRecord"; NULL: of any that can fail; "work":
     * pieces of work on the device) succeed and the next one fail. Sticky: all calls from then on
     * fail, and the device stops. */
    void (*inject)(const char *entry, uint64_t calls, unsigned code, bool sticky);
    bool (*has_failed)(void);
    uint64_t (*calls)(const char *entry); /* since the reset */
    uint64_t (*alive)(
        void); /* objects: memory, pools, streams, events, graphs, libraries, captures */
    uint64_t (*violations)(char text[static 256]); /* how many, and the first */
    void (*hold)(bool hold);                       /* nothing new begins to run on the device */
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

#endif
