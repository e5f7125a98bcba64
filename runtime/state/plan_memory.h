/* The memory of a plan's storages: one allocation for every memory space, for arena and persistent
 * part, and the address of every storage. A session has one; a shared arena has one without
 * addresses. */
#ifndef TARN_RUNTIME_STATE_PLAN_MEMORY_H
#define TARN_RUNTIME_STATE_PLAN_MEMORY_H

#include "memory_use.h"
#include "streams/base/region.h"
#include "streams/graph/report.h"
#include "streams/plan/plan.h"
#include "tarn/session.h"

/* The memory of one memory space. */
struct tarn_memory_part {
    void *memory; /* one allocation: the arena, then the persistent part; NULL: empty */
    struct tarn_memory_needs needs;
    uint64_t persistent_begin;  /* in it */
    bool is_borrowed;           /* the caller's, or a tarn_arena's */
    struct tarn_memory_use use; /* record of the caller's memory */
};

/* A window's registration with a communicator. */
struct tarn_registered {
    struct tarn_registrar registrar;
    void *handle;
};

struct tarn_plan_memory {
    const struct tarn_plan *plan;
    struct tarn_device device;
    struct tarn_memory_part *parts; /* by memory space of the plan's graph */
    uint32_t parts_count;
    struct tarn_registered *registered;
    size_t registered_count;
    bool is_bound;    /* the caller binds persistent tensors to its own memory */
    bool on_host;     /* host code may follow addresses, in all spaces */
    void **addresses; /* by storage, workspaces included; NULL: not bound yet */
    void **regions;   /* by storage, if the device has regions, to be destroyed at the end; else
                       * NULL */
};

/* ---- Needs: needs.c ---- */

/* Needs by memory space: bytes, and the plan with the strictest alignment. */
struct tarn_needs_by_space {
    uint32_t count;
    struct tarn_memory_needs of[TARN_SPACES_MAX];
    const struct tarn_plan *strictest[TARN_SPACES_MAX];
};

enum tarn_status tarn_needs_measure(struct tarn_needs_by_space *by_space,
                                    const struct tarn_plan *plan, bool is_bound,
                                    struct tarn_error *error);
/* Raises needs so that both plans fit into the same memory. TARN_USAGE: their graphs declare
 * different spaces. */
enum tarn_status tarn_needs_join(struct tarn_needs_by_space *by_space,
                                 const struct tarn_needs_by_space *more, struct tarn_error *error);
/* For messages: " in memory space 1 "host"", or empty if the graph has only one. */
struct tarn_space_label {
    char text[sizeof(struct tarn_label) + 40];
};
struct tarn_space_label tarn_space_label(const struct tarn_graph *graph, uint32_t space);

/* Are a space's needs within the device's limits? */
enum tarn_status tarn_needs_check(const struct tarn_needs_by_space *by_space, uint32_t space,
                                  struct tarn_device device,
                                  const struct tarn_memory_limits *limits,
                                  struct tarn_error *error);
/* ---- Memory: memory.c ---- */

/* A device's limits and allocations for one memory space of a graph. */
enum tarn_status tarn_space_limits(struct tarn_device device, const struct tarn_graph *graph,
                                   uint32_t space, struct tarn_memory_limits *limits,
                                   struct tarn_error *error);

/* Allocates on the device (or takes memory of the options), and fills with zeros, in all spaces.
 * memory: plan and device are set. parts: from the region, which lives as long. */
enum tarn_status tarn_plan_memory_obtain(struct tarn_plan_memory *memory,
                                         struct tarn_region *region,
                                         const struct tarn_needs_by_space *by_space,
                                         const struct tarn_session_options *options,
                                         struct tarn_error *error);
void tarn_plan_memory_give_back(struct tarn_plan_memory *memory);

/* ---- Windows: window.c ---- */

/* Registers a window in memory that was obtained, and undoes that. TARN_USAGE; TARN_DEVICE. */
enum tarn_status tarn_windows_enter(struct tarn_plan_memory *memory, struct tarn_region *region,
                                    const struct tarn_registrar *registrars, size_t count,
                                    const struct tarn_window *window, struct tarn_error *error);
void tarn_windows_leave(struct tarn_plan_memory *memory);

/* ---- The whole ---- */

/* The needs of one space. TARN_USAGE or TARN_SYSTEM: they exceed the device's limits. */
enum tarn_status tarn_needs_report(const struct tarn_needs_by_space *by_space, uint32_t space,
                                   struct tarn_device device, struct tarn_memory_needs *needs,
                                   struct tarn_error *error);

/* Obtains the memory, or joins the arena of the options, and finds all addresses. The caller
 * finishes it, whatever the status, before the region. */
enum tarn_status tarn_plan_memory_init(struct tarn_plan_memory *memory, struct tarn_region *region,
                                       const struct tarn_plan *plan, struct tarn_device device,
                                       const struct tarn_session_options *options,
                                       struct tarn_error *error);
void tarn_plan_memory_finish(struct tarn_plan_memory *memory);

/* Does each storage, except persistent ones that the caller binds, lie inside its part of its
 * space's allocation, and each planned storage at the plan's offset? pre: tarn_plan_memory_init has
 * succeeded. For assertions; cost: linear in storages. */
bool tarn_plan_memory_is_valid(const struct tarn_plan_memory *memory);

/* A persistent tensor that has no memory yet, or TARN_NONE. */
tarn_tensor tarn_plan_memory_unbound(const struct tarn_plan_memory *memory);

/* May a tensor be bound to that address? TARN_USAGE: no. */
enum tarn_status tarn_plan_memory_check_bind(const struct tarn_plan_memory *memory,
                                             tarn_tensor tensor, const void *address,
                                             struct tarn_error *error);

/* Can code compute with the storage's address? */
static inline bool tarn_plan_memory_is_address(const struct tarn_plan_memory *memory, uint32_t a)
{
    return !memory->regions || memory->regions[a] != memory->addresses[a];
}

static inline void *tarn_plan_memory_address(const struct tarn_plan_memory *memory,
                                             tarn_tensor tensor)
{
    const struct tarn_graph_tensor *record = &memory->plan->graph->tensors[tensor];
    void *begin = memory->addresses[record->storage];
    return begin ? (unsigned char *)begin + tarn_tensor_begin(record) : NULL;
}

#endif
