/* Moves beside recomputation, to keep to a budget: what the files of this directory share. The
 * words:
 *
 *     start     a graph that moves start from: the given one, or one that recomputes
 *     question  which moves of a start are best for the budget, if copies take some time
 *     answer    the graph with these moves; it may not fit once it is placed
 *     refused   an answer that could not be placed within the budget */
#ifndef TARN_PLANNER_BUDGET_OFFLOAD_OFFLOADING_H
#define TARN_PLANNER_BUDGET_OFFLOAD_OFFLOADING_H

#include "planner/budget/attempt.h"
#include "planner/transform/offload/offload.h"

/* Times that the search is asked for less, each time by at least one part in TARN_OFFLOADING_LESS.
 */
enum { TARN_OFFLOADING_ASKED_MAX = 10, TARN_OFFLOADING_LESS = 200 };
/* Candidates are placed with one part in TARN_OFFLOADING_PLACE_PART of the usual work. Of those
 * refused the TARN_OFFLOADING_AGAIN_MAX fastest are placed again with more. */
enum { TARN_OFFLOADING_PLACE_PART = 16, TARN_OFFLOADING_AGAIN_MAX = 4 };
/* Graphs that moves start from: the given one, those of all multiples, and the least. */
enum { TARN_OFFLOADING_STARTS_MAX = 32 };

/* tarn_budgeting_look or tarn_budgeting_look_at_list */
typedef enum tarn_status (*tarn_budget_look)(struct tarn_graph *,
                                             const struct tarn_budget_options *, bool,
                                             const struct tarn_plan_options *,
                                             struct tarn_planned *, struct tarn_error *);

/* A graph that keeps to the budget, with its plan. */
struct tarn_offloading_found {
    struct tarn_planned made; /* no graph: no plan was made */
    uint64_t time_ns;
    uint64_t each_ns; /* of many iterations, if something that persists moves; else 0 */
    struct tarn_budget_report report;
    bool minds_less; /* than others, if copies take longer than modelled */
};

/* What is asked of a graph that moves start from, and the answer for the present budget. */
struct tarn_offloading_question {
    uint64_t percent; /* of their modelled time that copies take */
    uint64_t aim;     /* bytes to keep to: the budget, less what plans so far have missed */
    int asked;        /* how often */
    bool is_first;    /* answered with little effort so far, and may be refined */
    struct tarn_offload_choice choice; /* arcs: of the start's region, as many as it has gaps */
    struct tarn_graph *graph;          /* with the moves; NULL: there is no answer */
    uint64_t time_ns;                  /* of this graph */
};

enum { TARN_OFFLOADING_QUESTIONS = 2 };

/* A graph that moves start from: the given one, or one made of it that keeps to some budget. */
struct tarn_offloading_start {
    struct tarn_graph *graph; /* retained */
    struct tarn_hash hash;    /* of the graph */
    struct tarn_budget_report report;
    uint64_t budget;           /* that it was made for by a brief search; 0: by none */
    tarn_budget_look look;     /* by which it was made for it */
    uint64_t first_ns;         /* of its first answers the fastest; UINT64_MAX: there was none */
    struct tarn_region region; /* of the model and the choices */
    struct tarn_offload_model model;
    struct tarn_offloading_question
        questions[TARN_OFFLOADING_QUESTIONS]; /* copies a quarter slower, and as told */
};

/* A graph that was placed for the present budget and does not fit without waits that cost time. */
struct tarn_offloading_known {
    struct tarn_hash hash;
    uint64_t missing; /* as place_and_offer has told, above 0 */
};

/* As many as all questions can have. */
enum {
    TARN_OFFLOADING_KNOWN_MAX =
        TARN_OFFLOADING_STARTS_MAX * TARN_OFFLOADING_QUESTIONS * TARN_OFFLOADING_ASKED_MAX
};

/* An answer that was not placed within the budget. */
struct tarn_offloading_refused {
    struct tarn_offloading_start *start;
    struct tarn_offloading_question question; /* graph: retained */
};

struct tarn_offloading {
    struct tarn_graph *graph;
    struct tarn_budget_options budget;
    struct tarn_offload_options options;
    struct tarn_offload_terms terms;
    const struct tarn_plan_options *planning;
    struct tarn_deadline deadline;
    uint64_t bytes; /* the budget, the capacity of the first space counted */
    uint64_t before, before_ns;
    uint64_t no_less_ns, no_way_less_ns;
    struct tarn_offloading_found best;
    uint64_t least; /* the smallest footprint that a refusal has reported; UINT64_MAX: none */
    struct tarn_graph *smallest; /* the graph of that footprint; NULL: not known */
    struct tarn_budget_report smallest_report;
    bool is_brief;       /* that it fits is all that counts */
    bool has_budget;     /* else the capacity is one, if moves for which no op waits do not do */
    uint32_t place_part; /* placing may do one part in that many of the usual work */
    struct tarn_offloading_start starts[TARN_OFFLOADING_STARTS_MAX];
    uint32_t starts_count;
    uint32_t placed; /* candidates */
    struct tarn_offloading_refused
        refused[TARN_OFFLOADING_AGAIN_MAX]; /* the fastest, in this order */
    uint32_t refused_count;
    struct tarn_offloading_known known[TARN_OFFLOADING_KNOWN_MAX];
    uint32_t known_count;
    struct tarn_error *error;
};

static inline bool tarn_offloading_is_over(const struct tarn_offloading *offloading)
{
    return tarn_deadline_is_over(&offloading->deadline);
}

/* ---- Time and plans (plans.c) ---- */

/* The makespan by the model of tarn/simulate.h, in nanoseconds. */
enum tarn_status tarn_offloading_makespan(const struct tarn_graph *graph, uint64_t *ns);

/* The same, with the error of a caller that reports no other. */
enum tarn_status tarn_offloading_time(const struct tarn_offloading *offloading,
                                      const struct tarn_graph *graph, uint64_t *ns);

/* A plan without any search, whatever the capacities are. The caller destroys it. */
enum tarn_status tarn_offloading_plan_quickly(const struct tarn_offloading *offloading,
                                              struct tarn_graph *graph, struct tarn_plan **plan);

/* The plan for the budget; NULL: none was found. *missing: bytes by which to lower the next budget,
 * at least 1/TARN_OFFLOADING_LESS of it. */
enum tarn_status tarn_offloading_place(const struct tarn_offloading *offloading,
                                       struct tarn_graph *graph, struct tarn_plan **plan,
                                       uint64_t *missing);

/* Up to that, moves cost nothing. */
uint64_t tarn_offloading_free_ns(const struct tarn_offloading *offloading);

/* Nothing can be faster by more than one part in NOTHING. */
bool tarn_offloading_costs_nothing(const struct tarn_offloading *offloading);

/* Does a storage move for every budget? Then a plan without moves is not valid. */
bool tarn_offloading_always_moves(const struct tarn_offloading *offloading);

/* Takes over graph and plan if they are the best so far. Of those that take as long alone, the one
 * that takes less in a row of iterations, as far as copies run on behind the last op; relaxed: of
 * those that take as long then the one that minds slower copies less. */
enum tarn_status tarn_offloading_offer(struct tarn_offloading *offloading,
                                       struct tarn_planned *made, uint64_t time_ns,
                                       const struct tarn_budget_report *report, bool relaxed);

/* Places the graph, with waits between its streams if it does not fit without, and offers it if it
 * fits. *graph is replaced by the last that was tried if it does not fit, else by NULL. *missing:
 * 0: it fits without waits; else bytes by which to lower the next budget. */
enum tarn_status tarn_offloading_place_and_offer(struct tarn_offloading *offloading,
                                                 const struct tarn_offloading_start *start,
                                                 struct tarn_graph **graph, bool relaxed,
                                                 bool *fits, uint64_t *missing);

/* ---- Questions (questions.c) ---- */

/* Builds the graph with the moves of a choice; of an empty one the graph itself. */
enum tarn_status tarn_offloading_build(const struct tarn_offloading *offloading,
                                       const struct tarn_offloading_start *start,
                                       const struct tarn_offload_choice *choice,
                                       struct tarn_graph **graph);

/* Answers the question for its aim, with one part in `part` of the effort. An answer that is there
 * stays if no faster one is found. */
enum tarn_status tarn_offloading_ask(struct tarn_offloading *offloading,
                                     struct tarn_offloading_start *start,
                                     struct tarn_offloading_question *question, uint64_t part);

/* Forgets the answer; the next one is for the budget. */
void tarn_offloading_begin_again(const struct tarn_offloading *offloading,
                                 struct tarn_offloading_question *question);

/* The start from an equal graph; NULL: there is none. */
struct tarn_offloading_start *tarn_offloading_find_start(struct tarn_offloading *offloading,
                                                         const struct tarn_graph *graph);

/* Adds a graph that moves start from, without any answers. */
enum tarn_status tarn_offloading_add_start(struct tarn_offloading *offloading,
                                           struct tarn_graph *graph,
                                           const struct tarn_budget_report *report,
                                           struct tarn_offloading_start **added);

/* Forgets the refused answers. */
void tarn_offloading_forget_refused(struct tarn_offloading *offloading);

/* Forgets all starts, and the refused answers. */
void tarn_offloading_finish_starts(struct tarn_offloading *offloading);

/* The fastest answer: of equal ones of the slower copies, then of the first graph. is_first: of
 * those with little effort. NULL: there is none. */
struct tarn_offloading_question *tarn_offloading_find_fastest(struct tarn_offloading *offloading,
                                                              bool is_first,
                                                              struct tarn_offloading_start **of);

/* ---- Plans of answers (answers.c) ---- */

/* Could the answer be better than the best? Of those that take as long, the one that minds slower
 * copies less, or takes less in a row of iterations. */
bool tarn_offloading_may_be_better(const struct tarn_offloading *offloading,
                                   const struct tarn_offloading_question *question);

/* Places answers that take at most limit_ns, the fastest first, until none of the others can be
 * better. */
enum tarn_status tarn_offloading_settle(struct tarn_offloading *offloading, uint64_t limit_ns);

/* Places the fastest of the refused answers once more, and forgets them. */
enum tarn_status tarn_offloading_try_refused(struct tarn_offloading *offloading);

/* Asks which moves from that graph are best, unless an equal graph was asked. Those that cost
 * nothing are placed at once. *asked: the start, whose first_ns is then set. */
enum tarn_status tarn_offloading_try_moves(struct tarn_offloading *offloading,
                                           struct tarn_graph *from,
                                           const struct tarn_budget_report *report,
                                           struct tarn_offloading_start **asked);

/* ---- Together with the ways of a budget (search.c) ---- */

/* Finds what keeps to `bytes` without moves, for a graph that was made from the given graph.
 * Returns TARN_OK also if there is nothing: then *made is empty or, if *least is below UINT64_MAX,
 * the graph of that footprint, which is the smallest found. */
enum tarn_status tarn_offloading_ask_budget(struct tarn_offloading *offloading,
                                            tarn_budget_look look, struct tarn_graph *from,
                                            uint64_t bytes, bool is_brief,
                                            struct tarn_planned *made,
                                            struct tarn_budget_report *report, uint64_t *least);

/* Keeps the best plan that is found for the budget; TARN_OK also if there is none. */
enum tarn_status tarn_offloading_search(struct tarn_offloading *offloading);

/* ---- The least (least.c) ---- */

/* After a search without an answer: the smallest footprint that a refusal is to report, or a plan
 * that fits after all. Forgets the starts of before. */
enum tarn_status tarn_offloading_find_least(struct tarn_offloading *offloading);

/* ---- Without a budget (free.c) ---- */

/* The graph with the moves for which no op waits; the given one, shared, if there are none. */
enum tarn_status tarn_offloading_move_free(struct tarn_offloading *offloading,
                                           struct tarn_graph **result);

/* Can the arena be placed within the capacity that the caller, and that the graph gives its first
 * memory space? */
enum tarn_status tarn_offloading_fits(const struct tarn_offloading *offloading,
                                      struct tarn_graph *graph, bool *fits);

#endif
