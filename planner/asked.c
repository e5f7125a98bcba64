/* What a plan was asked for: the options that its answer depends on, as one line of JSON that the
 * plan keeps and its file has. Whoever finds a plan can tell by it whether it answers the question
 * that he has now.
 *
 * The options are read by tables, one for each struct: a member, and how its value is written. What
 * has its default is left out, so that a plan from before an option existed reads as one that was
 * not asked for it. Threads, reports, progress and beats are in no table: no answer depends on
 * them. Cost: linear in the options. */
#include "asked.h"

#include <float.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "plan_graph.h"
#include "streams/base/checked.h"
#include "streams/base/memory.h"
#include "streams/base/options.h"
#include "streams/text/json_write.h"
#include "streams/text/text_file.h"
#include "tarn/transform.h"

enum value_kind { U32, U64, EFFORT, REAL, FLAG, CHOICE, TEXT, TEXTS };

struct member {
    const char *name;
    enum value_kind kind;
    size_t offset;
    size_t count_offset;      /* TEXTS: of how many there are */
    const char *const *words; /* CHOICE: by value; the first one is the default */
};

#define MEMBER(type, member, kind)                            \
    {                                                         \
#member, kind, offsetof(struct type, member), 0, NULL \
    }
#define MEMBER_CHOICE(type, member, words)                       \
    {                                                            \
#member, CHOICE, offsetof(struct type, member), 0, words \
    }
#define MEMBER_TEXTS(type, member)                                                                 \
    {                                                                                              \
#member, TEXTS, offsetof(struct type, member), offsetof(struct type, member##_count), NULL \
    }

static const char *const boundaries[] = {"refined", "simple", NULL};
static const char *const paddings[] = {"graph", "exact", "padded", "auto", NULL};
static const char *const assign_modes[] = {"schedule", "concurrency", NULL};
static const char *const budget_methods[] = {"search", "keep", "chen", "checkmate", "gist", NULL};

/* The alignment of the plan is always there, and begins the object. */
static const struct member plan_members[] = {
    MEMBER(tarn_plan_options, capacity, U64),
    MEMBER(tarn_plan_options, method, TEXT),
    MEMBER(tarn_plan_options, seed, U64),
    MEMBER(tarn_plan_options, effort, EFFORT),
    MEMBER(tarn_plan_options, seconds, REAL),
    MEMBER_CHOICE(tarn_plan_options, boundary, boundaries),
    MEMBER(tarn_plan_options, node_limit, U32),
    MEMBER_CHOICE(tarn_plan_options, pad_groups, paddings),
    {NULL},
};
static const struct member assign_members[] = {
    MEMBER_CHOICE(tarn_assign_options, mode, assign_modes),
    MEMBER(tarn_assign_options, streams, U32),
    MEMBER(tarn_assign_options, wait_ns, U32),
    MEMBER_TEXTS(tarn_assign_options, communication_words),
    MEMBER_TEXTS(tarn_assign_options, copy_words),
    MEMBER(tarn_assign_options, alignment, U64),
    {NULL},
};
static const struct member reorder_members[] = {
    MEMBER(tarn_reorder_options, alignment, U64),
    MEMBER(tarn_reorder_options, effort, U32),
    MEMBER(tarn_reorder_options, keep_time, FLAG),
    MEMBER(tarn_reorder_options, slowdown_max, REAL),
    {NULL},
};
static const struct member couple_members[] = {
    MEMBER(tarn_couple_options, alignment, U64), MEMBER(tarn_couple_options, capacity, U64),
    MEMBER(tarn_couple_options, keep, REAL),     MEMBER(tarn_couple_options, slowdown_max, REAL),
    MEMBER(tarn_couple_options, wait_ns, U32),   {NULL},
};
static const struct member in_place_members[] = {
    MEMBER_TEXTS(tarn_in_place_options, kinds),
    {NULL},
};
static const struct member budget_members[] = {
    MEMBER(tarn_budget_options, budget, U64),
    MEMBER_CHOICE(tarn_budget_options, method, budget_methods),
    MEMBER(tarn_budget_options, effort, U64),
    MEMBER(tarn_budget_options, alignment, U64),
    MEMBER(tarn_budget_options, known_only, FLAG),
    MEMBER(tarn_budget_options, share, REAL),
    {NULL},
};
static const struct member control_members[] = {
    MEMBER(tarn_transform_control, steps, U64),
    MEMBER(tarn_transform_control, seconds, REAL),
    {NULL},
};

/* The options, all of them taken: what callers leave out is zero. */
struct asked {
    struct tarn_plan_options plan;
    struct tarn_assign_options assign;
    struct tarn_reorder_options reorder;
    struct tarn_couple_options couple;
    struct tarn_in_place_options in_place;
    struct tarn_budget_options budget;
    struct tarn_transform_control of_reorder, of_couple, of_budget;
    size_t family; /* graphs that it was planned together with, itself counted; 0: alone */
};

/* ---- Writing ---- */

/* Numbers above 2^53 - 1, which readers of JSON may not have, are strings. */
static void write_number(FILE *file, uint64_t number)
{
    const char *quote = number > TARN_NUMBER_MAX ? "\"" : "";
    fprintf(file, "%s%" PRIu64 "%s", quote, number, quote);
}

/* As short as can be read back; with a point, whatever the locale has. */
static void write_real(FILE *file, double number)
{
    char text[40];
    bool is_number = number >= -DBL_MAX && number <= DBL_MAX;
    snprintf(text, sizeof text, "%.15g", number);
    if (is_number && strtod(text, NULL) != number) snprintf(text, sizeof text, "%.17g", number);
    text[strcspn(text, ",")] = text[strcspn(text, ",")] ? '.' : '\0';
    fprintf(file, is_number ? "%s" : "\"%s\"", text);
}

static void write_texts(FILE *file, const char *const *texts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        fputc(i > 0 ? ',' : '[', file);
        tarn_json_write_string(file, texts[i]);
    }
    fputc(']', file);
}

/* As a number, so that members of one kind can be told from their default; for a text its address.
 */
static uint64_t value_of(const void *options, const struct member *member)
{
    const char *at = (const char *)options + member->offset;
    uint64_t wide = 0;
    double real;
    const char *text;
    switch (member->kind) {
    case U32: /* and enums */
    case CHOICE: return *(const uint32_t *)at;
    case U64:
    case EFFORT: memcpy(&wide, at, sizeof wide); break;
    case REAL: memcpy(&real, at, sizeof real); return real > 0 || real < 0;
    case FLAG: return *(const bool *)at;
    case TEXT: memcpy(&text, at, sizeof text); return text != NULL;
    case TEXTS: {
        size_t count;
        memcpy(&count, (const char *)options + member->count_offset, sizeof count);
        return count;
    }
    }
    return wide;
}

static void write_value(FILE *file, const void *options, const struct member *member)
{
    const char *at = (const char *)options + member->offset;
    uint64_t value = value_of(options, member);
    switch (member->kind) {
    case U32:
    case U64: write_number(file, value); break;
    case EFFORT: write_number(file, value == TARN_NO_EFFORT ? 0 : value); break;
    case REAL: write_real(file, *(const double *)at); break;
    case FLAG: fputs("true", file); break;
    case CHOICE: tarn_json_write_string(file, member->words[value]); break;
    case TEXT: tarn_json_write_string(file, *(const char *const *)at); break;
    case TEXTS: write_texts(file, *(const char *const *const *)at, value); break;
    }
}

static void write_members(FILE *file, const void *options, const struct member *members,
                          bool is_first)
{
    for (; members->name; members++) {
        if (value_of(options, members) == 0) continue;
        fprintf(file, "%s\"%s\":", is_first ? "" : ",", members->name);
        write_value(file, options, members);
        is_first = false;
    }
}

/* The members of a transform's options, and of its control, in an object of its own. */
static void write_transform(FILE *file, const char *name, const void *options,
                            const struct member *members,
                            const struct tarn_transform_control *control)
{
    bool is_empty = true;
    fprintf(file, ",\"%s\":{", name);
    write_members(file, options, members, true);
    for (; members->name; members++) is_empty = is_empty && value_of(options, members) == 0;
    if (control) write_members(file, control, control_members, is_empty);
    fputc('}', file);
}

static void print_asked(const void *subject, FILE *file)
{
    const struct asked *asked = subject;
    const struct tarn_plan_options *plan = &asked->plan;
    fprintf(file, "{\"alignment\":%" PRIu64, plan->alignment);
    write_members(file, plan, plan_members, false);
    if (plan->assign) write_transform(file, "assign", &asked->assign, assign_members, NULL);
    if (plan->reorder)
        write_transform(file, "reorder", &asked->reorder, reorder_members, &asked->of_reorder);
    if (plan->couple)
        write_transform(file, "couple", &asked->couple, couple_members, &asked->of_couple);
    if (plan->in_place) write_transform(file, "in_place", &asked->in_place, in_place_members, NULL);
    if (plan->budget)
        write_transform(file, "budget", &asked->budget, budget_members, &asked->of_budget);
    if (asked->family > 0) fprintf(file, ",\"family\":%zu", asked->family);
    fputc('}', file);
}

/* ---- Taking ---- */

static enum tarn_status take(void *options, size_t size, const void *given, const char *what,
                             uint64_t *alignment, const struct asked *asked,
                             struct tarn_error *error)
{
    enum tarn_status status = tarn_options_take(options, size, given, what, error);
    if (alignment && *alignment == asked->plan.alignment) *alignment = 0;
    return status;
}

static enum tarn_status take_control(const struct tarn_transform_control *given,
                                     struct tarn_transform_control *control,
                                     struct tarn_error *error)
{
    if (!given) return TARN_OK;
    return tarn_options_take(control, sizeof *control, given, "the control of a transform", error);
}

static enum tarn_status check_words(const struct asked *asked, struct tarn_error *error)
{
    const struct tarn_assign_options *assign = &asked->assign;
    enum tarn_status status =
        tarn_options_words(assign->communication_words, assign->communication_words_count,
                           "a word for communication", error);
    if (!status)
        status = tarn_options_words(assign->copy_words, assign->copy_words_count,
                                    "a word for copies", error);
    if (!status)
        status = tarn_options_words(asked->in_place.kinds, asked->in_place.kinds_count,
                                    "a kind of op in place", error);
    if (!status &&
        (assign->mode > TARN_ASSIGN_CONCURRENCY || asked->budget.method > TARN_BUDGET_GIST))
        return tarn_error_set(error, TARN_USAGE, "there is no such mode of assign, or of a budget");
    return status;
}

static enum tarn_status take_all(struct asked *asked, const struct tarn_plan_options *given,
                                 struct tarn_error *error)
{
    *asked = (struct asked){0};
    struct tarn_plan_options *plan = &asked->plan;
    enum tarn_status status = tarn_plan_options_take(plan, given, error);
    if (status != TARN_OK) return status;
    plan->method = tarn_plan_method_name(plan->method);
    if (plan->method && strcmp(plan->method, "all") == 0) plan->method = NULL;
#define TAKE(name, what, alignment) \
    take(&asked->name, sizeof asked->name, plan->name, what " options", alignment, asked, error)
    if (plan->assign) status = TAKE(assign, "assign", &asked->assign.alignment);
    if (!status && plan->reorder) status = TAKE(reorder, "reorder", &asked->reorder.alignment);
    if (!status && plan->couple) status = TAKE(couple, "couple", &asked->couple.alignment);
    if (!status && plan->in_place) status = TAKE(in_place, "in-place", NULL);
    if (!status && plan->budget) status = TAKE(budget, "budget", &asked->budget.alignment);
#undef TAKE
    if (!status) status = take_control(asked->reorder.control, &asked->of_reorder, error);
    if (!status) status = take_control(asked->couple.control, &asked->of_couple, error);
    if (!status) status = take_control(asked->budget.control, &asked->of_budget, error);
    return status ? status : check_words(asked, error);
}

/* Ended by the caller's stop, or by a clock that nobody asked for: the same question has another
 * answer, so the plan answers none. */
static bool was_cut_short(const struct tarn_plan *plan, const struct tarn_plan_options *options)
{
    return plan->stopped == TARN_STOP_REQUEST ||
           (plan->stopped == TARN_STOP_DEADLINE && !(options->seconds > 0));
}

enum tarn_status tarn_asked_note(struct tarn_plan *plan, const struct tarn_plan_options *options,
                                 size_t family, struct tarn_error *error)
{
    struct asked asked;
    enum tarn_status status = take_all(&asked, options, error);
    if (status != TARN_OK) return status;
    if (was_cut_short(plan, &asked.plan)) return TARN_OK;
    asked.family = family;
    char *text = tarn_text_print(print_asked, &asked, NULL);
    plan->asked = text ? tarn_region_string(&plan->region, text) : NULL;
    tarn_free(text);
    return plan->asked ? TARN_OK : tarn_error_no_memory(error);
}

/* ---- Comparing ---- */

/* A member of an object without blanks, as "name":value; NULL behind the last. *at: where it
 * begins, on return where the next one does. */
static const char *next_member(const char **at, size_t *size)
{
    const char *begin = *at;
    int depth = 0;
    bool in_string = false;
    if (*begin == '{' || *begin == ',') begin++;
    if (*begin == '}' || *begin == '\0') return NULL;
    const char *end = begin;
    for (; *end; end++) {
        if (in_string) {
            if (*end == '\\' && end[1])
                end++;
            else if (*end == '"')
                in_string = false;
            continue;
        }
        if (*end == '"') in_string = true;
        if (*end == '{' || *end == '[') depth++;
        if (depth == 0 && (*end == ',' || *end == '}')) break;
        if (*end == '}' || *end == ']') depth--;
    }
    *at = end;
    *size = (size_t)(end - begin);
    return begin;
}

static bool has_member(const char *object, const char *member, size_t size)
{
    size_t other;
    for (const char *found; (found = next_member(&object, &other));)
        if (other == size && memcmp(found, member, size) == 0) return true;
    return false;
}

/* The first member that `object` has and `other` has not; or "". */
struct member_text {
    char text[96];
};
static struct member_text first_absent(const char *object, const char *other)
{
    struct member_text result = {""};
    size_t size;
    for (const char *member; (member = next_member(&object, &size));) {
        if (has_member(other, member, size)) continue;
        snprintf(result.text, sizeof result.text, "%.*s%s", size < 80 ? (int)size : 80, member,
                 size < 80 ? "" : " ...");
        break;
    }
    return result;
}

/* By the plan's own numbers, whatever its file says. */
static enum tarn_status check_numbers(const struct tarn_plan *plan, const struct asked *asked,
                                      struct tarn_error *error)
{
    uint64_t footprint = tarn_plan_footprint(plan), capacity = asked->plan.capacity;
    if (asked->plan.budget && asked->budget.budget > 0 &&
        (capacity == 0 || asked->budget.budget < capacity))
        capacity = asked->budget.budget;
    if (plan->alignment != asked->plan.alignment)
        return tarn_error_set(error, TARN_REJECTED,
                              "the plan has alignment %" PRIu64 ", not %" PRIu64, plan->alignment,
                              asked->plan.alignment);
    if (capacity > 0 && footprint > capacity)
        return tarn_error_set(error, TARN_REJECTED,
                              "the plan needs %" PRIu64 " bytes, which is above %" PRIu64,
                              footprint, capacity);
    return TARN_OK;
}

static enum tarn_status compare(const struct tarn_plan *plan, const char *text,
                                struct tarn_error *error)
{
    if (!plan->asked)
        return tarn_error_set(error, TARN_REJECTED, "the plan does not say what it was asked for");
    if (strcmp(plan->asked, text) == 0) return TARN_OK;
    struct member_text was = first_absent(plan->asked, text), is = first_absent(text, plan->asked);
    if (!was.text[0])
        return tarn_error_set(error, TARN_REJECTED, "the plan was not asked for %s", is.text);
    return tarn_error_set(error, TARN_REJECTED, "the plan was asked for %s, %s%s", was.text,
                          is.text[0] ? "now it is " : "which it is not now", is.text);
}

enum tarn_status tarn_plan_answers(const struct tarn_plan *plan,
                                   const struct tarn_plan_options *options,
                                   struct tarn_error *error)
{
    struct asked asked;
    if (!plan) return tarn_error_null(error, __func__);
    tarn_error_clear(error);
    enum tarn_status status = take_all(&asked, options, error);
    if (status != TARN_OK) return status;
    status = check_numbers(plan, &asked, error);
    if (status != TARN_OK) return status;
    char *text = tarn_text_print(print_asked, &asked, NULL);
    status = text ? compare(plan, text, error) : tarn_error_no_memory(error);
    tarn_free(text);
    return status;
}
