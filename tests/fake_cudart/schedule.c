/* The device at work: threads that take the next piece of a random stream that can go on, or a
 * random node of a graph that runs, and now and then dawdle, so that every legal order can occur.
 */
#include "fake.h"

#include <limits.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { DAWDLE_ONE_IN = 16, DAWDLE_US_MAX = 40 };

/* ---- Streams ---- */

void fake_drop_moment(struct moment *moment)
{
    if (moment && --moment->users == 0) free(moment);
}

static bool takes_room(const struct work *work)
{
    return work->kind == LAUNCH || (work->kind == CALL && work->call.of_kernel);
}

/* Gives up the lock while there is none. */
static void take_room(const struct stream *stream)
{
    uint32_t depth = fake.options.depth > 0 ? fake.options.depth : QUEUE_DEPTH;
    while (fake.kernels[stream->channel] >= depth && !fake.sticky)
        pthread_cond_wait(&fake.changed, &fake.lock);
    fake.kernels[stream->channel]++;
}

void fake_append(struct stream *stream, struct work work)
{
    if (takes_room(&work)) take_room(stream);
    struct work *added = malloc(sizeof *added);
    if (!added) abort();
    *added = work;
    added->next = NULL;
    added->number = fake.works++;
    *stream->end = added;
    stream->end = &added->next;
    if (work.event) work.event->pending++;
    if (work.moment) work.moment->users++;
    if (work.exec) work.exec->pending++;
    fake_start_workers();
    pthread_cond_broadcast(&fake.changed);
}

/* The first piece is over. */
static void pop(struct stream *stream)
{
    struct work *done = stream->first;
    stream->first = done->next;
    if (!stream->first) stream->end = &stream->first;
    if (takes_room(done)) fake.kernels[stream->channel]--;
    if (done->event) done->event->pending--;
    fake_drop_moment(done->moment);
    if (done->exec) done->exec->pending--;
    free(done);
}

void fake_drop_work(void)
{
    for (struct object *object = fake.objects[STREAM]; object; object = object->next) {
        struct stream *stream = (struct stream *)object;
        while (stream->first && !stream->busy) pop(stream);
        while (stream->first && stream->first->next) { /* keep the one that runs */
            struct work *kept = stream->first;
            stream->first = kept->next;
            pop(stream);
            kept->next = stream->first;
            if (!kept->next) stream->end = &kept->next;
            stream->first = kept;
        }
    }
    pthread_cond_broadcast(&fake.changed);
}

void fake_wait_idle(void)
{
    while (fake.running > 0) pthread_cond_wait(&fake.changed, &fake.lock);
}

void fake_wait_stream(struct stream *stream)
{
    while (stream->first) pthread_cond_wait(&fake.changed, &fake.lock);
}

void fake_wait_device(int device)
{
    for (struct object *object = fake.objects[STREAM]; object; object = object->next) {
        struct stream *stream = (struct stream *)object;
        while (object->device == device && stream->first && !fake.sticky)
            pthread_cond_wait(&fake.changed, &fake.lock);
    }
}

/* ---- Graphs ---- */

static void begin_graph(struct exec *exec)
{
    exec->running = true;
    exec->left = exec->count;
    exec->ready_count = 0;
    for (uint32_t v = 0; v < exec->count; v++) {
        exec->missing[v] = exec->nodes[v].after ? exec->nodes[v].after->count : 0;
        if (exec->missing[v] == 0) exec->ready[exec->ready_count++] = v;
    }
}

static void end_node(struct exec *exec, uint32_t node)
{
    exec->left--;
    for (uint32_t i = exec->begin[node]; i < exec->begin[node + 1]; i++) {
        uint32_t next = exec->before[i];
        if (--exec->missing[next] == 0) exec->ready[exec->ready_count++] = next;
    }
}

/* ---- Running ---- */

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Gives up the lock meanwhile. */
static void run_call(const struct call *given)
{
    struct call call = *given;
    bool dawdles = fake_random(DAWDLE_ONE_IN) == 0;
    unsigned dawdle_us = dawdles ? fake_random(DAWDLE_US_MAX) : 0;
    bool stopped = fake.sticky != 0; /* what is left of a graph then only ends */
    unsigned fault = fake_fault(ENTRY_WORK);
    fake.counts[ENTRY_WORK]++;
    fake.running++;
    fake.calls_host |= call.of_host;
    pthread_mutex_unlock(&fake.lock);
    if (dawdles) usleep(dawdle_us);
    fake_in_host_function = call.of_host;
    fake_kernel_device = call.device;
    if (!fault && !stopped) call.function(call.argument ? call.argument : call.arguments);
    fake_in_host_function = false;
    pthread_mutex_lock(&fake.lock);
    fake.running--;
    if (call.of_host) fake.calls_host = false;
    if (fault) fake_poison(fault);
}

static void reach(struct event *event)
{
    event->was_reached = true;
    event->time_ns = now_ns();
}

static bool may_call(const struct call *call) { return !call->of_host || !fake.calls_host; }

static int node_priority(const struct stream *stream, uint32_t node)
{
    const struct exec *exec = stream->first->exec;
    return exec->uses_priorities ? exec->nodes[node].priority : stream->priority;
}

/* A random one of those that can begin, by the most urgent of them where that counts: its place
 * among the ready nodes, or UINT32_MAX. */
static uint32_t choose_node(const struct stream *stream)
{
    const struct exec *exec = stream->first->exec;
    uint32_t able = 0, chosen = UINT32_MAX;
    int most = INT_MAX;
    for (uint32_t i = 0; i < exec->ready_count; i++) {
        int priority = fake.options.priorities ? node_priority(stream, exec->ready[i]) : 0;
        if (!may_call(&exec->nodes[exec->ready[i]].call) || priority > most) continue;
        if (priority < most) able = 0;
        most = priority;
        if (fake_random(++able) == 0) chosen = i;
    }
    return chosen;
}

static void run_node(struct stream *stream, struct exec *exec)
{
    uint32_t at = choose_node(stream);
    uint32_t node = exec->ready[at];
    exec->ready[at] = exec->ready[--exec->ready_count];
    struct event *stamp = exec->nodes[node].stamp;
    if (stamp) {
        stamp->stamping--;
        reach(stamp);
    } else
        run_call(&exec->nodes[node].call);
    end_node(exec, node);
    if (exec->left > 0) return;
    exec->running = false;
    stream->busy = false;
    pop(stream);
}

/* The first piece that has not begun, or NULL. */
static const struct work *next_work(const struct stream *stream)
{
    return stream->first && stream->busy ? stream->first->next : stream->first;
}

/* By channel of all devices, the number of the piece that begins next. */
static void find_heads(uint64_t *heads)
{
    for (uint32_t i = 0; i < fake.options.channels * DEVICES_MAX; i++) heads[i] = UINT64_MAX;
    for (struct object *object = fake.objects[STREAM]; object; object = object->next) {
        struct stream *stream = (struct stream *)object;
        const struct work *work = next_work(stream);
        if (work && work->number < heads[stream->channel]) heads[stream->channel] = work->number;
    }
}

static bool can_begin(const struct work *work)
{
    switch (work->kind) {
    case CALL: return may_call(&work->call);
    case RECORD: return true;
    case WAIT: return work->moment->is_reached;
    case LAUNCH: return !work->exec->running;
    }
    return false;
}

static bool can_go_on(const struct stream *stream, const uint64_t *heads)
{
    const struct work *work = stream->first;
    if (!work) return false;
    if (stream->busy) return work->kind == LAUNCH && choose_node(stream) != UINT32_MAX;
    return heads[stream->channel] == work->number && can_begin(work);
}

/* Of what it would do next. */
static int urgency(const struct stream *stream)
{
    uint32_t at = stream->busy ? choose_node(stream) : UINT32_MAX;
    if (!fake.options.priorities) return 0;
    return at == UINT32_MAX ? stream->priority
                            : node_priority(stream, stream->first->exec->ready[at]);
}

static void go_on(struct stream *stream)
{
    struct work *work = stream->first;
    switch (work->kind) {
    case CALL:
        stream->busy = true;
        run_call(&work->call);
        stream->busy = false;
        pop(stream);
        break;
    case RECORD:
        work->moment->is_reached = true;
        reach(work->event);
        pop(stream);
        break;
    case WAIT: pop(stream); break;
    case LAUNCH:
        if (!stream->busy) {
            stream->busy = true;
            begin_graph(work->exec);
        }
        if (work->exec->left > 0) {
            run_node(stream, work->exec);
            break;
        }
        work->exec->running = stream->busy = false; /* an empty graph */
        pop(stream);
        break;
    }
}

static bool run_one(void)
{
    uint32_t able = 0;
    int most = INT_MAX;
    struct stream *chosen = NULL;
    uint64_t heads[CHANNELS_MAX * DEVICES_MAX];
    find_heads(heads);
    for (struct object *object = fake.objects[STREAM]; object && !fake.held;
         object = object->next) {
        struct stream *stream = (struct stream *)object;
        if (!can_go_on(stream, heads) || urgency(stream) > most) continue;
        if (urgency(stream) < most) able = 0;
        most = urgency(stream);
        if (fake_random(++able) == 0) chosen = stream;
    }
    if (!chosen) return false;
    go_on(chosen);
    pthread_cond_broadcast(&fake.changed);
    return true;
}

static void *work(void *number)
{
    pthread_mutex_lock(&fake.lock);
    while ((uintptr_t)number < fake.options.workers) {
        if (!run_one()) pthread_cond_wait(&fake.changed, &fake.lock);
    }
    fake.workers--;
    pthread_mutex_unlock(&fake.lock);
    return NULL;
}

/* Threads end when a reset asked for fewer; the numbers that are alive are always the lowest. */
void fake_start_workers(void)
{
    while (fake.workers < fake.options.workers) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, work, (void *)(uintptr_t)fake.workers) != 0) abort();
        pthread_detach(thread);
        fake.workers++;
    }
}
