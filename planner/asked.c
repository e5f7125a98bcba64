/* Writes the options that a plan depends on, as one line of JSON that the plan and its file keep. A
 * caller that finds a plan can compare this line with its present options, to see whether the plan
 * answers the same question.
 *
 * The options are read by tables, one for each struct: a member, and how its value is written.
 * Options with their default are left out, so a plan from before an option existed reads like a
 * plan made without it. Threads, reports and progress callbacks are in no table, since no plan
 * depends on them. Cost: linear in the options. */
#include "asked.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "planner/plan_graph/plan_graph.h"
#include "planner/settings.h"
#include "streams/base/checked.h"
#include "streams/base/memory.h"
#include "streams/base/options.h"
#include "streams/base/utf8.h"
#include "streams/graph/hash.h"
#include "streams/text/json_write.h"
#include "streams/text/text_file.h"
#include "tarn/text.h"
#include "tarn/transform.h"

enum value_kind { U32, U64, EFFORT, REAL, FLAG, CHOICE, TEXT, TEXTS, PLACES };

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
static const char *const budget_methods[] = {"search", "keep",    "chen", "checkmate",
                                             "gist",   "offload", NULL};

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
    MEMBER(tarn_plan_options, keep, PLACES),
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
static const struct member offload_members[] = {
    MEMBER(tarn_offload_options, out_bytes_per_second, U64),
    MEMBER(tarn_offload_options, into_bytes_per_second, U64),
    MEMBER(tarn_offload_options, latency_ns, U64),
    MEMBER(tarn_offload_options, kinds, U32),
    MEMBER(tarn_offload_options, margin, REAL),
    MEMBER(tarn_offload_options, space, U32),
    MEMBER(tarn_offload_options, capacity, U64),
    MEMBER(tarn_offload_options, out_stream, TEXT),
    MEMBER(tarn_offload_options, into_stream, TEXT),
    MEMBER(tarn_offload_options, bytes_min, U64),
    MEMBER(tarn_offload_options, effort, U64),
    {NULL},
};
static const struct member control_members[] = {
    MEMBER(tarn_transform_control, steps, U64),
    MEMBER(tarn_transform_control, seconds, REAL),
    {NULL},
};

struct asked {
    struct tarn_plan_settings settings; /* an alignment that is the plan's is 0 */
    size_t family; /* graphs that it was planned together with, itself counted; 0: alone */
};

/* ---- Writing ---- */

/* Numbers above 2^53 - 1, which readers of JSON may not have, are strings. */
static json_t *number_of(uint64_t number)
{
    char digits[24];
    if (number <= TARN_NUMBER_MAX) return json_integer((json_int_t)number);
    snprintf(digits, sizeof digits, "%" PRIu64, number);
    return json_string(digits);
}

/* A real number that JSON cannot hold is written as a string. */
static json_t *real_of(double number)
{
    char text[24];
    if (isfinite(number) && number == nearbyint(number) && fabs(number) <= TARN_NUMBER_MAX)
        return json_integer((json_int_t)number);
    snprintf(text, sizeof text, "%g", number);
    return isfinite(number) ? json_real(number) : json_string(text);
}

static json_t *text_of(const char *text)
{
    char shown[512];
    if (tarn_utf8_is_valid(text)) return json_string(text);
    tarn_text_escape(TARN_PLAIN, text, shown, sizeof shown);
    return json_string(shown);
}

static json_t *texts_of(const char *const *texts, size_t count)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) tarn_json_append(&list, text_of(texts[i]));
    return list;
}

/* Writes their number and a hash of them; the offsets that a plan kept are in the plan. */
static json_t *places_of(const struct tarn_places *places)
{
    struct tarn_hasher hasher = tarn_hasher_begin();
    json_t *object = json_object();
    for (size_t i = 0; i < places->count; i++) {
        tarn_hasher_add(&hasher, places->places[i].id);
        tarn_hasher_add(&hasher, places->places[i].offset);
    }
    tarn_json_put(&object, "storages", number_of(places->count));
    tarn_json_put(&object, "hash", json_string(tarn_hash_format(tarn_hasher_end(&hasher)).text));
    return object;
}

/* As a number, so that members of one kind can be compared with their default; for a text its
 * address.
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
    case PLACES: return ((const struct tarn_places *)at)->count;
    }
    return wide;
}

static json_t *json_of(const void *options, const struct member *member)
{
    const char *at = (const char *)options + member->offset;
    uint64_t value = value_of(options, member);
    switch (member->kind) {
    case U32:
    case U64: break;
    case EFFORT: return number_of(value == TARN_NO_EFFORT ? 0 : value);
    case REAL: return real_of(*(const double *)at);
    case FLAG: return json_true();
    case CHOICE: return json_string(member->words[value]);
    case TEXT: return text_of(*(const char *const *)at);
    case TEXTS: return texts_of(*(const char *const *const *)at, value);
    case PLACES: return places_of((const struct tarn_places *)at);
    }
    return number_of(value);
}

static void put_members(json_t **object, const void *options, const struct member *members)
{
    for (; members->name; members++)
        if (value_of(options, members) != 0)
            tarn_json_put(object, members->name, json_of(options, members));
}

/* The members of a transform's options, and of its control, in an object of its own. */
static void put_transform(json_t **object, const char *name, const void *options,
                          const struct member *members,
                          const struct tarn_transform_control *control)
{
    json_t *transform = json_object();
    put_members(&transform, options, members);
    if (control) put_members(&transform, control, control_members);
    tarn_json_put(object, name, transform);
}

static json_t *question(const struct asked *asked)
{
    const struct tarn_plan_settings *settings = &asked->settings;
    const struct tarn_plan_options *plan = &settings->plan;
    json_t *object = json_object();
    tarn_json_put(&object, "alignment", number_of(plan->alignment));
    put_members(&object, plan, plan_members);
    if (plan->assign) put_transform(&object, "assign", &settings->assign, assign_members, NULL);
    if (plan->reorder)
        put_transform(&object, "reorder", &settings->reorder, reorder_members,
                      &settings->reorder_control);
    if (plan->couple)
        put_transform(&object, "couple", &settings->couple, couple_members,
                      &settings->couple_control);
    if (plan->in_place)
        put_transform(&object, "in_place", &settings->in_place, in_place_members, NULL);
    if (plan->budget)
        put_transform(&object, "budget", &settings->budget, budget_members,
                      &settings->budget_control);
    if (plan->offload) put_transform(&object, "offload", &settings->offload, offload_members, NULL);
    if (asked->family > 0) tarn_json_put(&object, "family", number_of(asked->family));
    return object;
}

static void print_question(const void *asked, FILE *file)
{
    tarn_json_write(file, question(asked));
}

/* ---- Taking ---- */

static enum tarn_status check_words(const struct asked *asked, struct tarn_error *error)
{
    const struct tarn_assign_options *assign = &asked->settings.assign;
    enum tarn_status status =
        tarn_options_words(assign->communication_words, assign->communication_words_count,
                           "a word for communication", error);
    if (status == TARN_OK)
        status = tarn_options_words(assign->copy_words, assign->copy_words_count,
                                    "a word for copies", error);
    if (status == TARN_OK)
        status =
            tarn_options_words(asked->settings.in_place.kinds, asked->settings.in_place.kinds_count,
                               "a kind of op in place", error);
    if (status == TARN_OK && (assign->mode > TARN_ASSIGN_CONCURRENCY ||
                              asked->settings.budget.method > TARN_BUDGET_OFFLOAD))
        return tarn_error_set(error, TARN_USAGE, "there is no such mode of assign, or of a budget");
    return status;
}

static enum tarn_status take_all(struct asked *asked, const struct tarn_plan_options *given,
                                 struct tarn_error *error)
{
    *asked = (struct asked){.family = 0};
    struct tarn_plan_settings *settings = &asked->settings;
    enum tarn_status status = tarn_plan_settings_take(settings, given, error);
    if (status != TARN_OK) return status;
    settings->plan.method = tarn_plan_method_name(settings->plan.method);
    if (settings->plan.method && strcmp(settings->plan.method, "all") == 0)
        settings->plan.method = NULL;
    uint64_t *const alignments[] = {&settings->assign.alignment, &settings->reorder.alignment,
                                    &settings->couple.alignment, &settings->budget.alignment};
    for (size_t i = 0; i < sizeof alignments / sizeof *alignments; i++)
        if (*alignments[i] == settings->plan.alignment) *alignments[i] = 0;
    return check_words(asked, error);
}

/* Was the plan ended by the caller's stop, or by a clock that the caller did not ask for? Then the
 * same options may give another plan, so this plan answers no question. */
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
    if (was_cut_short(plan, &asked.settings.plan)) return TARN_OK;
    asked.family = family;
    char *text = tarn_text_print(print_question, &asked, NULL);
    plan->asked = text ? tarn_region_string(&plan->region, text) : NULL;
    tarn_free(text);
    return plan->asked ? TARN_OK : tarn_error_no_memory(error);
}

/* ---- Comparing ---- */

/* The first member that `object` has and `other` has not; or "". */
struct member_text {
    char text[96];
};
static struct member_text first_absent(json_t *object, const json_t *other)
{
    enum { SHOWN_MAX = 80 };
    struct member_text result = {""};
    const char *name;
    json_t *value;
    json_object_foreach(object, name, value)
    {
        if (json_equal(value, json_object_get(other, name))) continue;
        char shown[SHOWN_MAX + 2] = "";
        json_t *member = json_pack("{s:O}", name, value);
        size_t size = json_dumpb(member, shown, sizeof shown, JSON_COMPACT | JSON_ENSURE_ASCII);
        bool fits = size <= sizeof shown;
        snprintf(result.text, sizeof result.text, "%.*s%s", fits ? (int)size - 2 : SHOWN_MAX,
                 shown + 1, fits ? "" : " ...");
        json_decref(member);
        break;
    }
    return result;
}

/* By the plan's own numbers, whatever its file says. */
static enum tarn_status check_numbers(const struct tarn_plan *plan, const struct asked *asked,
                                      struct tarn_error *error)
{
    const struct tarn_plan_settings *settings = &asked->settings;
    uint64_t footprint = tarn_plan_footprint(plan), capacity = settings->plan.capacity;
    if (settings->plan.budget && settings->budget.budget > 0 &&
        (capacity == 0 || settings->budget.budget < capacity))
        capacity = settings->budget.budget;
    if (plan->alignment != settings->plan.alignment)
        return tarn_error_set(error, TARN_REJECTED,
                              "the plan has alignment %" PRIu64 ", not %" PRIu64, plan->alignment,
                              settings->plan.alignment);
    if (capacity > 0 && footprint > capacity)
        return tarn_error_set(error, TARN_REJECTED,
                              "the plan needs %" PRIu64 " bytes, which is above %" PRIu64,
                              footprint, capacity);
    return TARN_OK;
}

static enum tarn_status compare(json_t *asked, json_t *now, struct tarn_error *error)
{
    struct member_text was = first_absent(asked, now), is = first_absent(now, asked);
    if (!was.text[0] && !is.text[0]) return TARN_OK;
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
    if (!plan->asked)
        return tarn_error_set(error, TARN_REJECTED, "the plan does not say what it was asked for");
    char *text = tarn_text_print(print_question, &asked, NULL);
    json_t *was = json_loads(plan->asked, 0, NULL), *now = text ? json_loads(text, 0, NULL) : NULL;
    status = was && now ? compare(was, now, error) : tarn_error_no_memory(error);
    json_decref(was);
    json_decref(now);
    tarn_free(text);
    return status;
}
