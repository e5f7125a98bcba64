/* Between the parts of the loader of plan files: the document, its lists, and what it claims of its
 * bound and of memory spaces. Each reads the value at `at`, into memory of the plan's region. */
#ifndef TARN_STREAMS_FILE_PLAN_READ_LISTS_H
#define TARN_STREAMS_FILE_PLAN_READ_LISTS_H

#include "json_read.h"
#include "streams/plan/plan.h"

/* The ops of every stream, into the plan, which has its graph already. */
enum tarn_status tarn_plan_read_streams(const struct tarn_json_at *at, struct tarn_plan *plan);
/* [op, op that it waits for], no pair twice, in the file's order. */
enum tarn_status tarn_plan_read_waits(const struct tarn_json_at *at, struct tarn_plan *plan,
                                      struct tarn_wait **waits, uint32_t *waits_count);
/* [id, offset, size], no id twice and all below ids_count; sorted by id. */
enum tarn_status tarn_plan_read_places(const struct tarn_json_at *at, uint32_t ids_count,
                                       struct tarn_region *region, struct tarn_place **places,
                                       uint32_t *places_count);

/* The bound and its certificate, or null for both. */
enum tarn_status tarn_plan_read_claim(const struct tarn_json_at *bound,
                                      const struct tarn_json_at *certificate,
                                      struct tarn_plan *plan, struct tarn_claim *claim);
/* What is said of each memory space, which moves the places that were read before to their spaces.
 */
enum tarn_status tarn_plan_read_spaces(const struct tarn_json_at *at, struct tarn_plan *plan);

#endif
