/* The world that a sequence of calls works on: what the calls have made so far, and the bytes that
 * say what comes next. */
#ifndef TARN_TESTS_FUZZ_CALLS_H
#define TARN_TESTS_FUZZ_CALLS_H

#include "fuzz.h"

enum { GRAPHS = 4, PLANS = 3, SESSIONS = 2, IDS_MAX = 6, COST_MAX = 8 };

struct calls_plan {
    struct tarn_plan *plan;
    struct tarn_graph *source;
};

struct calls_session {
    struct tarn_session *session;
    struct tarn_plan *plan; /* owned by the session alone, or also by world.plans */
    tarn_ticket ticket;
    unsigned char *memory; /* what persistent tensors are bound to; or NULL */
    int code;              /* what kernels return */
};

struct world {
    const uint8_t *at, *end;
    struct tarn_builder *builder;
    struct tarn_graph *graphs[GRAPHS];
    struct calls_plan plans[PLANS];
    struct calls_session sessions[SESSIONS];
    unsigned cost; /* of the calls that take long, so far */
};

/* ---- Bytes: 0 when there are no more ---- */

uint8_t next_byte(struct world *world);
static inline uint32_t next_below(struct world *world, uint32_t limit)
{
    return next_byte(world) % limit;
}
/* Small numbers, and those at which something changes. */
uint64_t next_number(struct world *world);
/* Mostly below `count`. */
uint32_t next_id(struct world *world, uint32_t count);
/* Some ids; lives until IDS_LISTS further ones are asked for. */
struct tarn_list next_ids(struct world *world, uint32_t count);
/* Usual names, NULL, and odd ones. */
const char *next_name(struct world *world);
/* Is there time left for a call that takes so much? */
bool may_cost(struct world *world, unsigned cost);

/* ---- Calls, one each ---- */

void call_builder(struct world *world);
void call_make_graph(struct world *world);
void call_ask_graph(struct world *world);
void call_transform(struct world *world);
void call_graph_file(struct world *world);
void call_curve(struct world *world);
void call_make_plan(struct world *world);
void call_ask_plan(struct world *world);
void call_plan_file(struct world *world);
void call_destroy(struct world *world);
void call_make_session(struct world *world);
void call_bind(struct world *world);
void call_copy(struct world *world);
void call_submit(struct world *world);
void call_wait(struct world *world);
void call_check(struct world *world);

/* NULL when there is none in that place. */
struct tarn_graph *any_graph(struct world *world);
struct calls_plan *any_plan(struct world *world);
/* Where a new graph goes: what was there is destroyed. */
void keep_graph(struct world *world, struct tarn_graph *graph);
void end_session(struct calls_session *session);

/* Everything fuzz_answered says, and whether there is a result where there must be one. */
void check_result(const char *call, enum tarn_status status, const struct tarn_error *error,
                  uint64_t statuses, const void *result);

#endif
