/* Asks which moves are best. Each graph that moves start from is asked two questions: which moves
 * are best, and which are best if copies take a quarter longer. Cost: a search for moves for each
 * question. */
#include <assert.h>
#include <string.h>

#include "offloading.h"
#include "planner/transform/recipe.h"
#include "streams/base/error.h"

/* Places that a step of effort looks at. */
enum { STEP_WORK = 1000000 };
/* Percent of their modelled time that copies may take without making an op wait, if that is
 * free. */
enum { SLOWER = 125 };

enum tarn_status tarn_offloading_build(const struct tarn_offloading *offloading,
                                       const struct tarn_offloading_start *start,
                                       const struct tarn_offload_choice *choice,
                                       struct tarn_graph **graph)
{
    *graph = NULL;
    if (choice->count == 0) {
        *graph = tarn_graph_retain(start->graph);
        return TARN_OK;
    }
    enum tarn_status status = tarn_offload_build(&start->model, choice, graph, offloading->error);
    if (status == TARN_OK && start->graph != offloading->graph)
        status = tarn_transform_compose(start->graph, *graph, offloading->error);
    return status;
}

enum tarn_status tarn_offloading_ask(struct tarn_offloading *offloading,
                                     struct tarn_offloading_start *start,
                                     struct tarn_offloading_question *question, uint64_t part)
{
    uint64_t work = offloading->options.effort * STEP_WORK / part, time_ns = 0;
    if (tarn_offloading_is_over(offloading) || question->aim == 0) return TARN_OK;
    question->asked++;
    struct tarn_region_mark mark = tarn_region_mark(&start->region);
    struct tarn_offload_choice choice;
    tarn_offload_slow(&start->model, question->percent);
    enum tarn_status status =
        tarn_offload_within(&start->model, question->aim, work, &offloading->deadline, &choice);
    tarn_offload_slow(&start->model, 100);
    if (status != TARN_OK) return tarn_error_no_memory(offloading->error);
    struct tarn_graph *graph = NULL;
    if (choice.peak <= question->aim)
        status = tarn_offloading_build(offloading, start, &choice, &graph);
    if (status == TARN_OK && graph) status = tarn_offloading_time(offloading, graph, &time_ns);
    if (status == TARN_OK && graph && (!question->graph || time_ns < question->time_ns)) {
        struct tarn_offload_arcs *arcs = question->choice.arcs;
        if (choice.count > 0) memcpy(arcs, choice.arcs, choice.count * sizeof *arcs);
        question->choice = choice;
        question->choice.arcs = arcs;
        question->time_ns = time_ns;
        tarn_graph_destroy(question->graph);
        question->graph = tarn_graph_retain(graph);
    }
    tarn_graph_destroy(graph);
    tarn_region_release(&start->region, mark);
    return status;
}

void tarn_offloading_begin_again(const struct tarn_offloading *offloading,
                                 struct tarn_offloading_question *question)
{
    tarn_graph_destroy(question->graph);
    question->graph = NULL;
    question->time_ns = UINT64_MAX;
    question->aim = offloading->bytes;
    question->asked = 0;
}

/* ---- Starts ---- */

struct tarn_offloading_start *tarn_offloading_find_start(struct tarn_offloading *offloading,
                                                         const struct tarn_graph *graph)
{
    const struct tarn_hash hash = tarn_graph_hash(graph);
    for (uint32_t i = 0; i < offloading->starts_count; i++)
        if (tarn_hash_equal(offloading->starts[i].hash, hash)) return &offloading->starts[i];
    return NULL;
}

enum tarn_status tarn_offloading_add_start(struct tarn_offloading *offloading,
                                           struct tarn_graph *graph,
                                           const struct tarn_budget_report *report,
                                           struct tarn_offloading_start **added)
{
    assert(offloading->starts_count < TARN_OFFLOADING_STARTS_MAX);
    struct tarn_offloading_start *start = *added = &offloading->starts[offloading->starts_count++];
    *start = (struct tarn_offloading_start){.graph = tarn_graph_retain(graph),
                                            .hash = tarn_graph_hash(graph),
                                            .report = *report,
                                            .first_ns = UINT64_MAX};
    enum tarn_status status = tarn_offload_model_init(&start->model, &start->region, graph,
                                                      &offloading->terms, offloading->error);
    for (int k = 0; k < TARN_OFFLOADING_QUESTIONS && status == TARN_OK; k++) {
        struct tarn_offloading_question *question = &start->questions[k];
        question->percent = k == 0 ? SLOWER : 100;
        question->choice.arcs = tarn_region_take(&start->region, start->model.gaps_count,
                                                 sizeof *question->choice.arcs);
        if (!question->choice.arcs) status = tarn_error_no_memory(offloading->error);
        tarn_offloading_begin_again(offloading, question);
    }
    return status;
}

void tarn_offloading_forget_refused(struct tarn_offloading *offloading)
{
    for (uint32_t i = 0; i < offloading->refused_count; i++)
        tarn_graph_destroy(offloading->refused[i].question.graph);
    offloading->refused_count = 0;
}

void tarn_offloading_finish_starts(struct tarn_offloading *offloading)
{
    tarn_offloading_forget_refused(offloading);
    for (uint32_t i = 0; i < offloading->starts_count; i++) {
        struct tarn_offloading_start *start = &offloading->starts[i];
        for (int k = 0; k < TARN_OFFLOADING_QUESTIONS; k++)
            tarn_graph_destroy(start->questions[k].graph);
        tarn_graph_destroy(start->graph);
        tarn_region_finish(&start->region);
    }
    offloading->starts_count = 0;
}

struct tarn_offloading_question *tarn_offloading_find_fastest(struct tarn_offloading *offloading,
                                                              bool is_first,
                                                              struct tarn_offloading_start **of)
{
    struct tarn_offloading_question *best = NULL;
    for (int k = 0; k < TARN_OFFLOADING_QUESTIONS; k++) {
        for (uint32_t i = 0; i < offloading->starts_count; i++) {
            struct tarn_offloading_question *question = &offloading->starts[i].questions[k];
            if (!question->graph || (is_first && !question->is_first)) continue;
            if (best && question->time_ns >= best->time_ns) continue;
            best = question;
            *of = &offloading->starts[i];
        }
    }
    return best;
}
