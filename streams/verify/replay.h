/* Between the two parts of the replay: what it knows while it runs, and what it says is wrong. */
#ifndef TARN_STREAMS_VERIFY_REPLAY_H
#define TARN_STREAMS_VERIFY_REPLAY_H

#include "byte_map.h"
#include "control.h"
#include "past.h"
#include "verdict.h"

struct tarn_touch {
    uint32_t stream, node;
    uint32_t next; /* index into the pool, or TARN_NONE */
};

struct tarn_touch_pool {
    struct tarn_touch *items;
    size_t room;
    uint32_t count;
    uint32_t free; /* list of those given back */
};

struct tarn_content {
    uint32_t touches; /* the last touch of every stream that touched this version */
    uint32_t writer;  /* node that made this version; TARN_NONE: nobody yet */
    uint32_t made_in; /* iteration of its first write; TARN_NONE: never written */
    uint32_t spoiler; /* node that overwrote some of its bytes, or TARN_NONE */
    uint32_t spoiler_storage;
    bool dubious; /* what lay beneath was not bound to come first: being after this content says
                     nothing about being after that */
};

struct tarn_proof_replay {
    struct tarn_region *region; /* of all arrays */
    const struct tarn_plan *plan;
    const struct tarn_graph *graph;
    struct tarn_verdict *verdict;
    struct tarn_past past;
    struct tarn_byte_map map;
    struct tarn_touch_pool pool;
    struct tarn_content *contents; /* by storage */
    struct tarn_control control;
    uint64_t looks_left; /* storages that may still be looked at beneath dubious content */
    bool no_memory;
};

/* Each writes one violation into the verdict; "it" is the step that runs now. */

#endif
