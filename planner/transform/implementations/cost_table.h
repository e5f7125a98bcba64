/* A table of costs, ready for look-ups: rows that model a kind of op, and rows that were measured
 * on one op. docs/formats.md has the meaning of the columns. */
#ifndef TARN_PLANNER_TRANSFORM_IMPLEMENTATIONS_COST_TABLE_H
#define TARN_PLANNER_TRANSFORM_IMPLEMENTATIONS_COST_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "streams/base/region.h"
#include "tarn/transform.h"

/* A decimal factor, exactly. */
struct tarn_factor {
    uint32_t whole;
    uint32_t billionths;
};

/* Whether a backward op needs a tensor of its forward op. */
enum tarn_need { TARN_AS_TRACED, TARN_NOT_NEEDED, TARN_NEEDED };

struct tarn_model_row {
    const char *kind, *implementation;
    struct tarn_factor time, workspace;
    enum tarn_need input, output;
    bool replaces_kept; /* is there a `keeps`? */
    struct tarn_factor keeps;
    uint32_t line;
};

struct tarn_measured_row {
    const char *op, *implementation; /* "": the op as written */
    uint64_t ns, workspace;
    uint32_t line;
};

/* Both by name, then in the order of the file. Names point into `text`. */
struct tarn_cost_table {
    struct tarn_region region; /* has all but the text */
    char *path, *text;
    struct tarn_model_row *models;
    struct tarn_measured_row *measured;
    size_t models_count, measured_count;
};

/* The rows of a kind, or of an op's name: the first one is returned, *count are there. */
const struct tarn_model_row *tarn_cost_table_models(const struct tarn_cost_table *table,
                                                    const char *kind, size_t *count);
const struct tarn_measured_row *tarn_cost_table_measured(const struct tarn_cost_table *table,
                                                         const char *op, size_t *count);

/* n times the factor, rounded to the nearest and up; UINT64_MAX when it exceeds 64 bits. */
uint64_t tarn_factor_nearest(struct tarn_factor factor, uint64_t n);
uint64_t tarn_factor_up(struct tarn_factor factor, uint64_t n);
static inline bool tarn_factor_is(struct tarn_factor factor, uint32_t whole)
{
    return factor.whole == whole && factor.billionths == 0;
}

#endif
