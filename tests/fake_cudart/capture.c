/* What a capture makes of calls: nodes behind the nodes that their stream has come to; forks and
 * joins by events; and the rules that a capture can break. Source: CUDA C++ Programming Guide,
 * "Creating a Graph Using Stream Capture"; the codes are those of the runtime API's reference. */
#include "fake.h"

#include <stdlib.h>
#include <string.h>

/* ---- Sets of nodes ---- */

static struct set *set_make(uint32_t room)
{
    struct set *set = calloc(1, sizeof *set + room * sizeof set->ids[0]);
    if (!set) abort();
    return set;
}

void fake_set_unite(struct set **set, const struct set *other)
{
    uint32_t a = 0, b = 0, left = *set ? (*set)->count : 0, right = other ? other->count : 0;
    struct set *both = set_make(left + right);
    while (a < left || b < right) {
        uint32_t from_left = a < left ? (*set)->ids[a] : UINT32_MAX;
        uint32_t from_right = b < right ? other->ids[b] : UINT32_MAX;
        both->ids[both->count++] = from_left < from_right ? from_left : from_right;
        a += from_left <= from_right;
        b += from_right <= from_left;
    }
    free(*set);
    *set = both;
}

static void set_single(struct set **set, uint32_t id)
{
    free(*set);
    *set = set_make(1);
    (*set)->count = 1;
    (*set)->ids[0] = id;
}

/* ---- Nodes ---- */

void fake_nodes_free(struct node *nodes, uint32_t count)
{
    for (uint32_t v = 0; v < count; v++) free(nodes[v].after);
    free(nodes);
}

static void add_node(struct stream *stream, struct node node)
{
    node.priority = node.call.of_kernel ? stream->priority : 0;
    struct graph *graph = stream->capture->graph;
    if (graph->count == graph->room) {
        graph->room = graph->room ? 2 * graph->room : 16;
        graph->nodes = realloc(graph->nodes, graph->room * sizeof *graph->nodes);
        if (!graph->nodes) abort();
    }
    node.after = NULL;
    fake_set_unite(&node.after, stream->tail);
    graph->nodes[graph->count] = node;
    set_single(&stream->tail, graph->count++);
}

unsigned fake_call(struct stream *stream, const struct call *call)
{
    if (!stream->capture) {
        fake_append(stream, (struct work){.kind = CALL, .call = *call});
        return 0;
    }
    if (stream->capture->invalid) return FAKE_CAPTURE_INVALIDATED;
    add_node(stream, (struct node){.call = *call});
    return 0;
}

/* ---- Begin and end ---- */

void fake_invalidate(struct capture *capture) { capture->invalid = true; }

unsigned fake_capture_begin(struct stream *stream, unsigned mode)
{
    if (stream->capture) {
        fake_violation("a capture begins on a stream that captures");
        return FAKE_INVALID_VALUE;
    }
    struct capture *capture = fake_object_create(CAPTURE, sizeof *capture);
    capture->origin = stream;
    capture->thread = pthread_self();
    capture->mode = mode;
    capture->graph = fake_object_create(GRAPH, sizeof *capture->graph);
    stream->capture = capture;
    return 0;
}

static void release_streams(const struct capture *capture)
{
    for (struct object *object = fake.objects[STREAM]; object; object = object->next) {
        struct stream *stream = (struct stream *)object;
        if (stream->capture != capture) continue;
        stream->capture = NULL;
        free(stream->tail);
        stream->tail = NULL;
    }
}

/* Every node must come before the origin's next one. */
static bool is_joined(const struct graph *graph, const struct set *tail)
{
    bool joined = true, *reached = calloc(graph->count + 1u, 1);
    if (!reached) abort();
    for (uint32_t i = 0; tail && i < tail->count; i++) reached[tail->ids[i]] = true;
    for (uint32_t v = graph->count; v-- > 0;) {
        const struct set *after = graph->nodes[v].after;
        joined &= reached[v];
        for (uint32_t i = 0; after && i < after->count; i++) reached[after->ids[i]] |= reached[v];
    }
    free(reached);
    return joined;
}

static unsigned find_fault(const struct capture *capture)
{
    bool is_relaxed = capture->mode == TARN_CUDA_CAPTURE_RELAXED;
    if (!is_relaxed && !pthread_equal(capture->thread, pthread_self())) {
        fake_violation("a capture ends on another thread");
        return FAKE_CAPTURE_WRONG_THREAD;
    }
    if (capture->invalid) return FAKE_CAPTURE_INVALIDATED;
    return is_joined(capture->graph, capture->origin->tail) ? 0 : FAKE_CAPTURE_UNJOINED;
}

unsigned fake_capture_end(struct stream *stream, struct graph **graph)
{
    struct capture *capture = stream->capture;
    *graph = NULL;
    if (!capture || capture->origin != stream) {
        fake_violation("a capture ends on a stream that did not begin it");
        return FAKE_CAPTURE_UNMATCHED;
    }
    unsigned code = find_fault(capture);
    if (code == FAKE_CAPTURE_WRONG_THREAD) return code;
    release_streams(capture);
    fake_object_end(&capture->object);
    if (code)
        fake_object_end(&capture->graph->object);
    else
        *graph = capture->graph;
    return code;
}

/* ---- Events ---- */

static void append_record(struct event *event, struct stream *stream)
{
    fake_drop_moment(event->latest);
    event->latest = calloc(1, sizeof *event->latest);
    if (!event->latest) abort();
    event->latest->users = 1;
    fake_append(stream, (struct work){.kind = RECORD, .event = event, .moment = event->latest});
}

unsigned fake_record(struct event *event, struct stream *stream, bool external)
{
    struct capture *capture = stream->capture;
    if (external != (capture != NULL) && external) {
        fake_violation("an external record outside a capture");
        return FAKE_INVALID_VALUE;
    }
    if (event->object.device != stream->object.device) {
        fake_violation("an event of device %d is recorded on a stream of device %d",
                       event->object.device, stream->object.device);
        return FAKE_INVALID_HANDLE;
    }
    if (capture && capture->invalid) return FAKE_CAPTURE_INVALIDATED;
    event->capture = external ? NULL : capture;
    free(event->nodes);
    event->nodes = NULL;
    if (external)
        add_node(stream, (struct node){.stamp = event});
    else if (capture)
        fake_set_unite(&event->nodes, stream->tail);
    else
        append_record(event, stream);
    return 0;
}

static unsigned join(struct stream *stream, const struct event *event)
{
    if (!event->capture->object.alive) {
        fake_violation("a wait for an event of a capture that has ended");
        return FAKE_CAPTURED_EVENT;
    }
    if (event->capture->invalid) return FAKE_CAPTURE_INVALIDATED;
    if (stream->capture && stream->capture != event->capture) {
        fake_violation("a wait merges two captures");
        fake_invalidate(stream->capture);
        fake_invalidate(event->capture);
        return FAKE_CAPTURE_MERGE;
    }
    stream->capture = event->capture;
    fake_set_unite(&stream->tail, event->nodes);
    return 0;
}

unsigned fake_wait(struct stream *stream, struct event *event)
{
    if (event->capture) return join(stream, event);
    if (stream->capture) {
        fake_violation("a wait inside a capture for an event from outside");
        fake_invalidate(stream->capture);
        return FAKE_CAPTURE_ISOLATION;
    }
    if (event->latest) /* otherwise it is no wait at all, as with CUDA */
        fake_append(stream, (struct work){.kind = WAIT, .moment = event->latest});
    return 0;
}

/* ---- Executable graphs ---- */

/* Turns the nodes' predecessors around. */
static void index_nodes(struct exec *exec)
{
    uint32_t *begin = calloc(exec->count + 2u, sizeof *begin);
    if (!begin) abort();
    for (uint32_t v = 0; v < exec->count; v++) {
        const struct set *after = exec->nodes[v].after;
        for (uint32_t i = 0; i < after->count; i++) begin[after->ids[i] + 2]++;
    }
    for (uint32_t v = 2; v < exec->count + 2u; v++) begin[v] += begin[v - 1];
    uint32_t *before = calloc(begin[exec->count + 1] + 1u, sizeof *before);
    if (!before) abort();
    for (uint32_t v = 0; v < exec->count; v++) {
        const struct set *after = exec->nodes[v].after;
        for (uint32_t i = 0; i < after->count; i++) before[begin[after->ids[i] + 1]++] = v;
    }
    exec->begin = begin;
    exec->before = before;
}

struct exec *fake_instantiate(const struct graph *graph)
{
    struct exec *exec = fake_object_create(EXEC, sizeof *exec);
    exec->count = graph->count;
    exec->nodes = calloc(graph->count + 1u, sizeof *exec->nodes);
    exec->missing = calloc(graph->count + 1u, sizeof *exec->missing);
    exec->ready = calloc(graph->count + 1u, sizeof *exec->ready);
    if (!exec->nodes || !exec->missing || !exec->ready) abort();
    for (uint32_t v = 0; v < graph->count; v++) {
        exec->nodes[v] = graph->nodes[v];
        exec->nodes[v].after = NULL;
        fake_set_unite(&exec->nodes[v].after, graph->nodes[v].after);
    }
    index_nodes(exec);
    return exec;
}
