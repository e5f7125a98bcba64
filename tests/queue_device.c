/* A queue is a list of pieces: work, the record of an event, or a wait. An event counts its
 * records; a wait remembers the count at the time of its call, as accelerators do, and lets its
 * queue go on once that record was reached. */
#include "queue_device.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { FAILURE = 700, ALIGNMENT = 4096 };

enum piece_kind { WORK, RECORD, WAIT };

struct event {
    uint64_t recorded; /* records enqueued */
    uint64_t reached;  /* records that ran */
};

struct piece {
    struct piece *next;
    enum piece_kind kind;
    struct event *event;
    uint64_t count; /* of the event's records */
    queue_device_work work;
    void *user;
    struct tarn_call call;
};

struct queue_device_queue {
    struct queue_device_queue *next;
    struct piece *first, **end;
};

/* ---- Running ---- */

static bool can_run(const struct queue_device_queue *queue)
{
    const struct piece *piece = queue->first;
    return piece && (piece->kind != WAIT || piece->event->reached >= piece->count);
}

static void run_piece(struct queue_device_queue *queue)
{
    struct piece *piece = queue->first;
    queue->first = piece->next;
    if (!queue->first) queue->end = &queue->first;
    if (piece->kind == WORK) piece->work(piece->user, &piece->call);
    if (piece->kind == RECORD) piece->event->reached = piece->count;
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
    run_piece(chosen);
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
    while (run_one(device)) continue;
}

static void append(struct queue_device_queue *queue, struct piece piece)
{
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
    (void)device;
    append(call->queue, (struct piece){.kind = WORK, .work = work, .user = user, .call = *call});
}

/* ---- The table ---- */

static int memory_limits(void *self, struct tarn_memory_limits *limits)
{
    (void)self;
    *limits = (struct tarn_memory_limits){.alignment = ALIGNMENT,
                                          .allocation_max = UINT64_MAX,
                                          .available = UINT64_MAX,
                                          .on_host = true};
    return 0;
}

static int memory_create(void *self, uint64_t size, void **memory)
{
    struct queue_device *device = self;
    *memory = aligned_alloc(ALIGNMENT, (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
    assert(*memory);
    memset(*memory, 0xa5, size); /* not zero: the session has to fill it */
    device->memories_alive++;
    return 0;
}

static void memory_destroy(void *self, void *memory, uint64_t size)
{
    (void)size;
    ((struct queue_device *)self)->memories_alive--;
    free(memory);
}

static int copy_in(void *self, void *to, const void *host, uint64_t size)
{
    (void)self;
    memcpy(to, host, size);
    return 0;
}

static int copy_out(void *self, void *host, const void *from, uint64_t size)
{
    (void)self;
    memcpy(host, from, size);
    return 0;
}

static int fill(void *self, void *device, unsigned char byte, uint64_t size)
{
    (void)self;
    memset(device, byte, size);
    return 0;
}

static int queue_create(void *self, const struct tarn_queue_info *info, void **result)
{
    (void)info;
    struct queue_device *device = self;
    struct queue_device_queue *queue = calloc(1, sizeof *queue);
    assert(queue);
    queue->end = &queue->first;
    queue->next = device->queues;
    device->queues = queue;
    device->queues_alive++;
    *result = queue;
    return 0;
}

static void queue_destroy(void *self, void *argument)
{
    struct queue_device *device = self;
    struct queue_device_queue *queue = argument, **link = &device->queues;
    assert(!queue->first); /* destroyed with work left */
    while (*link != queue) link = &(*link)->next;
    *link = queue->next;
    device->queues_alive--;
    free(queue);
}

/* Counts down to the first failure; from then on every call fails. */
static int fail_in_time(struct queue_device *device)
{
    if (device->fail_after == 0) return 0;
    if (device->fail_after > 1) return device->fail_after--, 0;
    return FAILURE;
}

static int event_create(void *self, void **event)
{
    ((struct queue_device *)self)->events_alive++;
    *event = calloc(1, sizeof(struct event));
    assert(*event);
    return 0;
}

static void event_destroy(void *self, void *event)
{
    ((struct queue_device *)self)->events_alive--;
    free(event);
}

static int event_record(void *self, void *argument, void *queue)
{
    struct event *event = argument;
    append(queue, (struct piece){.kind = RECORD, .event = event, .count = ++event->recorded});
    run_some(self, 6);
    return fail_in_time(self);
}

static int event_wait(void *self, void *argument, void *queue)
{
    struct event *event = argument;
    if (event->recorded == 0) ((struct queue_device *)self)->strange++;
    append(queue, (struct piece){.kind = WAIT, .event = event, .count = event->recorded});
    return fail_in_time(self);
}

static int event_query(void *self, void *argument, bool *done)
{
    struct queue_device *device = self;
    struct event *event = argument;
    run_some(device, 300);
    *done = event->reached >= event->recorded;
    return fail_in_time(device);
}

static const char *error_text(void *self, int code)
{
    (void)self;
    return code == FAILURE ? "illegal address" : "unknown";
}

static enum tarn_error_class error_class(void *self, int code)
{
    (void)code;
    return ((struct queue_device *)self)->fail_class;
}

struct tarn_device queue_device(struct queue_device *device)
{
    static const struct tarn_device_table table = {
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
        .error_text = error_text,
        .error_class = error_class,
    };
    return (struct tarn_device){&table, device};
}
