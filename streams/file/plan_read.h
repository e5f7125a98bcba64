/* Code shared by the loader of plan files and the reader of their outlines. */
#ifndef TARN_STREAMS_FILE_PLAN_READ_LISTS_H
#define TARN_STREAMS_FILE_PLAN_READ_LISTS_H

#include "json_read.h"
#include "streams/plan/plan.h"

/* Reads the value at `at`: [id, offset, size], no id twice and all below ids_count; sorted by id.
 */
enum tarn_status tarn_plan_read_places(const struct tarn_json_at *at, uint32_t ids_count,
                                       struct tarn_region *region, struct tarn_place **places,
                                       uint32_t *places_count);

#endif
