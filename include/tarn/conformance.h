/* The conformance suite for devices: what a device table promises (device.h), and whole sessions on
 * it, checked byte by byte against the host. In a library of its own, `tarn-conformance`, which is
 * linked beside `tarn`; a test program for a device says how to open it and calls one function.
 * Results are lines of TAP, which any test harness reads. */
#ifndef TARN_CONFORMANCE_H
#define TARN_CONFORMANCE_H

#include "device.h"
#include "session.h"

#ifdef __cplusplus
extern "C" {
#endif

enum tarn_conformance_effort {
    TARN_CONFORMANCE_USUAL,
    /* A third of the graphs, each seventh failing call, an arena of 16 MiB, and no look at the
     * process's memory: for sanitizers and simulators. */
    TARN_CONFORMANCE_QUICK,
    TARN_CONFORMANCE_THOROUGH /* every call fails once in every kind of session */
};

struct tarn_conformance {
    size_t struct_size;
    void *user; /* of the functions; used during the call only */
    /* Opens the device, anew for each test. False: it is not here, and all tests are skipped; what
     * the caller must have then fails by `required`. */
    bool (*open)(void *user, struct tarn_device *device);
    void (*close)(void *user, struct tarn_device device); /* NULL: nothing to close */
    /* NULL, or how many objects of the device are alive (memory, queues, events, ...): none may be
     * left over, and no more after a thousand iterations than after a few. */
    uint64_t (*alive)(void *user);
    /* NULL, or lets `calls` more calls of the table that can fail succeed and the one after them
     * fail, once; true from the call on when it has happened. UINT64_MAX: none fails. */
    bool (*fail_after)(void *user, uint64_t calls);
    uint64_t large_bytes; /* of an arena that must work; 0: 256 MiB */
    enum tarn_conformance_effort effort;
    bool required;    /* a device that is not here is a failure */
    const char *only; /* the one test to run; NULL: all */
    tarn_line line;   /* takes each line of TAP, one at a time; NULL: standard output */
    void *line_user;
    /* How long a test waits for the device, in ns; 0: 30 s. A test whose last call has not returned
     * after four times as long hangs: it is reported by name, and with the call. */
    uint64_t patience_ns;
};
#ifndef __cplusplus
#define TARN_CONFORMANCE(...) \
    (&(struct tarn_conformance){.struct_size = sizeof(struct tarn_conformance), __VA_ARGS__})
#endif

/* Runs the suite, on a thread of its own, which calls all functions above but `line`. Returns how
 * many tests failed; -1: a bad argument, or no thread, with a line that says which. A failure is
 * followed by three comments: what the device did, which rule of device.h that breaks, and the
 * place in the suite. A test that needs what the device lacks is skipped, and its line says so. If
 * no further test would be safe, the last line begins with "Bail out!". After a failure memory of
 * the process and objects of the device may be left; after a test that hangs its thread, too: end
 * the process then. One call at a time for each device. */
TARN_API int tarn_conformance_run(const struct tarn_conformance *suite);

#ifdef __cplusplus
}
#endif

#endif
