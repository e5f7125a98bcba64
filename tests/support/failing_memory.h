/* Rules about allocations that fail (see failing_calls.h), asked of one act that makes at least
 * `least` of them; its threads may allocate too. Of many allocations some are tried, at equal
 * distances; in a long campaign (TARN_CAMPAIGN) all are. */
#ifndef TARN_TESTS_SUPPORT_FAILING_MEMORY_H
#define TARN_TESTS_SUPPORT_FAILING_MEMORY_H

#include <stdint.h>

#include "tarn/error.h"

typedef enum tarn_status (*act_in_memory)(struct tarn_error *error);

/* Only one allocation fails, each in turn. The status is TARN_OK, and what is asked for is done all
 * the same, or TARN_SYSTEM with a text. */
void fail_single_allocations(act_in_memory act, uint64_t least);

/* Besides, memory has run out: the first allocation and all after it fail, then from the second on,
 * until the act needs no more. Whenever one failed the status is TARN_SYSTEM and the text says so.
 */
void fail_each_allocation(act_in_memory act, uint64_t least);

#endif
