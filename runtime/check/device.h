/* Checked execution by a device's own checking kernels, for devices whose memory host code cannot
 * reach. */
#ifndef TARN_RUNTIME_CHECK_DEVICE_H
#define TARN_RUNTIME_CHECK_DEVICE_H

#include "kernel.h"

struct tarn_device_checker {
    struct tarn_session *session;
    struct tarn_checker *checker; /* expectations, and the place of findings */
    uint64_t rows;                /* iterations whose seeds the tables hold */
    uint64_t accesses;            /* of one iteration */
    void *seeds, *wrongs;         /* on the device: two words per access and row, see device.c */
    uint64_t *words;              /* their image on the host */
    uint64_t table_size;          /* bytes of each */
    unsigned char *bytes;         /* room for the largest storage */
    void *queue;                  /* one queue for all ops; NULL: each op on its stream's queue */
    void *end;                    /* event: the last work on `queue`; NULL before the first */
};

/* Makes tables for that many iterations; host memory is the session's. The caller finishes it,
 * whatever the status. TARN_SYSTEM, TARN_DEVICE. */
enum tarn_status tarn_device_checker_init(struct tarn_device_checker *device_checker,
                                          struct tarn_session *session,
                                          struct tarn_checker *checker, uint64_t rows,
                                          struct tarn_error *error);
/* Frees the device's objects. pre: no kernel runs. */
void tarn_device_checker_finish(struct tarn_device_checker *device_checker);

/* user: the device checker. Enqueues comparisons of the op's inputs and fills of its outputs.
 */
int tarn_device_checker_kernel(void *user, const struct tarn_call *call);

/* Before a window of at most `rows` iterations is submitted, after the expectations were advanced:
 * uploads its seeds and forgets findings. */
enum tarn_status tarn_device_checker_begin(struct tarn_device_checker *device_checker,
                                           struct tarn_error *error);
/* Called after the window's work has ended: TARN_CHECK_FAILED if a byte was wrong. */
enum tarn_status tarn_device_checker_end(struct tarn_device_checker *device_checker,
                                         struct tarn_error *error);

/* Writes a version to a part, or checks that the part holds it (TARN_CHECK_FAILED), while nothing
 * is running. */
enum tarn_status tarn_device_checker_fill(struct tarn_device_checker *device_checker, uint32_t part,
                                          uint64_t seed, struct tarn_error *error);
enum tarn_status tarn_device_checker_look(struct tarn_device_checker *device_checker, uint32_t part,
                                          uint64_t seed, struct tarn_error *error);

/* Waits until all work on `queue` has ended. TARN_DEADLINE, TARN_DEVICE: the session has stopped,
 * and its destruction waits again. */
enum tarn_status tarn_device_checker_drain(struct tarn_device_checker *device_checker,
                                           uint64_t timeout_ns, struct tarn_error *error);

#endif
