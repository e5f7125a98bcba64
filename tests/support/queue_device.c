/* A queue is a list of pieces: work, a call, a pattern kernel, the record of an event, a wait, or
 * the launch of a graph. Each record of an event is a moment; a wait keeps to the moment that it
 * found, as accelerators do, and lets its queue go on once that one was reached. A captured piece
 * is a node that knows the node before it in its queue and the node that it waits for; a graph's
 * launch runs its nodes in a random legal order. */
#include "queue_device.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/check/pattern.h"
#include "streams/base/deadline.h"

enum { FAILURE = 700, NO_MEMORY = 2, MISUSE = 901, ALIGNMENT = 4096 };

#define OFF_HOST (UINT64_C(1) << 62) /* marks addresses that host code cannot follow */

enum piece_kind { NOTHING, WORK, CALL, COPY, FILL, COMPARE, RECORD, WAIT, STAMP, LAUNCH };

struct moment {
    uint32_t users; /* the event whose latest record it is, and pieces */
    bool is_reached;
};

struct event {
    struct moment *latest;              /* NULL: never recorded outside a capture */
    struct queue_device_graph *capture; /* that it was last recorded in; NULL: none */
    uint32_t node;
};

struct piece {
    struct piece *next;
    enum piece_kind kind;
    struct moment *moment; /* of RECORD and WAIT */
    queue_device_work work;
    void (*function)(void *argument);
    void *user;
    struct tarn_call call;
    unsigned char *bytes;      /* of copies and pattern kernels */
    const unsigned char *from; /* of copies */
    uint64_t size;
    uint64_t *seed, *wrong;
    uint64_t *stamp; /* where the clock goes */
    struct queue_device_graph *graph;
};

struct node {
    struct piece piece;
    uint32_t before, awaited; /* nodes; TARN_NONE */
    bool done;
};

struct queue_device_graph {
    struct node *nodes;
    uint32_t nodes_count, done_count;
    bool failed; /* something in the capture was not allowed */
};

struct queue_device_queue {
    struct queue_device_queue *next;
    struct piece *first, **end;
    struct queue_device_graph *capture; /* that it takes part in */
    uint32_t last;                      /* its last node there; TARN_NONE */
};

/* Begins every call that can fail, and says whether it does. */
static int enter(struct queue_device *device)
{
    pthread_mutex_lock(&device->lock);
    device->calls++;
    if (device->fail_after == 0) return 0;
    if (device->fail_after > 1) return device->fail_after--, 0;
    if (device->fail_once) device->fail_after = 0;
    device->failed = true;
    return FAILURE;
}

static int leave(struct queue_device *device, int code)
{
    pthread_mutex_unlock(&device->lock);
    return code;
}

static void drop(struct moment *moment)
{
    if (moment && --moment->users == 0) free(moment);
}

/* ---- Running ---- */

static void run_kernel(struct queue_device *device, const struct piece *piece)
{
    device->clock++;
    if (piece->kind == STAMP) *piece->stamp = tarn_now_ns();
    if (piece->kind == WORK) piece->work(piece->user, &piece->call);
    if (piece->kind == CALL) piece->function(piece->user);
    if (piece->kind == COPY) memcpy(piece->bytes, piece->from, piece->size);
    if (piece->kind == FILL) tarn_pattern_fill(piece->bytes, piece->size, *piece->seed);
    if (piece->kind == RECORD) piece->moment->is_reached = true;
    if (piece->kind != COMPARE) return;
    uint64_t equal = tarn_pattern_compare(piece->bytes, piece->size, *piece->seed);
    if (equal < piece->size && equal < *piece->wrong) *piece->wrong = equal;
}

static bool is_done(const struct queue_device_graph *graph, uint32_t node)
{
    return node == TARN_NONE || graph->nodes[node].done;
}

/* Runs one node that can run; true when that was the last. */
static bool run_node(struct queue_device *device, struct queue_device_graph *graph)
{
    struct node *chosen = NULL;
    uint32_t ready = 0;
    for (uint32_t i = 0; i < graph->nodes_count; i++) {
        struct node *node = &graph->nodes[i];
        if (node->done || !is_done(graph, node->before) || !is_done(graph, node->awaited)) continue;
        if (random_below(&device->source, ++ready) == 0) chosen = node;
        if (ready == 8) break;
    }
    if (chosen) {
        run_kernel(device, &chosen->piece);
        chosen->done = true;
        graph->done_count++;
    }
    if (graph->done_count < graph->nodes_count) return false;
    for (uint32_t i = 0; i < graph->nodes_count; i++) graph->nodes[i].done = false;
    graph->done_count = 0;
    return true;
}

static bool can_run(const struct queue_device_queue *queue)
{
    const struct piece *piece = queue->first;
    return piece && (piece->kind != WAIT || piece->moment->is_reached);
}

static void run_piece(struct queue_device *device, struct queue_device_queue *queue)
{
    struct piece *piece = queue->first;
    if (piece->kind == LAUNCH && !run_node(device, piece->graph)) return;
    run_kernel(device, piece);
    queue->first = piece->next;
    if (!queue->first) queue->end = &queue->first;
    drop(piece->moment);
    free(piece);
}

/* Runs one piece of a random queue that can go on; false when none can. */
static bool run_one(struct queue_device *device)
{
    uint32_t ready = 0;
    struct queue_device_queue *chosen = NULL;
    for (struct queue_device_queue *queue = device->queues; queue; queue = queue->next) {
        if (can_run(queue) && random_below(&device->source, ++ready) == 0) chosen = queue;
    }
    if (!chosen || device->stuck) return false;
    run_piece(device, chosen);
    return true;
}

/* At most so many: the device works while the caller enqueues and asks. */
static void run_some(struct queue_device *device, uint32_t pieces_max)
{
    for (uint32_t left = random_below(&device->source, pieces_max + 1); left > 0; left--)
        run_one(device);
}

void queue_device_run(struct queue_device *device)
{
    pthread_mutex_lock(&device->lock);
    while (run_one(device)) continue;
    pthread_mutex_unlock(&device->lock);
}

/* ---- Enqueueing ---- */

static void append_node(struct queue_device_queue *queue, const struct piece *piece,
                        uint32_t awaited)
{
    struct queue_device_graph *graph = queue->capture;
    uint32_t count = graph->nodes_count++;
    if ((count & (count - 1)) == 0) {
        graph->nodes = realloc(graph->nodes, (size_t)(2 * count + 1) * sizeof *graph->nodes);
        assert(graph->nodes);
    }
    graph->nodes[count] = (struct node){*piece, queue->last, awaited, false};
    queue->last = count;
}

static void append(struct queue_device_queue *queue, struct piece piece)
{
    if (queue->capture) {
        append_node(queue, &piece, TARN_NONE);
        return;
    }
    struct piece *added = malloc(sizeof *added);
    assert(added);
    *added = piece;
    added->next = NULL;
    *queue->end = added;
    queue->end = &added->next;
}

void queue_device_enqueue(struct queue_device *device, queue_device_work work, void *user,
                          const struct tarn_call *call)
{
    pthread_mutex_lock(&device->lock);
    append(call->queue, (struct piece){.kind = WORK, .work = work, .user = user, .call = *call});
    pthread_mutex_unlock(&device->lock);
}

/* ---- Memory ---- */

struct region {
    unsigned char *begin;
};

unsigned char *queue_device_bytes(const struct queue_device *device, const void *address)
{
    if (device->regions) return ((const struct region *)address)->begin;
    uintptr_t bits = (uintptr_t)address;
    assert(!device->off_host || bits >= OFF_HOST);
    return (unsigned char *)(device->off_host ? bits - OFF_HOST : bits);
}

static int memory_limits(void *self, struct tarn_memory_limits *limits)
{
    struct queue_device *device = self;
    int code = enter(device);
    uint64_t most = device->allocation_max, whole = device->memory_size;
    *limits =
        (struct tarn_memory_limits){.alignment = ALIGNMENT,
                                    .allocation_max = most ? most : UINT64_MAX,
                                    .available = whole ? whole - device->memory_used : UINT64_MAX,
                                    .on_host = !device->off_host && !device->regions};
    return leave(device, code);
}

/* What kernels see of bytes on the host. */
static void *make_region(struct queue_device *device, unsigned char *begin)
{
    uintptr_t bits = (uintptr_t)begin;
    if (!device->regions) return (void *)(device->off_host ? bits + OFF_HOST : bits);
    struct region *region = malloc(sizeof *region);
    assert(region);
    region->begin = begin;
    return region;
}

static int memory_create(void *self, uint64_t size, void **memory)
{
    struct queue_device *device = self;
    int code = enter(device);
    bool fits = (device->allocation_max == 0 || size <= device->allocation_max) &&
                (device->memory_size == 0 || size <= device->memory_size - device->memory_used);
    unsigned char *bytes = NULL;
    if (!code && fits && size < SIZE_MAX / 2)
        bytes = aligned_alloc(ALIGNMENT, (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
    if (!code && !bytes) code = NO_MEMORY;
    if (code) return leave(device, code);
    memset(bytes, 0xa5, size); /* not zero: the session has to fill it */
    *memory = make_region(device, bytes);
    device->memories_alive++;
    device->memory_used += size;
    return leave(device, 0);
}

static void memory_destroy(void *self, void *memory, uint64_t size)
{
    struct queue_device *device = self;
    pthread_mutex_lock(&device->lock);
    device->memories_alive--;
    device->memory_used -= size;
    free(queue_device_bytes(device, memory));
    if (device->regions) free(memory);
    pthread_mutex_unlock(&device->lock);
}

/* ---- Kinds of memory ---- */

static int space_limits(void *self, const struct tarn_memory_space *space,
                        struct tarn_memory_limits *limits)
{
    int code = memory_limits(self, limits);
    if (space->kind == TARN_SPACE_SCRATCH) limits->allocation_max = 1 << 16;
    return code;
}

static int space_create(void *self, const struct tarn_memory_space *space, uint64_t size,
                        void **memory)
{
    struct queue_device *device = self;
    int code = memory_create(self, size, memory);
    if (!code) device->spaces_alive[space->kind]++;
    return code;
}

static void space_destroy(void *self, const struct tarn_memory_space *space, void *memory,
                          uint64_t size)
{
    struct queue_device *device = self;
    memory_destroy(self, memory, size);
    assert(device->spaces_alive[space->kind] > 0);
    device->spaces_alive[space->kind]--;
}

static int region_create(void *self, void *memory, uint64_t offset, uint64_t size, void **region)
{
    struct queue_device *device = self;
    (void)size;
    int code = enter(device);
    if (!code) {
        *region = make_region(device, queue_device_bytes(device, memory) + offset);
        device->regions_alive++;
    }
    return leave(device, code);
}

static void region_destroy(void *self, void *region)
{
    struct queue_device *device = self;
    pthread_mutex_lock(&device->lock);
    device->regions_alive--;
    free(region);
    pthread_mutex_unlock(&device->lock);
}

static int copy_in(void *self, void *to, const void *host, uint64_t size)
{
    int code = enter(self);
    if (!code) memcpy(queue_device_bytes(self, to), host, size);
    return leave(self, code);
}

static int copy_out(void *self, void *host, const void *from, uint64_t size)
{
    int code = enter(self);
    if (!code) memcpy(host, queue_device_bytes(self, from), size);
    return leave(self, code);
}

static int fill(void *self, void *to, unsigned char byte, uint64_t size)
{
    int code = enter(self);
    if (!code) memset(queue_device_bytes(self, to), byte, size);
    return leave(self, code);
}

/* ---- Queues and events ---- */

static int queue_create(void *self, const struct tarn_queue_info *info, void **result)
{
    struct queue_device *device = self;
    int code = enter(device);
    if (code) return leave(device, code);
    struct queue_device_queue *queue = calloc(1, sizeof *queue);
    assert(queue);
    queue->end = &queue->first;
    queue->next = device->queues;
    device->queues = queue;
    device->queues_alive++;
    device->urgent_queues += info->urgent;
    *result = queue;
    return leave(device, 0);
}

static void queue_destroy(void *self, void *argument)
{
    struct queue_device *device = self;
    struct queue_device_queue *queue = argument, **link = &device->queues;
    pthread_mutex_lock(&device->lock);
    assert(!queue->first); /* destroyed with work left */
    while (*link != queue) link = &(*link)->next;
    *link = queue->next;
    device->queues_alive--;
    free(queue);
    pthread_mutex_unlock(&device->lock);
}

static int event_create(void *self, void **event)
{
    struct queue_device *device = self;
    int code = enter(device);
    if (code) return leave(device, code);
    *event = calloc(1, sizeof(struct event));
    assert(*event);
    device->events_alive++;
    return leave(device, 0);
}

static void event_destroy(void *self, void *event)
{
    struct queue_device *device = self;
    pthread_mutex_lock(&device->lock);
    device->events_alive--;
    drop(((struct event *)event)->latest);
    free(event);
    pthread_mutex_unlock(&device->lock);
}

static int event_record(void *self, void *argument, void *on)
{
    struct queue_device_queue *queue = on;
    struct event *event = argument;
    int code = enter(self);
    if (code) return leave(self, code);
    event->capture = queue->capture;
    event->node = queue->last;
    if (!queue->capture) {
        drop(event->latest);
        event->latest = calloc(1, sizeof *event->latest);
        assert(event->latest);
        event->latest->users = 2;
        append(queue, (struct piece){.kind = RECORD, .moment = event->latest});
    }
    run_some(self, 6);
    return leave(self, 0);
}

/* An event of the capture under way draws the queue into it; no other may be mixed in. */
static int event_wait(void *self, void *argument, void *on)
{
    struct queue_device *device = self;
    struct queue_device_queue *queue = on;
    struct event *event = argument;
    int code = enter(device);
    if (code) return leave(device, code);
    if (event->capture && event->capture == device->capture && !queue->capture) {
        queue->capture = device->capture;
        queue->last = TARN_NONE;
    }
    if (event->capture != queue->capture) {
        device->strange++;
        if (queue->capture) queue->capture->failed = true;
        return leave(device, MISUSE);
    }
    if (queue->capture) {
        append_node(queue, &(struct piece){.kind = NOTHING}, event->node);
        return leave(device, code);
    }
    if (!event->latest) device->strange++;
    if (event->latest) event->latest->users++;
    if (event->latest) append(queue, (struct piece){.kind = WAIT, .moment = event->latest});
    return leave(device, code);
}

static int event_query(void *self, void *argument, bool *done)
{
    struct queue_device *device = self;
    struct event *event = argument;
    int code = enter(device);
    if (event->capture) code = MISUSE;
    run_some(device, 300);
    *done = !event->latest || event->latest->is_reached;
    return leave(device, code);
}

static int launch(void *self, void *queue, void (*function)(void *argument), void *argument)
{
    int code = enter(self);
    if (!code) append(queue, (struct piece){.kind = CALL, .function = function, .user = argument});
    if (!code) run_some(self, 2);
    return leave(self, code);
}

/* ---- Capture ---- */

static int capture_begin(void *self, void *argument)
{
    struct queue_device *device = self;
    struct queue_device_queue *queue = argument;
    int code = enter(device);
    if (!code && device->capture) code = MISUSE;
    if (code) return leave(device, code);
    device->capture = calloc(1, sizeof *device->capture);
    assert(device->capture);
    queue->capture = device->capture;
    queue->last = TARN_NONE;
    return leave(device, 0);
}

static void graph_free(struct queue_device_graph *graph)
{
    free(graph->nodes);
    free(graph);
}

/* Marks what the node depends on, itself included. */
static void mark_past(struct queue_device_graph *graph, uint32_t node)
{
    if (is_done(graph, node)) return;
    graph->nodes[node].done = true;
    for (uint32_t i = node + 1; i-- > 0;) { /* whatever a node depends on comes before it */
        const struct node *later = &graph->nodes[i];
        if (!later->done) continue;
        if (later->before != TARN_NONE) graph->nodes[later->before].done = true;
        if (later->awaited != TARN_NONE) graph->nodes[later->awaited].done = true;
    }
}

static int capture_end(void *self, void *argument, void **result)
{
    struct queue_device *device = self;
    struct queue_device_queue *origin = argument;
    struct queue_device_graph *graph = device->capture;
    int code = enter(device);
    if (!graph || origin->capture != graph) return leave(device, MISUSE);
    if (graph->failed) code = MISUSE;
    mark_past(graph, origin->last);
    for (uint32_t i = 0; i < graph->nodes_count; i++) {
        if (!graph->nodes[i].done && !code) code = MISUSE; /* not joined */
        graph->nodes[i].done = false;
    }
    for (struct queue_device_queue *queue = device->queues; queue; queue = queue->next) {
        if (queue->capture == graph) queue->capture = NULL;
    }
    device->capture = NULL;
    if (code) {
        graph_free(graph);
        return leave(device, code);
    }
    device->graphs_alive++;
    *result = graph;
    return leave(device, 0);
}

static int graph_launch(void *self, void *graph, void *queue)
{
    int code = enter(self);
    if (!code) append(queue, (struct piece){.kind = LAUNCH, .graph = graph});
    run_some(self, 6);
    return leave(self, code);
}

static void graph_destroy(void *self, void *graph)
{
    struct queue_device *device = self;
    pthread_mutex_lock(&device->lock);
    device->graphs_alive--;
    graph_free(graph);
    pthread_mutex_unlock(&device->lock);
}

/* ---- Names ---- */

static void range_begin(void *self, const char *name)
{
    assert(name);
    ((struct queue_device *)self)->ranges_open++;
}

static void range_end(void *self) { ((struct queue_device *)self)->ranges_open--; }

static void memory_name(void *self, void *memory, uint64_t offset, uint64_t size, const char *name)
{
    (void)offset;
    assert(memory && size > 0 && name);
    ((struct queue_device *)self)->named++;
}

/* ---- Copies ---- */

static int copy_enqueue(void *self, void *queue, void *to, const void *from, uint64_t size)
{
    int code = enter(self);
    if (!code)
        append(queue, (struct piece){.kind = COPY,
                                     .bytes = queue_device_bytes(self, to),
                                     .from = queue_device_bytes(self, from),
                                     .size = size});
    return leave(self, code);
}

/* ---- Checking kernels ---- */

static int pattern_fill(void *self, void *queue, void *bytes, uint64_t size, const void *seeds,
                        uint64_t seed)
{
    int code = enter(self);
    if (!code)
        append(queue, (struct piece){.kind = FILL,
                                     .bytes = queue_device_bytes(self, bytes),
                                     .size = size,
                                     .seed = (uint64_t *)queue_device_bytes(self, seeds) + seed});
    return leave(self, code);
}

static int pattern_compare(void *self, void *queue, const void *bytes, uint64_t size,
                           const void *seeds, uint64_t seed, void *wrongs, uint64_t wrong)
{
    int code = enter(self);
    if (!code)
        append(queue,
               (struct piece){.kind = COMPARE,
                              .bytes = queue_device_bytes(self, bytes),
                              .size = size,
                              .seed = (uint64_t *)queue_device_bytes(self, seeds) + seed,
                              .wrong = (uint64_t *)queue_device_bytes(self, wrongs) + wrong});
    return leave(self, code);
}

/* ---- Errors ---- */

static const char *error_text(void *self, int code)
{
    (void)self;
    if (code == NO_MEMORY) return "not enough memory";
    if (code == MISUSE) return "not allowed here";
    return code == FAILURE ? "illegal address" : "unknown";
}

static enum tarn_error_class error_class(void *self, int code)
{
    if (code == NO_MEMORY) return TARN_ERROR_OUT_OF_MEMORY;
    return code == FAILURE ? ((struct queue_device *)self)->fail_class : TARN_ERROR_RETRYABLE;
}

/* ---- Stamps ---- */

static int stamp_create(void *self, void **stamp)
{
    struct queue_device *device = self;
    int code = enter(device);
    if (!code) {
        *stamp = calloc(1, sizeof(uint64_t));
        assert(*stamp);
        device->stamps_alive++;
    }
    return leave(device, code);
}

static void stamp_destroy(void *self, void *stamp)
{
    struct queue_device *device = self;
    pthread_mutex_lock(&device->lock);
    device->stamps_alive--;
    free(stamp);
    pthread_mutex_unlock(&device->lock);
}

static int stamp_record(void *self, void *stamp, void *queue)
{
    int code = enter(self);
    if (!code) append(queue, (struct piece){.kind = STAMP, .stamp = stamp});
    return leave(self, code);
}

static int stamp_elapsed(void *self, void *from, void *to, double *elapsed_ns)
{
    int code = enter(self);
    *elapsed_ns = (double)*(uint64_t *)to - (double)*(uint64_t *)from;
    return leave(self, code);
}

/* ---- The table ---- */

static const struct tarn_device_table whole_table = {
    .struct_size = sizeof(struct tarn_device_table),
    .abi_version = TARN_DEVICE_ABI,
    .name = "paper",
    .memory_limits = memory_limits,
    .memory_create = memory_create,
    .memory_destroy = memory_destroy,
    .copy_in = copy_in,
    .copy_out = copy_out,
    .fill = fill,
    .queue_create = queue_create,
    .queue_destroy = queue_destroy,
    .event_create = event_create,
    .event_destroy = event_destroy,
    .event_record = event_record,
    .event_wait = event_wait,
    .event_query = event_query,
    .launch = launch,
    .capture_begin = capture_begin,
    .capture_end = capture_end,
    .graph_launch = graph_launch,
    .graph_destroy = graph_destroy,
    .stamp_create = stamp_create,
    .stamp_destroy = stamp_destroy,
    .stamp_record = stamp_record,
    .stamp_elapsed = stamp_elapsed,
    .range_begin = range_begin,
    .range_end = range_end,
    .memory_name = memory_name,
    .pattern_fill = pattern_fill,
    .pattern_compare = pattern_compare,
    .error_text = error_text,
    .error_class = error_class,
    .space_limits = space_limits,
    .space_create = space_create,
    .space_destroy = space_destroy,
    .copy_enqueue = copy_enqueue,
};

struct tarn_device queue_device(struct queue_device *device)
{
    struct tarn_device_table *table = &device->table;
    *table = whole_table;
    pthread_mutex_init(&device->lock, NULL);
    table->kernels_are_closures = device->closures;
    if (device->regions) {
        table->region_create = region_create;
        table->region_destroy = region_destroy;
    }
    if (device->lacks_launch) table->launch = NULL;
    if (device->lacks_patterns) table->pattern_fill = NULL, table->pattern_compare = NULL;
    if (device->lacks_copies) table->copy_enqueue = NULL;
    if (!device->has_spaces) table->struct_size = offsetof(struct tarn_device_table, space_limits);
    if (device->lacks_capture) {
        table->capture_begin = NULL;
        table->capture_end = NULL;
        table->graph_launch = NULL;
        table->graph_destroy = NULL;
    }
    return (struct tarn_device){table, device};
}

uint32_t queue_device_alive(const struct queue_device *device)
{
    return device->queues_alive + device->events_alive + device->memories_alive +
           device->regions_alive + device->graphs_alive + device->stamps_alive;
}
