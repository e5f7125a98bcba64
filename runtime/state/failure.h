/* Error messages of the runtime, for failures while a session is made or runs. Each function sets
 * *error (NULL: not wanted), unless it is set already, and returns the status. */
#ifndef TARN_RUNTIME_STATE_FAILURE_H
#define TARN_RUNTIME_STATE_FAILURE_H

#include "tarn/device.h"
#include "tarn/session.h"

/* The name of a device in messages. */
static inline const char *tarn_device_name(const struct tarn_device_table *table)
{
    return table->name ? table->name : "unnamed";
}

/* The status of a device call that returned `code`: TARN_OK for 0, else TARN_DEVICE. what: the
 * call, for example "creating a queue". */
enum tarn_status tarn_device_status(struct tarn_device device, const char *what, int code,
                                    struct tarn_error *error);

/* tarn_device_status that also records whether the session's device is poisoned. Any thread. */
enum tarn_status tarn_session_status(struct tarn_session *session, struct tarn_device device,
                                     const char *what, int code, struct tarn_error *error);

/* tarn_session_status for a call that belongs to an op. */
enum tarn_status tarn_session_op_status(struct tarn_session *session, struct tarn_device device,
                                        const char *what, tarn_op op, uint64_t iteration, int code,
                                        struct tarn_error *error);

/* An op's kernel has returned `code`: TARN_DEVICE. */
enum tarn_status tarn_session_kernel_failed(const struct tarn_session *session, tarn_op op,
                                            uint64_t iteration, int code, struct tarn_error *error);

/* It is unknown whether that device still uses the session's memory: TARN_DEVICE. */
enum tarn_status tarn_session_lost(struct tarn_device device, struct tarn_error *error);

/* Another session on the arena has stopped, and this session's work must follow it: TARN_DEVICE. */
enum tarn_status tarn_session_forsaken(const struct tarn_session *session,
                                       struct tarn_error *error);

/* This process was forked from the one that made the session, and has none of its threads:
 * TARN_USAGE. */
enum tarn_status tarn_session_check_process(const struct tarn_session *session,
                                            struct tarn_error *error);
/* tarn_session_check_process, and also fails if an error has ended the session: TARN_USAGE. */
enum tarn_status tarn_session_check_life(const struct tarn_session *session,
                                         struct tarn_error *error);

/* TARN_INTERRUPTED. */
enum tarn_status tarn_session_was_cancelled(struct tarn_error *error);

#endif
