/* A device in one file. The toy has two units, which are threads. Any number of queues shares them:
 *
 *     queue    [ call | record | wait | fill | compare ] ...    a list of commands, in order
 *     event    ─► moment                                        its latest record
 *     record, wait ─► moment                                    the one that they were made for
 *     unit     takes the first command of a queue that can begin, runs it, looks again
 *
 * A record makes a new moment, so a wait keeps to the record that it found, even if the event is
 * recorded again or destroyed before the wait is over. A moment is freed with its last user.
 *
 * What fails has no effect: each call allocates first, and changes something only when nothing can
 * fail any more. No call waits for a queue: there is room for as many commands as memory holds.
 * Cost: one lock for everything; O(queues) for each command. */
#define _POSIX_C_SOURCE 200809L
#include "toy_device.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { UNITS = 2, ALIGNMENT = 256 };
#define MEMORY_BYTES (UINT64_C(1) << 30)

enum code { NO_ERROR, NO_MEMORY, INJECTED };

/* One record of an event or a stamp. */
struct moment {
    uint32_t users; /* the event whose latest record it is, and commands */
    bool is_reached;
    uint64_t time_ns; /* at which it was reached */
};

enum kind { CALL, RECORD, WAIT, COPY, FILL, COMPARE };

struct command {
    struct command *next; /* in its queue */
    enum kind kind;
    struct moment *moment; /* of RECORD and WAIT; else NULL */
    void (*function)(void *argument);
    void *argument;
    unsigned char *bytes;      /* of COPY, FILL and COMPARE */
    const unsigned char *from; /* of COPY */
    uint64_t size;
    const uint64_t *seed;
    uint64_t *wrong;
};

struct queue {
    struct queue *next; /* of the toy */
    struct command *first, **end;
    bool is_busy; /* a unit runs its first command */
    bool is_urgent;
};

struct event {
    struct moment *latest; /* NULL: never recorded */
};

struct toy {
    pthread_mutex_t lock; /* of all that follows, and of queues, events, moments */
    pthread_cond_t changed;
    pthread_t units[UNITS];
    uint32_t units_count;
    bool is_closing;
    struct queue *queues; /* the one that has waited longest for a unit is first */
    uint64_t memory_used;
    uint64_t alive;
    uint64_t calls_left; /* before one fails; UINT64_MAX: none does */
    bool has_failed;
};

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- Units ---- */

/* With the lock. */
static void drop(struct moment *moment)
{
    if (moment && --moment->users == 0) free(moment);
}

/* The pattern's byte i, see device.h. */
static unsigned char pattern_byte(uint64_t seed, uint64_t i)
{
    return (unsigned char)((seed + i / 8 * TARN_PATTERN_STEP) >> 8 * (i % 8));
}

/* The word becomes the smaller of what it is and `index`. Another unit may do the same to it. */
static void note_wrong(uint64_t *wrong, uint64_t index)
{
    uint64_t old = __atomic_load_n(wrong, __ATOMIC_RELAXED);
    while (index < old && !__atomic_compare_exchange_n(wrong, &old, index, false, __ATOMIC_RELAXED,
                                                       __ATOMIC_RELAXED))
        continue;
}

/* Without the lock. */
static void work(const struct command *command)
{
    uint64_t i = 0;
    switch (command->kind) {
    case CALL: command->function(command->argument); break;
    case COPY: memcpy(command->bytes, command->from, command->size); break;
    case FILL:
        for (; i < command->size; i++) command->bytes[i] = pattern_byte(*command->seed, i);
        break;
    case COMPARE:
        while (i < command->size && command->bytes[i] == pattern_byte(*command->seed, i)) i++;
        if (i < command->size) note_wrong(command->wrong, i);
        break;
    case RECORD:
    case WAIT: break;
    }
}

static bool can_begin(const struct queue *queue)
{
    const struct command *first = queue->first;
    if (!first || queue->is_busy) return false;
    return first->kind != WAIT || first->moment->is_reached;
}

/* An urgent queue that can begin, else any, or NULL. */
static struct queue *choose(const struct toy *toy)
{
    struct queue *found = NULL;
    for (struct queue *queue = toy->queues; queue; queue = queue->next) {
        if (!can_begin(queue) || (found && !queue->is_urgent)) continue;
        found = queue;
        if (found->is_urgent) break;
    }
    return found;
}

static void remove_queue(struct toy *toy, struct queue *queue)
{
    struct queue **link = &toy->queues;
    while (*link != queue) link = &(*link)->next;
    *link = queue->next;
}

static void append_queue(struct toy *toy, struct queue *queue)
{
    struct queue **link = &toy->queues;
    while (*link) link = &(*link)->next;
    *link = queue;
    queue->next = NULL;
}

/* Runs the first command of the queue; the queue's turn comes again after all others. */
static void run_first(struct toy *toy, struct queue *queue)
{
    struct command *command = queue->first;
    queue->is_busy = true;
    remove_queue(toy, queue);
    append_queue(toy, queue);
    pthread_mutex_unlock(&toy->lock);
    work(command);
    pthread_mutex_lock(&toy->lock);
    if (command->kind == RECORD) {
        command->moment->time_ns = now_ns();
        command->moment->is_reached = true;
    }
    queue->first = command->next;
    if (!queue->first) queue->end = &queue->first;
    queue->is_busy = false;
    drop(command->moment);
    free(command);
    pthread_cond_broadcast(&toy->changed);
}

static void *run_unit(void *argument)
{
    struct toy *toy = argument;
    pthread_mutex_lock(&toy->lock);
    for (;;) {
        struct queue *queue = choose(toy);
        if (queue)
            run_first(toy, queue);
        else if (toy->is_closing)
            break;
        else
            pthread_cond_wait(&toy->changed, &toy->lock);
    }
    pthread_mutex_unlock(&toy->lock);
    return NULL;
}

/* ---- What the calls share ---- */

/* Begins a call that can fail: takes the lock, or returns the code that the call is to fail with.
 */
static int enter(struct toy *toy)
{
    pthread_mutex_lock(&toy->lock);
    if (toy->calls_left == UINT64_MAX) return NO_ERROR;
    if (toy->calls_left-- > 0) return NO_ERROR; /* from 0 it becomes UINT64_MAX: only one fails */
    toy->has_failed = true;
    pthread_mutex_unlock(&toy->lock);
    return INJECTED;
}

static int leave(struct toy *toy, int code)
{
    pthread_mutex_unlock(&toy->lock);
    return code;
}

/* An object of the device, zeroed, or NULL. With the lock. */
static void *create(struct toy *toy, size_t size)
{
    void *object = calloc(1, size);
    if (object) toy->alive++;
    return object;
}

/* With the lock. */
static int append(struct toy *toy, struct queue *queue, struct command what)
{
    struct command *command = malloc(sizeof *command);
    if (!command) return NO_MEMORY;
    *command = what;
    if (command->moment) command->moment->users++;
    *queue->end = command;
    queue->end = &command->next;
    pthread_cond_broadcast(&toy->changed);
    return NO_ERROR;
}

static int enqueue(struct toy *toy, struct queue *queue, struct command what)
{
    int code = enter(toy);
    return code ? code : leave(toy, append(toy, queue, what));
}

/* ---- Memory ---- */

static int memory_limits(void *self, struct tarn_memory_limits *limits)
{
    struct toy *toy = self;
    int code = enter(toy);
    if (code) return code;
    *limits = (struct tarn_memory_limits){.alignment = ALIGNMENT,
                                          .allocation_max = MEMORY_BYTES,
                                          .available = MEMORY_BYTES - toy->memory_used,
                                          .on_host = true};
    return leave(toy, NO_ERROR);
}

/* aligned_alloc wants a multiple of the alignment. */
static uint64_t rounded(uint64_t size) { return (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

static int memory_create(void *self, uint64_t size, void **memory)
{
    struct toy *toy = self;
    int code = enter(toy);
    if (code) return code;
    if (size > MEMORY_BYTES - toy->memory_used) return leave(toy, NO_MEMORY);
    *memory = aligned_alloc(ALIGNMENT, rounded(size));
    if (!*memory) return leave(toy, NO_MEMORY);
    toy->memory_used += size;
    toy->alive++;
    return leave(toy, NO_ERROR);
}

static void memory_destroy(void *self, void *memory, uint64_t size)
{
    struct toy *toy = self;
    pthread_mutex_lock(&toy->lock);
    toy->memory_used -= size;
    toy->alive--;
    pthread_mutex_unlock(&toy->lock);
    free(memory);
}

static int copy(struct toy *toy, void *to, const void *from, uint64_t size)
{
    int code = enter(toy);
    if (code) return code;
    leave(toy, NO_ERROR);
    memcpy(to, from, size);
    return NO_ERROR;
}

static int copy_in(void *self, void *device, const void *host, uint64_t size)
{
    return copy(self, device, host, size);
}

static int copy_out(void *self, void *host, const void *device, uint64_t size)
{
    return copy(self, host, device, size);
}

static int fill(void *self, void *device, unsigned char byte, uint64_t size)
{
    int code = enter(self);
    if (code) return code;
    leave(self, NO_ERROR);
    memset(device, byte, size);
    return NO_ERROR;
}

/* ---- Queues ---- */

static int queue_create(void *self, const struct tarn_queue_info *info, void **result)
{
    struct toy *toy = self;
    int code = enter(toy);
    if (code) return code;
    struct queue *queue = create(toy, sizeof *queue);
    if (!queue) return leave(toy, NO_MEMORY);
    queue->end = &queue->first;
    queue->is_urgent = info->urgent;
    append_queue(toy, queue);
    *result = queue;
    return leave(toy, NO_ERROR);
}

/* All of its work is done, says the contract; a unit may still be about to take the last command
 * off the queue. */
static void queue_destroy(void *self, void *object)
{
    struct toy *toy = self;
    struct queue *queue = object;
    pthread_mutex_lock(&toy->lock);
    while (queue->first) pthread_cond_wait(&toy->changed, &toy->lock);
    remove_queue(toy, queue);
    toy->alive--;
    pthread_mutex_unlock(&toy->lock);
    free(queue);
}

static int launch(void *self, void *queue, void (*function)(void *argument), void *argument)
{
    return enqueue(self, queue,
                   (struct command){.kind = CALL, .function = function, .argument = argument});
}

static int copy_enqueue(void *self, void *queue, void *to, const void *from, uint64_t size)
{
    return enqueue(self, queue,
                   (struct command){.kind = COPY, .bytes = to, .from = from, .size = size});
}

/* ---- Events; stamps are events, too ---- */

static int event_create(void *self, void **result)
{
    struct toy *toy = self;
    int code = enter(toy);
    if (code) return code;
    *result = create(toy, sizeof(struct event));
    return leave(toy, *result ? NO_ERROR : NO_MEMORY);
}

static void event_destroy(void *self, void *object)
{
    struct toy *toy = self;
    struct event *event = object;
    pthread_mutex_lock(&toy->lock);
    drop(event->latest);
    toy->alive--;
    pthread_mutex_unlock(&toy->lock);
    free(event);
}

static int event_record(void *self, void *object, void *queue)
{
    struct toy *toy = self;
    struct event *event = object;
    int code = enter(toy);
    if (code) return code;
    struct moment *moment = calloc(1, sizeof *moment);
    if (!moment) return leave(toy, NO_MEMORY);
    moment->users = 1; /* the event */
    code = append(toy, queue, (struct command){.kind = RECORD, .moment = moment});
    if (code) {
        drop(moment); /* the event keeps the record that it has */
    } else {
        drop(event->latest);
        event->latest = moment;
    }
    return leave(toy, code);
}

static int event_wait(void *self, void *object, void *queue)
{
    struct toy *toy = self;
    struct event *event = object;
    int code = enter(toy);
    if (code) return code;
    if (event->latest)
        code = append(toy, queue, (struct command){.kind = WAIT, .moment = event->latest});
    return leave(toy, code);
}

static int event_query(void *self, void *object, bool *done)
{
    struct toy *toy = self;
    const struct event *event = object;
    int code = enter(toy);
    if (code) return code;
    *done = !event->latest || event->latest->is_reached;
    return leave(toy, NO_ERROR);
}

static int stamp_elapsed(void *self, void *from, void *to, double *elapsed_ns)
{
    const struct event *a = from, *b = to;
    int code = enter(self);
    if (code) return code;
    *elapsed_ns = (double)b->latest->time_ns - (double)a->latest->time_ns;
    return leave(self, NO_ERROR);
}

/* ---- Checking kernels ---- */

static int pattern_fill(void *self, void *queue, void *bytes, uint64_t size, const void *seeds,
                        uint64_t seed)
{
    return enqueue(
        self, queue,
        (struct command){
            .kind = FILL, .bytes = bytes, .size = size, .seed = (const uint64_t *)seeds + seed});
}

static int pattern_compare(void *self, void *queue, const void *bytes, uint64_t size,
                           const void *seeds, uint64_t seed, void *wrongs, uint64_t wrong)
{
    return enqueue(self, queue,
                   (struct command){.kind = COMPARE,
                                    .bytes = (unsigned char *)bytes, /* is only read */
                                    .size = size,
                                    .seed = (const uint64_t *)seeds + seed,
                                    .wrong = (uint64_t *)wrongs + wrong});
}

/* ---- Errors ---- */

static const char *error_text(void *self, int code)
{
    (void)self;
    switch (code) {
    case NO_ERROR: return "no error";
    case NO_MEMORY: return "out of memory";
    case INJECTED: return "a test made this call fail";
    default: return "unknown code";
    }
}

static enum tarn_error_class error_class(void *self, int code)
{
    (void)self;
    return code == NO_MEMORY ? TARN_ERROR_OUT_OF_MEMORY : TARN_ERROR_RETRYABLE;
}

static const struct tarn_device_table table = {
    .struct_size = sizeof table,
    .abi_version = TARN_DEVICE_ABI,
    .name = "toy",
    .kernels_are_closures = true,
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
    .stamp_create = event_create,
    .stamp_destroy = event_destroy,
    .stamp_record = event_record,
    .stamp_elapsed = stamp_elapsed,
    .pattern_fill = pattern_fill,
    .pattern_compare = pattern_compare,
    .error_text = error_text,
    .error_class = error_class,
    .copy_enqueue = copy_enqueue,
};

struct tarn_device toy_device(struct toy *toy) { return (struct tarn_device){&table, toy}; }

/* ---- Opening and closing ---- */

struct toy *toy_open(void)
{
    struct toy *toy = calloc(1, sizeof *toy);
    if (!toy) return NULL;
    toy->calls_left = UINT64_MAX;
    pthread_mutex_init(&toy->lock, NULL);
    pthread_cond_init(&toy->changed, NULL);
    while (toy->units_count < UNITS) {
        if (pthread_create(&toy->units[toy->units_count], NULL, run_unit, toy)) break;
        toy->units_count++;
    }
    if (toy->units_count == UNITS) return toy;
    toy_close(toy);
    return NULL;
}

void toy_close(struct toy *toy)
{
    pthread_mutex_lock(&toy->lock);
    toy->is_closing = true;
    pthread_cond_broadcast(&toy->changed);
    pthread_mutex_unlock(&toy->lock);
    for (uint32_t i = 0; i < toy->units_count; i++) pthread_join(toy->units[i], NULL);
    pthread_cond_destroy(&toy->changed);
    pthread_mutex_destroy(&toy->lock);
    free(toy);
}

uint64_t toy_alive(struct toy *toy)
{
    pthread_mutex_lock(&toy->lock);
    uint64_t alive = toy->alive;
    pthread_mutex_unlock(&toy->lock);
    return alive;
}

bool toy_fail_after(struct toy *toy, uint64_t calls)
{
    pthread_mutex_lock(&toy->lock);
    bool has_failed = toy->has_failed;
    toy->has_failed = false;
    toy->calls_left = calls;
    pthread_mutex_unlock(&toy->lock);
    return has_failed;
}
