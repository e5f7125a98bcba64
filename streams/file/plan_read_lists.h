/* Between the two parts of the loader of plan files: the document, and its lists. Each reads the
 * array `value` at `at`, into memory of the plan's region. */
#ifndef TARN_STREAMS_FILE_PLAN_READ_LISTS_H
#define TARN_STREAMS_FILE_PLAN_READ_LISTS_H

#include "json_read.h"
#include "streams/plan/plan.h"

/* The ops of every stream, into the plan, which has its graph already. */
enum tarn_status tarn_plan_read_streams(const struct tarn_report *report,
                                        const struct tarn_json_at *at,
                                        const struct tarn_json *value, struct tarn_plan *plan);
/* [op, op that it waits for], no pair twice, in the file's order. */
enum tarn_status tarn_plan_read_waits(const struct tarn_report *report,
                                      const struct tarn_json_at *at, const struct tarn_json *value,
                                      struct tarn_plan *plan, struct tarn_wait **waits,
                                      uint32_t *waits_count);
/* [id, offset, size], no id twice and all below ids_count; sorted by id. */
enum tarn_status tarn_plan_read_places(const struct tarn_report *report,
                                       const struct tarn_json_at *at, const struct tarn_json *value,
                                       uint32_t ids_count, struct tarn_region *region,
                                       struct tarn_place **places, uint32_t *places_count);

/* The certificate of a bound, into the claim; and what is said of each memory space, which moves
 * the places that were read before to their spaces. */
enum tarn_status tarn_plan_read_certificate(const struct tarn_report *report,
                                            const struct tarn_json_at *at,
                                            const struct tarn_json *value, struct tarn_plan *plan,
                                            struct tarn_claim *claim);
enum tarn_status tarn_plan_read_spaces(const struct tarn_report *report,
                                       const struct tarn_json_at *at, const struct tarn_json *value,
                                       struct tarn_plan *plan);

#endif
