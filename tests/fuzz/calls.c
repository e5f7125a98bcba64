/* Calls of the API, valid and invalid, in any sequence that bytes say. Every call answers with one
 * of the statuses that it is documented to have; what fails leaves no result, and what is returned
 * holds what it promises: graphs come back from files, plans pass the verifier, sessions end. Leaks
 * and misuse of memory are the sanitizers' to see. */
#include "calls.h"

#include <stdlib.h>
#include <string.h>

/* ---- Bytes ---- */

uint8_t next_byte(struct world *world) { return world->at < world->end ? *world->at++ : 0; }

uint64_t next_number(struct world *world)
{
    static const uint64_t edges[] = {0,
                                     1,
                                     2,
                                     4,
                                     64,
                                     512,
                                     4096,
                                     UINT64_C(1) << 30,
                                     (UINT64_C(1) << 30) + 1,
                                     UINT64_C(1) << 32,
                                     (UINT64_C(1) << 53) - 1,
                                     UINT64_C(1) << 53,
                                     UINT64_C(1) << 62,
                                     UINT64_MAX - 1,
                                     UINT64_MAX};
    uint8_t byte = next_byte(world);
    if (byte < 160) return byte;
    if (byte < 200) return (uint64_t)(byte - 159) * next_byte(world);
    return edges[byte % (sizeof edges / sizeof *edges)];
}

uint32_t next_id(struct world *world, uint32_t count)
{
    uint8_t byte = next_byte(world);
    if (byte == 255) return TARN_NONE;
    if (byte >= 250 || count == 0) return count + byte % 4;
    return byte % count;
}

struct tarn_list next_ids(struct world *world, uint32_t count)
{
    enum { LISTS = 8 };
    static uint32_t ids[LISTS][IDS_MAX];
    static unsigned turn;
    uint8_t wanted = next_byte(world);
    turn = (turn + 1) % LISTS;
    if (wanted == 255) return (struct tarn_list){NULL, 1};
    wanted %= IDS_MAX;
    for (uint8_t i = 0; i < wanted; i++) ids[turn][i] = next_id(world, count);
    return (struct tarn_list){ids[turn], wanted};
}

const char *next_name(struct world *world)
{
    static const char *const names[] = {"a",
                                        "b",
                                        "convolution_0",
                                        "aten.convolution",
                                        "all_reduce",
                                        "backward",
                                        "",
                                        NULL,
                                        "\xc3\xa9",
                                        "\xff",
                                        "\x1b]0;x\x07\xc2\x9b\xe2\x80\xae",
                                        "a,b\"c\\d\n"};
    static char longest[5000];
    uint32_t which = next_below(world, sizeof names / sizeof *names + 1);
    if (which < sizeof names / sizeof *names) return names[which];
    memset(longest, 'n', sizeof longest - 1);
    longest[4090 + next_below(world, 12)] = '\0';
    return longest;
}

bool may_cost(struct world *world, unsigned cost)
{
    world->cost += cost;
    return world->cost <= COST_MAX;
}

/* What is cut is the beginning of the whole, and a whole is escaped once and for all. */
static void call_text(struct world *world)
{
    char whole[6 * 5000], cut[64], again[sizeof whole];
    enum tarn_language language = (enum tarn_language)next_below(world, 3);
    const char *text = next_name(world);
    size_t room = next_below(world, sizeof cut + 1);
    size_t length = tarn_text_escape(language, text, whole, sizeof whole);
    PROMISED(length == strlen(whole), "%zu", length);
    PROMISED(tarn_text_escape(language, text, room ? cut : NULL, room) == length, "%zu", length);
    if (room > 0) PROMISED(strncmp(whole, cut, strlen(cut)) == 0 && strlen(cut) < room, "%s", cut);
    if (language != TARN_PLAIN) return;
    tarn_text_escape(language, whole, again, sizeof again);
    PROMISED(strcmp(whole, again) == 0, "%s", whole);
}

/* ---- Results ---- */

void check_result(const char *call, enum tarn_status status, const struct tarn_error *error,
                  uint64_t statuses, const void *result)
{
    fuzz_answered(call, status, error, statuses);
    PROMISED((result != NULL) == (status == TARN_OK), "%s: %s", call, error->text);
}

/* ---- The world ---- */

struct tarn_graph *any_graph(struct world *world)
{
    return world->graphs[next_below(world, GRAPHS)];
}

struct calls_plan *any_plan(struct world *world) { return &world->plans[next_below(world, PLANS)]; }

/* Plans of it are of no source any more. */
static void drop_graph(struct world *world, uint32_t which)
{
    for (int i = 0; i < PLANS; i++)
        if (world->plans[i].source == world->graphs[which]) world->plans[i].source = NULL;
    tarn_graph_destroy(world->graphs[which]);
    world->graphs[which] = NULL;
}

void keep_graph(struct world *world, struct tarn_graph *graph)
{
    uint32_t which = next_below(world, GRAPHS);
    if (!graph) return;
    for (uint32_t i = 0; i < GRAPHS; i++) { /* shared: one name each */
        if (world->graphs[i] == graph && i != which) {
            tarn_graph_destroy(graph);
            return;
        }
    }
    if (world->graphs[which] == graph)
        tarn_graph_destroy(graph);
    else {
        drop_graph(world, which);
        world->graphs[which] = graph;
    }
}

void call_destroy(struct world *world)
{
    uint32_t which = next_below(world, GRAPHS + PLANS + SESSIONS + 1);
    if (which < GRAPHS) {
        drop_graph(world, which);
    } else if (which < GRAPHS + PLANS) {
        tarn_plan_destroy(world->plans[which - GRAPHS].plan);
        world->plans[which - GRAPHS] = (struct calls_plan){0};
    } else if (which < GRAPHS + PLANS + SESSIONS) {
        end_session(&world->sessions[which - GRAPHS - PLANS]);
    } else {
        tarn_builder_destroy(world->builder);
        world->builder = NULL;
    }
}

static void end_world(struct world *world)
{
    for (int i = 0; i < SESSIONS; i++) end_session(&world->sessions[i]);
    for (int i = 0; i < PLANS; i++) tarn_plan_destroy(world->plans[i].plan);
    for (int i = 0; i < GRAPHS; i++) tarn_graph_destroy(world->graphs[i]);
    tarn_builder_destroy(world->builder);
}

void fuzz_calls(const uint8_t *data, size_t size)
{
    static void (*const calls[])(struct world *) = {
        call_builder,      call_builder,    call_builder,   call_make_graph, call_ask_graph,
        call_transform,    call_graph_file, call_make_plan, call_ask_plan,   call_plan_file,
        call_make_session, call_bind,       call_copy,      call_submit,     call_wait,
        call_check,        call_destroy,    call_curve,     call_text,
    };
    struct world world = {.at = data, .end = data + size};
    while (world.at < world.end) calls[next_below(&world, sizeof calls / sizeof *calls)](&world);
    end_world(&world);
}
