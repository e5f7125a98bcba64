/* Places answers in the order of their modelled time until one fits, so that nothing is placed that
 * is slower than the answer. What does not fit is asked again for a smaller budget. Bytes that the
 * budget leaves are spent on earlier triggers and later releases, if this costs no time.
 *
 * A placement that is refused takes all the work that it may do, one that fits mostly little. So
 * candidates may do little, and the fastest of those refused are placed again with more work in the
 * end. Cost: some placements, and a search for moves for each that is refused. */
#include "offloading.h"
#include "streams/base/checked.h"
#include "streams/base/error.h"

/* Candidates are placed with one part in TARN_OFFLOADING_PLACE_PART of the usual work. Of those
 * refused the fastest are placed with one part in AGAIN_PART. */
enum { AGAIN_PART = 3 };
/* Times that a brief search is asked for less. */
enum { ASKED_BRIEFLY = 3 };
/* Once a plan fits, so many candidates are placed in a row at most. */
enum { PLACED_MAX = 24 };
/* First answers are found with one part in FIRST_PART of the effort. All of it is spent on those of
 * the given graph that take at most one part in NEAR longer than without moves. */
enum { FIRST_PART = 8, NEAR = 8 };
/* How often slack is shared out, each time one part in RELAXED_PART less of the budget. */
enum { RELAXED_MAX = 4, RELAXED_PART = 32 };

/* Spends the bytes that the budget leaves on earlier triggers and later releases of the same gaps,
 * as many bytes as can be placed. */
static enum tarn_status relax(struct tarn_offloading *offloading,
                              struct tarn_offloading_start *start,
                              const struct tarn_offloading_question *question)
{
    const struct tarn_offload_choice *choice = &question->choice;
    struct tarn_offload_model *model = &start->model;
    enum tarn_status status = TARN_OK;
    for (uint64_t part = 0; part < RELAXED_MAX && status == TARN_OK && choice->count > 0; part++) {
        struct tarn_offload_choice relaxed = *choice;
        bool fits = false;
        uint64_t missing, time_ns = 0, budget = question->aim - question->aim / RELAXED_PART * part;
        struct tarn_graph *graph;
        if (budget < choice->peak || tarn_offloading_is_over(offloading)) break;
        struct tarn_region_mark mark = tarn_region_mark(model->region);
        relaxed.arcs =
            tarn_region_copy(model->region, choice->arcs, choice->count, sizeof *choice->arcs);
        if (!relaxed.arcs || tarn_offload_relax(model, budget, &relaxed) != TARN_OK)
            return tarn_error_no_memory(offloading->error);
        status = tarn_offloading_build(offloading, start, &relaxed, &graph);
        if (status == TARN_OK) status = tarn_offloading_time(offloading, graph, &time_ns);
        if (status == TARN_OK && time_ns <= offloading->best.time_ns)
            status =
                tarn_offloading_place_and_offer(offloading, start, &graph, true, &fits, &missing);
        tarn_graph_destroy(graph);
        tarn_region_release(model->region, mark);
        if (fits) break;
    }
    return status;
}

bool tarn_offloading_may_be_better(const struct tarn_offloading *offloading,
                                   const struct tarn_offloading_question *question)
{
    const struct tarn_offloading_found *best = &offloading->best;
    if (!best->made.graph || question->time_ns < best->time_ns) return true;
    return question->time_ns == best->time_ns && ((question->percent > 100 && !best->minds_less) ||
                                                  tarn_offloading_always_moves(offloading));
}

/* Keeps a refused answer, if it is one of the fastest. Takes its graph. */
static enum tarn_status note_refused(struct tarn_offloading *offloading,
                                     struct tarn_offloading_start *start,
                                     struct tarn_offloading_question *question)
{
    struct tarn_offloading_refused *refused = offloading->refused;
    struct tarn_offload_choice *choice = &question->choice;
    uint32_t i = offloading->refused_count;
    bool is_full = i == TARN_OFFLOADING_AGAIN_MAX;
    if (is_full && question->time_ns >= refused[i - 1].question.time_ns) {
        tarn_graph_destroy(question->graph);
        return TARN_OK;
    }
    choice->arcs =
        tarn_region_copy(&start->region, choice->arcs, choice->count, sizeof *choice->arcs);
    if (!choice->arcs) {
        tarn_graph_destroy(question->graph);
        return tarn_error_no_memory(offloading->error);
    }
    if (is_full)
        tarn_graph_destroy(refused[--i].question.graph);
    else
        offloading->refused_count++;
    for (; i > 0 && question->time_ns < refused[i - 1].question.time_ns; i--)
        refused[i] = refused[i - 1];
    refused[i] = (struct tarn_offloading_refused){start, *question};
    return TARN_OK;
}

/* Bytes that the graph missed when it was placed; 0: it was not, or it fits. */
static uint64_t known_missing(const struct tarn_offloading *offloading, struct tarn_hash hash)
{
    for (uint32_t i = 0; i < offloading->known_count; i++)
        if (tarn_hash_equal(hash, offloading->known[i].hash)) return offloading->known[i].missing;
    return 0;
}

/* Places an answer, and takes its graph. *missing: 0: nothing is left to be asked; else bytes by
 * which to lower the next budget. */
static enum tarn_status place_answer(struct tarn_offloading *offloading,
                                     struct tarn_offloading_start *start,
                                     struct tarn_offloading_question *tried, uint64_t *missing)
{
    const bool relaxed = tried->percent > 100;
    const struct tarn_hash hash = tarn_graph_hash(tried->graph);
    bool fits;
    *missing = known_missing(offloading, hash);
    if (*missing > 0) {
        tarn_graph_destroy(tried->graph);
        return TARN_OK;
    }
    enum tarn_status status =
        tarn_offloading_place_and_offer(offloading, start, &tried->graph, relaxed, &fits, missing);
    if (status == TARN_OK && fits && !offloading->is_brief)
        status = relax(offloading, start, tried);
    if (fits && offloading->best.time_ns <= tried->time_ns) *missing = 0;
    if (*missing > 0 && offloading->known_count < TARN_OFFLOADING_KNOWN_MAX)
        offloading->known[offloading->known_count++] =
            (struct tarn_offloading_known){hash, *missing};
    if (fits) return status;
    /* with waits between its streams it may take longer */
    if (status == TARN_OK) status = tarn_offloading_time(offloading, tried->graph, &tried->time_ns);
    if (status == TARN_OK && !offloading->is_brief) return note_refused(offloading, start, tried);
    tarn_graph_destroy(tried->graph);
    return status;
}

/* Places one answer. If it is refused, or fits only with waits that cost time, the question is
 * asked again for fewer bytes. */
static enum tarn_status try_answer(struct tarn_offloading *offloading,
                                   struct tarn_offloading_start *start,
                                   struct tarn_offloading_question *question)
{
    uint64_t missing;
    struct tarn_offloading_question tried = *question;
    question->graph = NULL;
    question->time_ns = UINT64_MAX;
    enum tarn_status status = place_answer(offloading, start, &tried, &missing);
    if (status != TARN_OK || missing == 0) return status;
    uint64_t aim = question->aim > missing ? question->aim - missing : 0;
    if (aim >= tried.choice.peak) /* the answer would be the same */
        aim = tried.choice.peak > missing ? tried.choice.peak - missing : 0;
    question->aim = aim;
    int asked_max = offloading->is_brief ? ASKED_BRIEFLY : TARN_OFFLOADING_ASKED_MAX;
    return question->asked < asked_max ? tarn_offloading_ask(offloading, start, question, 4)
                                       : TARN_OK;
}

enum tarn_status tarn_offloading_settle(struct tarn_offloading *offloading, uint64_t limit_ns)
{
    const uint32_t placed_max = offloading->placed + PLACED_MAX;
    enum tarn_status status = TARN_OK;
    while (status == TARN_OK && !tarn_offloading_is_over(offloading)) {
        struct tarn_offloading_start *start = NULL;
        struct tarn_offloading_question *question =
            tarn_offloading_find_fastest(offloading, false, &start);
        if (!question || question->time_ns > limit_ns) break;
        if (!tarn_offloading_may_be_better(offloading, question)) break;
        bool is_enough = offloading->is_brief || offloading->placed >= placed_max;
        if (offloading->best.made.graph && is_enough) break;
        status = try_answer(offloading, start, question);
    }
    return status;
}

enum tarn_status tarn_offloading_try_refused(struct tarn_offloading *offloading)
{
    enum tarn_status status = TARN_OK;
    offloading->place_part = AGAIN_PART;
    for (uint32_t i = 0; i < offloading->refused_count && status == TARN_OK; i++) {
        struct tarn_offloading_refused *refused = &offloading->refused[i];
        struct tarn_offloading_question *question = &refused->question;
        bool fits;
        uint64_t missing;
        if (!tarn_offloading_may_be_better(offloading, question) ||
            tarn_offloading_is_over(offloading))
            break;
        status = tarn_offloading_place_and_offer(offloading, refused->start, &question->graph,
                                                 question->percent > 100, &fits, &missing);
        if (status != TARN_OK || !fits || offloading->best.time_ns > question->time_ns) continue;
        offloading->place_part = TARN_OFFLOADING_PLACE_PART;
        status = relax(offloading, refused->start, question);
        break;
    }
    offloading->place_part = TARN_OFFLOADING_PLACE_PART;
    tarn_offloading_forget_refused(offloading);
    return status;
}

/* ---- First answers ---- */

static enum tarn_status find_bounds(struct tarn_offloading *offloading,
                                    const struct tarn_offload_model *model)
{
    uint64_t bytes = offloading->bytes;
    enum tarn_status status = TARN_OK;
    if (!tarn_offloading_is_over(offloading))
        status = tarn_offload_no_less(model, bytes, false, &offloading->deadline,
                                      &offloading->no_less_ns);
    if (status == TARN_OK && !tarn_offloading_is_over(offloading))
        status = tarn_offload_no_less(model, bytes, true, &offloading->deadline,
                                      &offloading->no_way_less_ns);
    return status == TARN_OK ? TARN_OK : tarn_error_no_memory(offloading->error);
}

enum tarn_status tarn_offloading_try_moves(struct tarn_offloading *offloading,
                                           struct tarn_graph *from,
                                           const struct tarn_budget_report *report,
                                           struct tarn_offloading_start **asked)
{
    bool is_given = from == offloading->graph;
    *asked = tarn_offloading_find_start(offloading, from);
    if (*asked) return TARN_OK;
    enum tarn_status status = tarn_offloading_add_start(offloading, from, report, asked);
    struct tarn_offloading_start *start = *asked;
    if (status == TARN_OK && is_given) status = find_bounds(offloading, &start->model);
    for (int k = 0; k < TARN_OFFLOADING_QUESTIONS && status == TARN_OK &&
                    !tarn_offloading_costs_nothing(offloading);
         k++) {
        struct tarn_offloading_question *question = &start->questions[k];
        question->is_first = true;
        status = tarn_offloading_ask(offloading, start, question, FIRST_PART);
        bool is_near = is_given && question->time_ns > tarn_offloading_free_ns(offloading) &&
                       question->time_ns <= offloading->before_ns + offloading->before_ns / NEAR;
        if (status == TARN_OK && is_near) {
            question->is_first = false;
            status = tarn_offloading_ask(offloading, start, question, 1);
        }
        if (status == TARN_OK)
            status = tarn_offloading_settle(offloading, tarn_offloading_free_ns(offloading));
        start->first_ns = tarn_smaller(start->first_ns, question->time_ns);
    }
    return status;
}
