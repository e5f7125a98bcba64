/* The checking kernel: reads what an op reads, compares every byte with the content that the graph
 * implies, and writes the expected outputs. Safe to run on many streams at once. */
#ifndef TARN_RUNTIME_CHECK_KERNEL_H
#define TARN_RUNTIME_CHECK_KERNEL_H

#include <stdatomic.h>

#include "expected.h"
#include "runtime/state/state.h"

struct tarn_checker {
    const struct tarn_session *session;
    struct tarn_expected expected;
    unsigned char *const *addresses; /* by storage: the session's, on the host */
    bool *clashes;                   /* by op: two of the storages that it uses share bytes */
    uint64_t seed;                   /* of the delays */
    uint32_t delay_ns;               /* the longest delay before an op */
    atomic_int failed;               /* 0; 1: `failure` is being written; 2: it is written */
    struct tarn_error failure;       /* TARN_CHECK_FAILED, of the first op that read a wrong byte */
};

/* Memory is the session's. TARN_SYSTEM: no memory. */
enum tarn_status tarn_checker_init(struct tarn_checker *checker, struct tarn_session *session,
                                   uint64_t seed, uint32_t delay_ns);
/* Frees memory that grew since. pre: no kernel runs. */
void tarn_checker_finish(struct tarn_checker *checker);

/* user: the checker. Non-zero after any failure. */
int tarn_checker_kernel(void *user, const struct tarn_call *call);

/* Records a wrong byte found by the device; op TARN_NONE: in the final inspection. */
void tarn_checker_note(struct tarn_checker *checker, uint32_t op, uint64_t iteration, uint32_t part,
                       uint64_t byte);

/* Does the part hold the version of `seed`? If not, records why. pre: nothing runs. */
bool tarn_checker_look(struct tarn_checker *checker, uint32_t part, uint64_t seed);

#endif
