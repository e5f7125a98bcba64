/* The verifier's parts, and the verdict that they write into. */
#ifndef TARN_STREAMS_VERIFY_VERDICT_H
#define TARN_STREAMS_VERIFY_VERDICT_H

#include "streams/base/region.h"
#include "streams/plan/program.h"

#define TARN_VIOLATIONS_MAX 100

/* The nodes (see program.h) of a violation, from which the search for a witness starts. */
struct tarn_suspects {
    uint32_t nodes[3];
    uint32_t count;
};
#define TARN_NO_SUSPECTS ((struct tarn_suspects){.count = 0})

struct tarn_verdict {
    struct tarn_region region;         /* of both arrays, and of witnesses */
    struct tarn_violation *violations; /* room for TARN_VIOLATIONS_MAX; NULL: none yet */
    struct tarn_suspects *suspects;    /* one per violation */
    size_t count;
    bool no_memory; /* memory ran out, the list is incomplete */
};

/* A violation of a kind, without ops and tensors yet. */
struct tarn_violation tarn_violation_of(enum tarn_violation_kind kind);

/* Adds a violation, unless the list has it already or is full. */
void tarn_verdict_add(struct tarn_verdict *verdict, struct tarn_violation violation,
                      struct tarn_suspects suspects, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static inline bool tarn_verdict_is_full(const struct tarn_verdict *verdict)
{
    return verdict->count == TARN_VIOLATIONS_MAX || verdict->no_memory;
}

/* Checks without running anything: every launched op once in its own stream's list, waits between
 * launched ops, one offset and the right size for every storage, in range, aligned, groups back to
 * back. False if the plan is too incomplete to be replayed. */
bool tarn_verify_form(const struct tarn_plan *plan, struct tarn_verdict *verdict);

/* A plan with a valid form, and the source graph that it is compared with. The parts below allocate
 * from the region and free again. Each returns TARN_SYSTEM if memory runs out, else TARN_OK:
 * violations are in the verdict. */
struct tarn_verification {
    const struct tarn_plan *plan;
    const struct tarn_graph *source;
    const struct tarn_program *program; /* what the plan is compiled into */
    struct tarn_region *region;
    struct tarn_verdict *verdict;
    const struct tarn_verify_options *allowed;
};

/* Safety: runs two iterations of the program with vector clocks over a map of bytes. */
enum tarn_status tarn_verify_replay(const struct tarn_verification *verification);

/* Safety of storages that only arms of conditionals make. */
enum tarn_status tarn_verify_arms(const struct tarn_verification *verification);

/* Refinement: every op of the program reads what its origin reads in the source graph. */
enum tarn_status tarn_verify_refinement(const struct tarn_verification *verification);

/* The bound, if the plan has one: recomputes what its certificate proves. */
enum tarn_status tarn_verify_bound(const struct tarn_verification *verification);

/* Looks for a legal order that corrupts data, for every violation that has suspects. */
enum tarn_status tarn_verify_witnesses(const struct tarn_verification *verification);

#endif
