/* The lower limits of a decode: raising those of all places in conflict with what was just placed,
 * and finding the block that comes next. Works on the decoder of lowest.h. */
#ifndef TARN_PLANNER_PLACE_LOWEST_LIMITS_H
#define TARN_PLANNER_PLACE_LOWEST_LIMITS_H

#include "decoder.h"

/* Raises one place's limit. */
void tarn_limits_rise(struct tarn_decoder *decoder, uint32_t place, int32_t limit);
/* The place is placed. */
void tarn_limits_remove(struct tarn_decoder *decoder, uint32_t place);

/* Forgets all leaders: keys have changed. */
void tarn_limits_forget(struct tarn_decoder *decoder);

/* All limits 0. */
void tarn_limits_start(struct tarn_decoder *decoder);

/* Makes what is pending for whole runs part of every limit. */
void tarn_limits_flush(struct tarn_decoder *decoder);

/* A lone storage was placed at these offsets. */
void tarn_limits_raise(struct tarn_decoder *decoder, uint32_t place, struct tarn_span span);
/* A group's member was placed at these offsets, which may be above the current one. */
void tarn_limits_raise_or_cap(struct tarn_decoder *decoder, uint32_t member, struct tarn_span span);

/* The block that comes next, whose limit is up to date; there is one. */
uint32_t tarn_limits_select(struct tarn_decoder *decoder, const int32_t *key);

/* Has every node the least limit of its children, what is pending for it included, and no greater
 * one than it says; is every leader a place below its node, and no champion placed? For tests of a
 * decoder that has started; cost: linear in places. */
bool tarn_limits_is_valid(const struct tarn_decoder *decoder);

#endif
