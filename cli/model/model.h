/* The model of a plan for pictures and answers: the launches of all streams in one order, the waits
 * of each launch, and the holders of bytes with their offsets. It is read through the public API
 * once, into plain arrays with small indices. Orders and lifetimes are found anew from these, not
 * asked of the library: pictures and answers are also for plans that the verifier refuses, and they
 * are a second opinion on what it accepts.
 *
 *
 *     launch   0 .. launches_count - 1, in an order that lists and waits allow
 *     holder   0 .. holders_count - 1: a planned storage or a workspace, by writer, half, offset
 *
 * Places count the launches of one stream. Memory spaces lie one after the other in one range of
 * offsets, so they are drawn like one arena. */
#ifndef TARN_CLI_MODEL_MODEL_H
#define TARN_CLI_MODEL_MODEL_H

#include <stdbool.h>
#include <stddef.h>

#include "tarn.h"

/* Memory that dies together: whatever a picture or an answer is made of. All zero: nothing was
 * taken yet. */
struct tarn_memory {
    void *newest;
    bool is_exhausted; /* some call has returned NULL */
};

/* `count` items of `size` bytes, zero-filled; count 0 gives a valid pointer. NULL: no memory, which
 * is_exhausted remembers. */
void *tarn_memory_take(struct tarn_memory *memory, size_t count, size_t size);
void tarn_memory_finish(struct tarn_memory *memory);

struct tarn_launch {
    tarn_op op;
    tarn_stream stream;
    uint32_t place;
    uint64_t cost; /* ns */
};

/* A launch that reads or writes a storage. */
struct tarn_model_touch {
    uint32_t launch;
    bool writes;
};

enum tarn_holder_kind {
    TARN_HOLDS_INTERMEDIATE,
    TARN_HOLDS_GRADIENT,
    TARN_HOLDS_OUTPUT,
    TARN_HOLDS_WORKSPACE
};
#define TARN_HOLDER_KINDS 4

/* An op may be done with its workspace before it writes its outputs (workspace_first). Then the
 * workspace lives in the first half of the launch, and outputs that begin with this launch live in
 * the second half. So the two may share bytes. */
enum tarn_holder_half { TARN_WHOLE, TARN_FIRST_HALF, TARN_SECOND_HALF };

struct tarn_holder {
    const char *name;   /* of the root tensor, or of the workspace's op */
    tarn_tensor tensor; /* the root; TARN_NONE: a workspace */
    tarn_op op;         /* the op of a workspace; TARN_NONE: a tensor's storage */
    enum tarn_holder_kind kind;
    tarn_space space;
    uint64_t offset; /* in the range of all spaces, see tarn_holder_offset */
    uint64_t size;
    uint64_t padding;                       /* reserved after the exact bytes */
    uint32_t group;                         /* contiguous, or TARN_NONE */
    uint32_t writer;                        /* the launch that touches it first */
    const struct tarn_model_touch *touches; /* by launch */
    uint32_t touches_count;
    enum tarn_holder_half half;
    bool pinned;    /* an output: no later holder has its bytes */
    bool certified; /* one of those that the bound counts */
};

/* A memory space's part of the plan. */
struct tarn_model_space {
    const char *name; /* "": the only space of a graph that declares none */
    uint64_t begin;   /* of its arena in the range of all spaces */
    uint64_t footprint, persistent;
    uint64_t bound; /* 0: unknown */
    uint64_t serial_peak;
    uint64_t capacity; /* 0: no limit */
    uint64_t alignment;
};

/* Lists of launches, one after the other: list i is ids[begin[i]] .. ids[begin[i + 1] - 1]. */
struct tarn_lists {
    uint32_t *begin;
    uint32_t *ids;
};

struct tarn_model {
    struct tarn_memory memory; /* has all arrays */
    const struct tarn_plan *plan;
    const struct tarn_graph *graph; /* the plan's */
    struct tarn_plan_summary summary;
    struct tarn_certificate certificate;
    bool has_certificate;
    bool is_cyclic; /* lists and waits contradict each other: no order exists */
    uint32_t streams_count, launches_count, holders_count;
    struct tarn_model_space *spaces;
    uint32_t spaces_count; /* at least 1 */
    struct tarn_launch *launches;
    uint32_t *launch_of;              /* op -> launch; TARN_NONE: not launched */
    struct tarn_lists streams;        /* the launches of a stream */
    struct tarn_lists waits, waiters; /* launches that it waits for, and that wait for it */
    struct tarn_lists previous_waits; /* the same, of the previous iteration */
    struct tarn_holder *holders;
    uint64_t sum;         /* exact bytes of all holders */
    uint64_t serial_peak; /* most exact bytes alive when launches run one by one in this order */
};

/* Reads a plan, which must outlive the model; it may be one that the verifier refuses.
 * TARN_SYSTEM: no memory; the model is empty then. Cost: O(V S + E + holders log holders). */
enum tarn_status tarn_model_init(struct tarn_model *model, const struct tarn_plan *plan,
                                 struct tarn_error *error);
void tarn_model_finish(struct tarn_model *model);

/* The error to report if no memory is left. */
struct tarn_error tarn_model_no_memory(void);

/* Fills first[h]: the first place in a stream whose launch comes after every use of holder h, and
 * may have its bytes, as all later launches of the stream; the stream's length: no launch may. pre:
 * room for holders_count. TARN_SYSTEM. Cost: O(launches + waits + touches). */
enum tarn_status tarn_model_first(const struct tarn_model *model, tarn_stream stream,
                                  uint32_t *first);

/* Arms of a conditional in which two storages are, that exclude each other. */
struct tarn_model_arms {
    uint32_t conditional, arm, other_arm;
};
/* Do the writers of two holders never run in one iteration? Then they are never both there. */
bool tarn_model_exclude(const struct tarn_model *model, uint32_t a, uint32_t b,
                        struct tarn_model_arms *arms);

/* Does the certificate's cut go through the next launch of that stream? Linear in streams. */
bool tarn_model_cuts_inside(const struct tarn_model *model, tarn_stream stream);

static inline uint32_t tarn_model_length(const struct tarn_model *model, tarn_stream stream)
{
    return model->streams.begin[stream + 1] - model->streams.begin[stream];
}

static inline uint32_t tarn_model_at(const struct tarn_model *model, tarn_stream stream,
                                     uint32_t place)
{
    return model->streams.ids[model->streams.begin[stream] + place];
}

/* Counted from the start of the holder's space. */
static inline uint64_t tarn_holder_offset(const struct tarn_model *model,
                                          const struct tarn_holder *holder)
{
    return holder->offset - model->spaces[holder->space].begin;
}

static inline uint64_t tarn_holder_reserved(const struct tarn_holder *holder)
{
    return holder->size + holder->padding;
}

/* Fills in the holders of a model whose launches are there. False: no memory. */
bool tarn_holders_read(struct tarn_model *model);

#endif
