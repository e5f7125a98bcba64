/* What a plan was asked for: every option on which an answer depends is in it, comes back from the
 * file, and tells whether the plan answers another question. The members of the option structs are
 * read from the headers, so that one that is added has to be named here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/random_graph.h"
#include "tarn.h"

/* Options with all that they point to. */
struct question {
    struct tarn_plan_options plan;
    struct tarn_assign_options assign;
    struct tarn_reorder_options reorder;
    struct tarn_couple_options couple;
    struct tarn_in_place_options in_place;
    struct tarn_budget_options budget;
    struct tarn_offload_options offload;
    struct tarn_transform_control of_reorder, of_couple, of_budget;
};

static const char *const words[] = {"relu", "add"};

/* A member with a value that is not its default. */
struct probe {
    const char *structure, *member;
    size_t offset, size; /* in struct question */
    const void *value;
};
#define PROBE(structure, part, member, type, ...)                                               \
    {                                                                                           \
        structure, #member, offsetof(struct question, part.member), sizeof(type), &(type const) \
        {                                                                                       \
            __VA_ARGS__                                                                         \
        }                                                                                       \
    }
#define PLAN(member, type, ...) PROBE("tarn_plan_options", plan, member, type, __VA_ARGS__)
#define ASSIGN(member, type, ...) PROBE("tarn_assign_options", assign, member, type, __VA_ARGS__)
#define REORDER(member, type, ...) PROBE("tarn_reorder_options", reorder, member, type, __VA_ARGS__)
#define COUPLE(member, type, ...) PROBE("tarn_couple_options", couple, member, type, __VA_ARGS__)
#define BUDGET(member, type, ...) PROBE("tarn_budget_options", budget, member, type, __VA_ARGS__)
#define OFFLOAD(member, type, ...) PROBE("tarn_offload_options", offload, member, type, __VA_ARGS__)
#define CONTROL(part, member, type, ...) \
    PROBE("tarn_transform_control", part, member, type, __VA_ARGS__)
static const struct probe probes[] = {
    PLAN(alignment, uint64_t, 64),
    PLAN(capacity, uint64_t, 1 << 20),
    PLAN(method, const char *, "lowest"),
    PLAN(seed, uint64_t, UINT64_MAX),
    PLAN(effort, uint64_t, 1000),
    PLAN(effort, uint64_t, TARN_NO_EFFORT),
    PLAN(seconds, double, 0.1),
    PLAN(boundary, enum tarn_boundary, TARN_BOUNDARY_SIMPLE),
    PLAN(node_limit, uint32_t, 7),
    PLAN(pad_groups, enum tarn_group_padding, TARN_GROUPS_SMALLER),
    PLAN(keep, struct tarn_places, (const struct tarn_placed[]){{.id = 1}}, 1),
    ASSIGN(mode, enum tarn_assign_mode, TARN_ASSIGN_CONCURRENCY),
    ASSIGN(streams, uint32_t, 3),
    ASSIGN(wait_ns, uint32_t, 1),
    ASSIGN(communication_words_count, size_t, 1),
    ASSIGN(copy_words_count, size_t, 2),
    ASSIGN(alignment, uint64_t, 1),
    REORDER(alignment, uint64_t, 1),
    REORDER(effort, uint32_t, 1),
    REORDER(keep_time, bool, true),
    REORDER(slowdown_max, double, 0.05),
    COUPLE(alignment, uint64_t, 1),
    COUPLE(capacity, uint64_t, 4096),
    COUPLE(keep, double, 0.5),
    COUPLE(slowdown_max, double, 0.01),
    COUPLE(wait_ns, uint32_t, 1),
    PROBE("tarn_in_place_options", in_place, kinds_count, size_t, 2),
    BUDGET(budget, uint64_t, 1 << 20),
    BUDGET(method, enum tarn_budget_method, TARN_BUDGET_GIST),
    BUDGET(effort, uint64_t, 100),
    BUDGET(alignment, uint64_t, 1),
    BUDGET(known_only, bool, true),
    BUDGET(share, double, 1),
    OFFLOAD(out_bytes_per_second, uint64_t, 50),
    OFFLOAD(into_bytes_per_second, uint64_t, 45),
    OFFLOAD(latency_ns, uint64_t, 100),
    OFFLOAD(kinds, unsigned, 3),
    OFFLOAD(margin, double, 0.1),
    OFFLOAD(space, tarn_space, 1),
    OFFLOAD(capacity, uint64_t, 1 << 20),
    OFFLOAD(out_stream, const char *, "out"),
    OFFLOAD(into_stream, const char *, "in"),
    OFFLOAD(bytes_min, uint64_t, 1),
    OFFLOAD(effort, uint64_t, 7),
    CONTROL(of_reorder, steps, uint64_t, 5),
    CONTROL(of_couple, seconds, double, 2),
    CONTROL(of_budget, steps, uint64_t, 5),
};
enum { PROBES = sizeof probes / sizeof *probes };

/* Members on which no answer depends, or which others stand for: lists by their counts, transforms
 * by their own structs. */
static const char *const passed_by[] = {
    "struct_size", "threads", "progress",    "user",    "stop",
    "heartbeat",   "assign",  "reorder",     "couple",  "in_place",
    "budget",      "report",  "report_size", "control", "communication_words",
    "copy_words",  "kinds",   "offload"};

static bool is_passed_by(const char *structure, const char *member)
{
    for (size_t i = 0; i < sizeof passed_by / sizeof *passed_by; i++) {
        bool is_budget =
            strcmp(member, "budget") == 0; /* a transform of a plan, bytes of its own */
        if (is_budget && strcmp(structure, "tarn_plan_options") != 0) continue;
        bool is_sum = strcmp(member, "kinds") == 0; /* of an offload, not a list */
        if (is_sum && strcmp(structure, "tarn_offload_options") == 0) continue;
        if (strcmp(passed_by[i], member) == 0) return true;
    }
    return false;
}

/* All transforms are asked for, so that each member of theirs counts. */
static void begin(struct question *question)
{
    *question = (struct question){
        .plan = {.struct_size = sizeof question->plan,
                 .assign = &question->assign,
                 .reorder = &question->reorder,
                 .couple = &question->couple,
                 .in_place = &question->in_place,
                 .budget = &question->budget,
                 .offload = &question->offload},
        .assign = {.struct_size = sizeof question->assign,
                   .communication_words = words,
                   .copy_words = words},
        .reorder = {.struct_size = sizeof question->reorder, .control = &question->of_reorder},
        .couple = {.struct_size = sizeof question->couple, .control = &question->of_couple},
        .in_place = {.struct_size = sizeof question->in_place, .kinds = words},
        .budget = {.struct_size = sizeof question->budget, .control = &question->of_budget},
        .offload = {.struct_size = sizeof question->offload, .out_bytes_per_second = 1000000000},
        .of_reorder = {.struct_size = sizeof question->of_reorder},
        .of_couple = {.struct_size = sizeof question->of_couple},
        .of_budget = {.struct_size = sizeof question->of_budget},
    };
}

static void put(struct question *question, const struct probe *probe)
{
    memcpy((char *)question + probe->offset, probe->value, probe->size);
}

static struct tarn_graph *small_graph_with(uint32_t spaces)
{
    struct random_graph_options knobs = random_graph_knobs(5, 12);
    knobs.spaces = spaces;
    return random_graph(&knobs);
}

static struct tarn_graph *small_graph(void) { return small_graph_with(0); }

static struct tarn_plan *plan_of(struct tarn_graph *graph, const struct tarn_plan_options *options)
{
    struct tarn_plan *plan = NULL;
    struct tarn_error error;
    if (tarn_plan_create(graph, options, &plan, &error) != TARN_OK) fail_msg("%s", error.text);
    assert_int_equal(tarn_plan_answers(plan, options, &error), TARN_OK);
    return plan;
}

static void assert_answers_not(const struct tarn_plan *plan,
                               const struct tarn_plan_options *options, const char *why)
{
    struct tarn_error error;
    assert_int_equal(tarn_plan_answers(plan, options, &error), TARN_REJECTED);
    if (!strstr(error.text, why)) fail_msg("'%s' is not in '%s'", why, error.text);
}

/* ---- The members of the structs ---- */

static char *text_of(const char *path)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    size_t size = (size_t)ftell(file);
    rewind(file);
    char *text = calloc(1, size + 1);
    assert_int_equal(fread(text, 1, size, file), size);
    fclose(file);
    return text;
}

/* Comments become blanks. */
static void blank_comments(char *text)
{
    for (char *at = text; (at = strstr(at, "/*"));) {
        char *end = strstr(at, "*/");
        assert_non_null(end);
        memset(at, ' ', (size_t)(end + 2 - at));
    }
}

/* The name in a declaration: of a pointer to a function what (*name) says, else the last word. */
static void name_of(const char *begin, const char *end, char *name)
{
    const char *pointer = memchr(begin, '(', (size_t)(end - begin));
    if (pointer && pointer + 1 < end && pointer[1] == '*') {
        begin = pointer + 2;
        end = begin + strcspn(begin, ")");
    }
    while (end > begin && !isalnum((unsigned char)end[-1]) && end[-1] != '_') end--;
    const char *from = end;
    while (from > begin && (isalnum((unsigned char)from[-1]) || from[-1] == '_')) from--;
    sprintf(name, "%.*s", (int)(end - from), from);
}

static uint32_t check_members(const char *header, const char *structure)
{
    char path[512], head[80], name[80];
    uint32_t members = 0;
    snprintf(path, sizeof path, TARN_SOURCE_DIR "/include/tarn/%s", header);
    snprintf(head, sizeof head, "struct %s {", structure);
    char *text = text_of(path);
    blank_comments(text);
    const char *at = strstr(text, head);
    assert_non_null(at);
    at += strlen(head);
    const char *behind = strstr(at, "\n};");
    for (const char *end; (end = strchr(at, ';')) && end < behind; at = end + 1, members++) {
        bool is_known = false;
        name_of(at, end, name);
        for (int i = 0; i < PROBES; i++)
            is_known = is_known || (strcmp(probes[i].structure, structure) == 0 &&
                                    strcmp(probes[i].member, name) == 0);
        if (is_known == is_passed_by(structure, name))
            fail_msg(
                "%s.%s: has to be in what a plan was asked for (planner/asked.c) and among the "
                "probes here, unless no answer depends on it",
                structure, name);
    }
    free(text);
    return members;
}

static void every_option_is_told_or_known_not_to_matter(void **state)
{
    (void)state;
    assert_true(check_members("plan.h", "tarn_plan_options") >= 18);
    assert_true(check_members("transform.h", "tarn_assign_options") >= 10);
    assert_true(check_members("transform.h", "tarn_reorder_options") >= 7);
    assert_true(check_members("transform.h", "tarn_couple_options") >= 9);
    assert_true(check_members("transform.h", "tarn_in_place_options") >= 5);
    assert_true(check_members("transform.h", "tarn_budget_options") >= 8);
    assert_true(check_members("transform.h", "tarn_offload_options") >= 12);
    assert_true(check_members("transform.h", "tarn_transform_control") >= 7);
}

/* Each by itself, against the plan that was asked for none of them. */
static void every_option_alone_is_another_question(void **state)
{
    (void)state;
    struct tarn_graph *graph = small_graph();
    struct question question;
    begin(&question);
    struct tarn_plan *plan = plan_of(graph, &question.plan);
    for (int i = 0; i < PROBES; i++) {
        struct tarn_error error;
        begin(&question);
        put(&question, &probes[i]);
        enum tarn_status status = tarn_plan_answers(plan, &question.plan, &error);
        if (status != TARN_REJECTED)
            fail_msg("%s.%s: %s", probes[i].structure, probes[i].member, tarn_status_text(status));
        char name[80];
        snprintf(name, sizeof name, "%s", probes[i].member);
        char *count = strstr(name, "_count");
        if (count) *count = '\0';
        if (!strstr(error.text, name)) fail_msg("'%s' is not in '%s'", name, error.text);
    }
    begin(&question);
    const void **transforms[] = {
        (const void **)&question.plan.assign, (const void **)&question.plan.reorder,
        (const void **)&question.plan.couple, (const void **)&question.plan.in_place,
        (const void **)&question.plan.budget, (const void **)&question.plan.offload};
    for (size_t i = 0; i < sizeof transforms / sizeof *transforms; i++) {
        begin(&question);
        *transforms[i] = NULL;
        assert_answers_not(plan, &question.plan, "the plan was asked for \"");
    }
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
}

static void what_means_the_same_is_the_same_question(void **state)
{
    (void)state;
    struct tarn_graph *graph = small_graph();
    struct tarn_plan *plan = plan_of(graph, NULL);
    bool stop = false;
    assert_string_equal(tarn_plan_asked(plan), "{\"alignment\":512}");
    assert_int_equal(tarn_plan_answers(plan, TARN_PLAN_OPTIONS(.threads = 3, .stop = &stop), NULL),
                     TARN_OK);
    assert_int_equal(tarn_plan_answers(plan, TARN_PLAN_OPTIONS(.alignment = 512), NULL), TARN_OK);
    assert_int_equal(tarn_plan_answers(plan, TARN_PLAN_OPTIONS(.method = "all"), NULL), TARN_OK);
    struct tarn_plan *reordered =
        plan_of(graph, TARN_PLAN_OPTIONS(.reorder = TARN_REORDER_OPTIONS(.alignment = 512)));
    assert_int_equal(
        tarn_plan_answers(reordered, TARN_PLAN_OPTIONS(.reorder = TARN_REORDER_OPTIONS(0)), NULL),
        TARN_OK);
    assert_int_equal(tarn_plan_answers(plan, TARN_PLAN_OPTIONS(.alignment = 3), NULL), TARN_USAGE);
    assert_int_equal(
        tarn_plan_answers(
            plan,
            TARN_PLAN_OPTIONS(.assign = TARN_ASSIGN_OPTIONS(.mode = (enum tarn_assign_mode)9)),
            NULL),
        TARN_USAGE);
    tarn_plan_destroy(reordered);
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
}

/* ---- Files ---- */

static struct tarn_plan *read_back(struct tarn_graph *graph, const char *text)
{
    struct tarn_plan *plan = NULL;
    struct tarn_error error;
    const struct tarn_reader *reader = TARN_READER(.bytes = text, .size = strlen(text));
    if (tarn_plan_read(reader, graph, TARN_VERIFY, NULL, &plan, &error) != TARN_OK)
        fail_msg("%s", error.text);
    return plan;
}

static char *written(const struct tarn_plan *plan)
{
    enum { ROOM = 1 << 20 };
    size_t size = 0;
    char *text = calloc(1, ROOM);
    struct tarn_error error;
    if (tarn_plan_write(plan, TARN_WRITER(.bytes = text, .room = ROOM - 1, .size = &size), &error))
        fail_msg("%s", error.text);
    return text;
}

static void a_file_says_what_its_plan_was_asked_for(void **state)
{
    (void)state;
    struct tarn_graph *graph = small_graph_with(2); /* one to move to */
    struct question question;
    begin(&question);
    for (int i = 0; i < PROBES; i++) {
        const char *member = probes[i].member;
        if (strcmp(member, "alignment") == 0 || strcmp(member, "method") == 0) continue;
        put(&question, &probes[i]);
    }
    question.plan.alignment = 64;
    question.plan.seconds = 0;
    struct tarn_plan *plan = plan_of(graph, &question.plan);
    char *text = written(plan);
    struct tarn_plan *again = read_back(graph, text);
    assert_string_equal(tarn_plan_asked(plan), tarn_plan_asked(again));
    assert_int_equal(tarn_plan_answers(again, &question.plan, NULL), TARN_OK);
    assert_answers_not(again, NULL, "the plan has alignment 64, not 512");
    char *once_more = written(again);
    assert_string_equal(text, once_more);
    free(once_more);
    free(text);
    tarn_plan_destroy(again);
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
}

/* The text with the line of what was asked replaced. */
static char *with_line(const char *text, const char *line)
{
    const char *at = strstr(text, "\"asked\":");
    assert_non_null(at);
    const char *behind = strchr(at, '\n') + 1;
    char *result = calloc(1, strlen(text) + strlen(line) + 1);
    sprintf(result, "%.*s%s%s", (int)(at - text), text, line, behind);
    return result;
}

static void a_file_that_says_nothing_or_something_else_answers_nothing(void **state)
{
    (void)state;
    static const struct {
        const char *line, *why, *kept;
    } lines[] = {
        {"", "the plan does not say what it was asked for", NULL},
        {"\"asked\": { \"alignment\" : 512 } ,\n", NULL, "{\"alignment\":512}"},
        {"\"asked\":{},\n", "was not asked for \"alignment\":512", "{}"},
        {"\"asked\":{\"alignment\":512,\"newer\":{\"a\":[1,\"}\\\",{\"]}},\n",
         "the plan was asked for \"newer\":{\"a\":[1,\"}\\\",{\"]}, which it is not now", NULL},
        {"\"asked\":{\"capacity\":1,\"alignment\":512},\n", "\"capacity\":1", NULL},
        {"\"asked\":{\"alignment\":64},\n",
         "the plan was asked for \"alignment\":64, now it is \"alignment\":512", NULL},
    };
    struct tarn_graph *graph = small_graph();
    struct tarn_plan *plan = plan_of(graph, NULL);
    char *text = written(plan);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        char *changed = with_line(text, lines[i].line);
        struct tarn_plan *other = read_back(graph, changed);
        if (lines[i].kept) assert_string_equal(tarn_plan_asked(other), lines[i].kept);
        if (lines[i].why)
            assert_answers_not(other, NULL, lines[i].why);
        else
            assert_int_equal(tarn_plan_answers(other, NULL, NULL), TARN_OK);
        tarn_plan_destroy(other);
        free(changed);
    }
    free(text);
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
}

/* A file may say anything: its numbers are compared with the question, too. */
static void a_plan_above_the_capacity_answers_nothing_whatever_its_file_says(void **state)
{
    (void)state;
    struct tarn_graph *graph = small_graph();
    struct tarn_plan *plan = plan_of(graph, NULL);
    struct tarn_plan_summary made;
    tarn_plan_summarize(plan, &made);
    uint64_t less = made.footprint - 1;
    char line[120];
    char *text = written(plan);
    snprintf(line, sizeof line, "\"asked\":{\"alignment\":512,\"capacity\":%llu},\n",
             (unsigned long long)less);
    char *changed = with_line(text, line);
    struct tarn_plan *liar = read_back(graph, changed);
    assert_answers_not(liar, TARN_PLAN_OPTIONS(.capacity = less), "which is above");
    assert_answers_not(plan, TARN_PLAN_OPTIONS(.budget = TARN_BUDGET_OPTIONS(.budget = less)),
                       "which is above");
    tarn_plan_destroy(liar);
    free(changed);
    free(text);
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
}

static void a_plan_of_a_family_answers_no_question_of_one_graph(void **state)
{
    (void)state;
    struct tarn_graph *graph = small_graph(), *graphs[] = {graph};
    struct tarn_plan *plan;
    struct tarn_error error;
    assert_int_equal(tarn_family_plan(graphs, 1, NULL, &plan, &error), TARN_OK);
    assert_answers_not(plan, NULL, "\"family\":1");
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
}

static void a_plan_that_was_cut_short_answers_nothing(void **state)
{
    uint32_t cut = 0;
    const bool stop = true;
    struct tarn_plan_options *options = TARN_PLAN_OPTIONS(.stop = &stop);
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct random_graph_options knobs = random_graph_knobs(seed, 60);
        struct tarn_graph *graph = random_graph(&knobs);
        struct tarn_plan *plan;
        struct tarn_plan_summary summary;
        struct tarn_error error;
        assert_int_equal(tarn_plan_create(graph, options, &plan, &error), TARN_OK);
        tarn_plan_summarize(plan, &summary);
        if (summary.stopped == TARN_STOP_REQUEST) {
            assert_answers_not(plan, options, "does not say what it was asked for");
            cut++;
        }
        tarn_plan_destroy(plan);
        tarn_graph_destroy(graph);
    }
    assert_true(cut > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_option_is_told_or_known_not_to_matter),
        cmocka_unit_test(every_option_alone_is_another_question),
        cmocka_unit_test(what_means_the_same_is_the_same_question),
        cmocka_unit_test(a_file_says_what_its_plan_was_asked_for),
        cmocka_unit_test(a_file_that_says_nothing_or_something_else_answers_nothing),
        cmocka_unit_test(a_plan_above_the_capacity_answers_nothing_whatever_its_file_says),
        cmocka_unit_test(a_plan_that_was_cut_short_answers_nothing),
        cmocka_unit_test(a_plan_of_a_family_answers_no_question_of_one_graph),
    };
    return cmocka_run_group_tests_name("asked", tests, NULL, NULL);
}
