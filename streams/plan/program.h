/* The program: the compiled form of a plan that sessions run. Per stream, a flat list of steps; a
 * step is waits, a launch, and whether any step will wait for it.
 *
 *     stream s:  [waits][boundary waits] launch (record) · [waits] launch · launch (record) · ...
 *
 * Positions in a stream count launched ops only. */
#ifndef TARN_STREAMS_PLAN_PROGRAM_H
#define TARN_STREAMS_PLAN_PROGRAM_H

#include "plan.h"

struct tarn_program_wait {
    uint32_t stream;
    uint32_t place;    /* in that stream's list */
    uint32_t previous; /* 1: of the previous iteration, 0: of this one */
};

struct tarn_program_step {
    uint32_t op;
    uint32_t stream;
    uint32_t waits_begin, waits_end; /* into tarn_program.waits */
    bool record;                     /* some step waits for this one */
};

struct tarn_program {
    struct tarn_region region; /* of all arrays */
    uint32_t streams_count;
    uint32_t steps_count;
    uint32_t *begin; /* streams_count + 1 */
    struct tarn_program_step *steps;
    struct tarn_program_wait *waits;
    uint32_t waits_count;
    uint32_t *step_of; /* op -> step; TARN_NONE for views */
    uint32_t *order;   /* all steps in one topological order: list order if that is legal */
};

/* The plan must be well-formed (ids in range, every launched op exactly once). TARN_REJECTED: lists
 * and waits form a cycle; TARN_SYSTEM. */
enum tarn_status tarn_program_init(struct tarn_program *program, const struct tarn_plan *plan,
                                   struct tarn_error *error);
void tarn_program_finish(struct tarn_program *program);

/* The plan's program, compiled by the first call and then kept with the plan, so that sessions run
 * the program that the verifier has proved. *program is valid as long as the plan. Any thread. If
 * two threads call first at the same time, each compiles, and both get the program that is kept.
 * pre, errors: as tarn_program_init. */
enum tarn_status tarn_plan_program(const struct tarn_plan *plan,
                                   const struct tarn_program **program, struct tarn_error *error);

/* To be called by the plan's maker after changes to lists or waits: the next call of
 * tarn_plan_program compiles again. pre: the program is not in use, nor the plan in another
 * thread. */
void tarn_plan_drop_program(struct tarn_plan *plan);

/* Is this the program of the plan as it is now? For assertions; cost: linear in steps and waits. */
bool tarn_program_is_valid(const struct tarn_program *program, const struct tarn_plan *plan);

/* A step of an iteration is a node, numbered iteration * steps_count + step. The k-th node that it
 * depends on directly; TARN_NONE if there is none (the beginning of a stream, a wait on the
 * previous iteration in iteration 0). */
uint32_t tarn_program_predecessors_count(const struct tarn_program *program, uint32_t node);
uint32_t tarn_program_predecessor(const struct tarn_program *program, uint32_t node, uint32_t k);

/* Writes the nodes of `iterations` iterations in one legal order: first the nodes that the goals
 * need, goal by goal, then the rest iteration by iteration. `nodes` has room for all. TARN_SYSTEM:
 * no memory.
 */
enum tarn_status tarn_program_linearize(const struct tarn_program *program, uint32_t iterations,
                                        const uint32_t *goals, uint32_t goals_count,
                                        uint32_t *nodes);

#endif
