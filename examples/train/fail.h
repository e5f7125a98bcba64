/* Errors end the program, on all ranks, with a line that names the rank. */
#ifndef FAIL_H
#define FAIL_H

#include <dnnl.h>
#include <tarn.h>

/* Prints "train: rank 1: ..." and ends all ranks with this exit code. */
_Noreturn void fail(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A call of Tarn, which fills the variable `error` of the function around it. */
#define TARN(call)                                                                        \
    do {                                                                                  \
        enum tarn_status status_ = (call);                                                \
        if (status_) fail((int)status_, "%s: %s", tarn_status_text(status_), error.text); \
    } while (0)

#define DNN(call)                                                                 \
    do {                                                                          \
        dnnl_status_t status_ = (call);                                           \
        if (status_) fail(TARN_DEVICE, "oneDNN: error %d in %s", status_, #call); \
    } while (0)

#endif
