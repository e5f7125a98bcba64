/* The state of an evaluator while it runs a policy, which its parts share. */
#ifndef TARN_PLANNER_TRANSFORM_RECOMPUTE_EVALUATOR_H
#define TARN_PLANNER_TRANSFORM_RECOMPUTE_EVALUATOR_H

#include "measure.h"
#include "time.h"

/* An execution whose reads are being made available. */
struct frame {
    uint32_t form;
    uint32_t next; /* of its reads, to be looked at */
};

/* The schedule up to the first backward op, if no policy changes anything before it. */
struct beginning {
    bool is_known;
    uint32_t count, copies_count, reads_count;
    uint32_t *last_read; /* copy -> execution */
    uint32_t *latest, *updates;
};

struct tarn_evaluator {
    const struct tarn_recompute_model *model;
    struct tarn_tail tail;
    struct beginning beginning;
    bool begins_alike;         /* whatever the policy */
    bool whole;                /* the tail is run, too */
    struct tarn_timing timing; /* of several streams */
    const struct tarn_policy *policy;
    struct tarn_schedule schedule;
    struct tarn_region *region; /* that lists grow in */
    size_t executions_room, copies_room, reads_room;
    struct tarn_lives lives;
    uint32_t *latest;  /* version -> its copy that can be read, or TARN_NONE */
    uint32_t *updates; /* persistent storage -> writes so far */
    uint32_t *passing; /* versions that are there for the current primary op only */
    uint32_t passing_count;
    struct frame *frames;
    uint32_t *guessed; /* version -> guess in which it was counted last */
    uint32_t guess;
    uint32_t place;
    uint32_t next_drop;   /* of the model's drops */
    uint32_t next_launch; /* of the model's launches */
    uint32_t next_cut;    /* of the policy's */
    bool stuck;           /* the policy cannot be carried out */
    bool no_memory;
};

/* ---- recompute/form_choice.c ---- */

/* The form by which to recompute a version: the fastest of the forms that miss the fewest reads.
 * TARN_NONE: there is none. */
uint32_t tarn_evaluator_form_for(const struct tarn_evaluator *evaluator, uint32_t version);
/* Of the whole forms in the range, which belong to one op, the form that takes the least time
 * together with the time of its reads. */
uint32_t tarn_evaluator_cheapest_form(struct tarn_evaluator *evaluator, struct tarn_range range);

#endif
