/* Watches that every op starts after all its ancestors have ended, whoever runs it. The oracle is
 * the closure of the graph's own rules (stream order, data, control) by brute force, and the plan's
 * boundary waits as they are written. Safe to call from several threads. */
#ifndef TARN_TESTS_SUPPORT_ORDER_ORACLE_H
#define TARN_TESTS_SUPPORT_ORDER_ORACLE_H

#include <stdatomic.h>

#include "streams/plan/plan.h"

enum { ORDER_ORACLE_OPS = 64 }; /* the most ops that a graph may have */

struct order_oracle {
    const struct tarn_plan *plan;
    uint64_t ancestors[ORDER_ORACLE_OPS];  /* launched ops, as bits */
    atomic_ullong ended[ORDER_ORACLE_OPS]; /* iterations of that op that have ended */
};

void order_oracle_init(struct order_oracle *oracle, const struct tarn_plan *plan);
/* False: something that must have ended before has not. */
bool order_oracle_start(struct order_oracle *oracle, tarn_op op, uint64_t iteration);
/* False: the op's iterations do not come one by one. */
bool order_oracle_end(struct order_oracle *oracle, tarn_op op, uint64_t iteration);

#endif
