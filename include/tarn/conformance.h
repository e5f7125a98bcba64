/* The conformance suite for devices: it checks the contract of a device table (device.h), and whole
 * sessions on the device, byte by byte against the host. It is in a separate library,
 * `tarn-conformance`, which is linked in addition to `tarn`; a test program for a device says how
 * to open it and calls one function. Results are lines of TAP, which any test harness reads. */
#ifndef TARN_CONFORMANCE_H
#define TARN_CONFORMANCE_H

#include "device.h"
#include "session.h"

#ifdef __cplusplus
extern "C" {
#endif

enum tarn_conformance_effort {
    TARN_CONFORMANCE_USUAL,
    /* A third of the graphs, each seventh failing call, an arena of 16 MiB, and no check of the
     * process's memory: for sanitizers and simulators. */
    TARN_CONFORMANCE_QUICK,
    TARN_CONFORMANCE_THOROUGH /* every call fails once in every kind of session */
};

struct tarn_conformance {
    size_t struct_size;
    void *user; /* argument of the functions; used during the call only */
    /* Opens the device, once for each test. False: the device is not present, and all tests are
     * skipped, or fail if `required` is set. */
    bool (*open)(void *user, struct tarn_device *device);
    void (*close)(void *user, struct tarn_device device); /* NULL: nothing to close */
    /* NULL, or returns how many objects of the device are alive (memory, queues, events, ...): none
     * may be left over, and there may be no more after a thousand iterations than after a few. */
    uint64_t (*alive)(void *user);
    /* NULL, or lets `calls` more calls of the table that can fail succeed and the one after them
     * fail, once; returns true once that call has failed. UINT64_MAX: none fails. */
    bool (*fail_after)(void *user, uint64_t calls);
    uint64_t large_bytes; /* size of an arena that must work; 0: 256 MiB */
    enum tarn_conformance_effort effort;
    bool required;    /* a missing device is a failure */
    const char *only; /* the one test to run; NULL: all */
    tarn_line line;   /* takes each line of TAP, one at a time; NULL: standard output */
    void *line_user;
    /* How long a test waits for the device, in ns; 0: 30 s. A test whose last call has not returned
     * after four times as long hangs: it is reported by name, with the call. */
    uint64_t patience_ns;
};
#ifndef __cplusplus
#define TARN_CONFORMANCE(...) \
    (&(struct tarn_conformance){.struct_size = sizeof(struct tarn_conformance), __VA_ARGS__})
#endif

/* Runs the suite, on a separate thread, which calls all functions above but `line`. Returns the
 * number of failed tests; -1: a bad argument, or no thread, with a line that says which. A failure
 * is followed by three comments: what the device did, which rule of device.h that breaks, and the
 * place in the suite. A test of functions that the device lacks is skipped, and its line says so.
 * If no further test would be safe, the last line begins with "Bail out!". After a failure, memory
 * of the process and objects of the device may be left over, after a hanging test also its thread:
 * end the process then. One call at a time for each device. */
TARN_API int tarn_conformance_run(const struct tarn_conformance *suite);

#ifdef __cplusplus
}
#endif

#endif
