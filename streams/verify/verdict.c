/* The verdict: a list of at most a hundred violations without duplicates. The replay finds most
 * violations in both iterations and through several bytes; two violations are equal if kind, ops
 * and tensors are equal. */
#include "verdict.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

#include "streams/base/array.h"
#include "streams/base/escape.h"
#include "streams/base/memory.h"

const char *tarn_violation_text(enum tarn_violation_kind kind)
{
    static const char *const texts[] = {
        [TARN_UNORDERED_OVERLAP] = "unordered overlap",
        [TARN_OVERWRITTEN_INPUT] = "overwritten input",
        [TARN_HAZARD_LOST] = "hazard lost",
        [TARN_GROUP_BROKEN] = "group broken",
        [TARN_MISALIGNED] = "misaligned",
        [TARN_MISPLACED] = "misplaced",
        [TARN_OUT_OF_RANGE] = "out of range",
        [TARN_MISSING] = "missing",
        [TARN_WRONG_GRAPH] = "wrong graph",
        [TARN_DEADLOCK] = "deadlock",
        [TARN_WRONG_BOUND] = "wrong bound",
    };
    size_t k = (size_t)kind;
    return k < TARN_COUNT_OF(texts) ? texts[k] : "unknown violation";
}

struct tarn_violation tarn_violation_of(enum tarn_violation_kind kind)
{
    return (struct tarn_violation){.struct_size = sizeof(struct tarn_violation),
                                   .kind = kind,
                                   .op = TARN_NONE,
                                   .other_op = TARN_NONE,
                                   .tensor = TARN_NONE,
                                   .other_tensor = TARN_NONE};
}

static bool is_same(const struct tarn_violation *a, const struct tarn_violation *b)
{
    return a->kind == b->kind && a->op == b->op && a->other_op == b->other_op &&
           a->tensor == b->tensor && a->other_tensor == b->other_tensor;
}

static bool is_known(const struct tarn_verdict *verdict, const struct tarn_violation *violation)
{
    /* violations without any name differ in their text only */
    if (violation->op == TARN_NONE && violation->tensor == TARN_NONE) return false;
    for (size_t i = 0; i < verdict->count; i++) {
        if (is_same(&verdict->violations[i], violation)) return true;
    }
    return false;
}

static bool has_room(struct tarn_verdict *verdict)
{
    struct tarn_region *region = &verdict->region;
    if (!verdict->violations) {
        verdict->violations =
            tarn_region_take(region, TARN_VIOLATIONS_MAX, sizeof *verdict->violations);
        verdict->suspects =
            tarn_region_take(region, TARN_VIOLATIONS_MAX, sizeof *verdict->suspects);
        verdict->no_memory = region->is_exhausted;
    }
    return !tarn_verdict_is_full(verdict);
}

void tarn_verdict_add(struct tarn_verdict *verdict, struct tarn_violation violation,
                      struct tarn_suspects suspects, const char *format, ...)
{
    assert(suspects.count <= TARN_COUNT_OF(suspects.nodes));
    if (is_known(verdict, &violation) || !has_room(verdict)) return;
    struct tarn_violation *copy = &verdict->violations[verdict->count];
    *copy = violation;
    verdict->suspects[verdict->count++] = suspects;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(copy->text, sizeof copy->text, format, arguments);
    va_end(arguments);
    tarn_escape_message(copy->text);
}

size_t tarn_verdict_count(const struct tarn_verdict *verdict)
{
    return verdict ? verdict->count : 0;
}

const struct tarn_violation *tarn_verdict_get(const struct tarn_verdict *verdict, size_t i)
{
    return verdict && i < verdict->count ? &verdict->violations[i] : NULL;
}

void tarn_verdict_destroy(struct tarn_verdict *verdict)
{
    if (!verdict) return;
    tarn_region_finish(&verdict->region);
    tarn_free(verdict);
}
