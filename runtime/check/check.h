/* One run of checked execution, shared by its two kinds: on the session's streams (check.c) and as
 * a linear order (check/order.c). */
#ifndef TARN_RUNTIME_CHECK_CHECK_H
#define TARN_RUNTIME_CHECK_CHECK_H

#include "kernel.h"
#include "linear.h"

struct tarn_device_checker;

struct tarn_check {
    struct tarn_region region; /* what ends with the call */
    struct tarn_session *session;
    struct tarn_checker *checker;       /* kept with the session */
    struct tarn_device_checker *device; /* kept too; NULL: the host does the work */
    struct tarn_check_options options;
    struct tarn_linear linear; /* how far the streams are */
    uint64_t *finals;          /* by part: seed of the expected final content, 0: none */
    struct tarn_check_report report;
    uint64_t deadline_ns;
};

/* Nanoseconds until the deadline; TARN_FOREVER without one. */
uint64_t tarn_check_time_left(const struct tarn_check *check);

/* Number of iterations in a window of expectations. */
uint64_t tarn_check_window(const struct tarn_check *check);

/* Adds the window's ops to the report and finds the present version of each part. */
void tarn_check_settle(struct tarn_check *check);

/* Reports the checker's finding. */
enum tarn_status tarn_check_failed(const struct tarn_check *check, struct tarn_error *error);

/* Runs the order of the options, or one drawn with their seed. */
enum tarn_status tarn_check_run_given_order(struct tarn_check *check, struct tarn_error *error);
enum tarn_status tarn_check_run_random_order(struct tarn_check *check, struct tarn_error *error);

/* Iterations that the given order reaches. */
uint64_t tarn_check_order_iterations(const struct tarn_check_options *options);

#endif
