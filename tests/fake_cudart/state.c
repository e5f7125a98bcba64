/* Objects, faults and rules that hold for every call. */
#include "fake.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct fake fake = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .changed = PTHREAD_COND_INITIALIZER,
    .options = {.workers = 2, .devices = 1, .driver = 99000, .capacity = 1ull << 36},
    .failing = ENTRY_NONE};

_Thread_local bool fake_in_host_function;
_Thread_local int fake_kernel_device;
static _Thread_local unsigned last_error;

static const char *const names[] = {
#define FAKE_NAME(name, parameters) "cuda" #name,
#define FAKE_DRIVER_NAME(name, parameters) "cu" #name,
    TARN_CUDA_ENTRIES(FAKE_NAME) TARN_CUDA_LOOKUP_ENTRIES(FAKE_NAME)
        TARN_CUDA_LIBRARY_ENTRIES(FAKE_NAME) TARN_CUDA_DRIVER_ENTRIES(FAKE_DRIVER_NAME)
#undef FAKE_NAME
#undef FAKE_DRIVER_NAME
            "work"};

/* splitmix64 */
uint32_t fake_random(uint32_t limit)
{
    uint64_t x = fake.random += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return (uint32_t)((x ^ x >> 31) % limit);
}

/* ---- Violations and faults ---- */

void fake_violation(const char *format, ...)
{
    va_list arguments;
    if (fake.violations++ > 0) return;
    va_start(arguments, format);
    vsnprintf(fake.violation, sizeof fake.violation, format, arguments);
    va_end(arguments);
}

void fake_poison(unsigned code)
{
    if (fake.sticky) return;
    fake.sticky = code;
    fake_drop_work();
}

/* Work on the device fails later, and what surrounds every other call fails with the device only:
 * who wants that names it. */
static bool is_any(enum fake_entry entry)
{
    return entry != ENTRY_WORK && entry != ENTRY_CtxGetCurrent && entry != ENTRY_CtxPopCurrent &&
           entry != ENTRY_CtxPushCurrent && entry != ENTRY_ThreadExchangeStreamCaptureMode;
}

unsigned fake_fault(enum fake_entry entry)
{
    bool meant = fake.failing == entry || (fake.failing == ENTRY_ANY && is_any(entry));
    if (fake.sticky || !meant || fake.failed) return 0;
    if (fake.fail_after-- > 0) return 0;
    fake.failed = true;
    fake.failing = ENTRY_NONE;
    if (fake.fail_sticky) fake_poison(fake.fail_code);
    return fake.fail_code;
}

/* ---- Entering and leaving ---- */

struct capture *fake_thread_capture(void)
{
    for (struct object *object = fake.objects[CAPTURE]; object; object = object->next) {
        struct capture *capture = (struct capture *)object;
        if (object->alive && pthread_equal(capture->thread, pthread_self())) return capture;
    }
    return NULL;
}

/* A capture forbids unsafe calls to its own thread and, if its mode is global, to all; a thread may
 * choose to ignore those of others, or all. */
static bool forbids(const struct capture *capture, unsigned mode)
{
    bool is_own = pthread_equal(capture->thread, pthread_self());
    if (mode == TARN_CUDA_CAPTURE_RELAXED || capture->mode == TARN_CUDA_CAPTURE_RELAXED)
        return false;
    return is_own || (mode == TARN_CUDA_CAPTURE_GLOBAL && capture->mode == mode);
}

static unsigned check_captures(enum fake_entry entry)
{
    unsigned code = 0, mode = fake_capture_mode();
    for (struct object *object = fake.objects[CAPTURE]; object; object = object->next) {
        struct capture *capture = (struct capture *)object;
        if (!object->alive || !forbids(capture, mode)) continue;
        bool is_own = pthread_equal(capture->thread, pthread_self());
        fake_violation("%s is called %s", names[entry],
                       is_own ? "by a thread that captures" : "while another thread captures");
        fake_invalidate(capture);
        code = FAKE_CAPTURE_UNSUPPORTED;
    }
    return code;
}

static unsigned check_rules(enum fake_entry entry, bool is_safe)
{
    if (fake_in_host_function) {
        fake_violation("%s is called by a host function", names[entry]);
        return FAKE_NOT_PERMITTED;
    }
    fake_need_context(entry);
    return is_safe ? 0 : check_captures(entry);
}

unsigned fake_enter(enum fake_entry entry, bool is_safe)
{
    pthread_mutex_lock(&fake.lock);
    fake.counts[entry]++;
    unsigned code = check_rules(entry, is_safe);
    if (!code) code = fake.sticky;
    return code ? code : fake_fault(entry);
}

unsigned fake_enter_end(enum fake_entry entry, bool is_safe, bool *is_real)
{
    pthread_mutex_lock(&fake.lock);
    fake.counts[entry]++;
    unsigned code = check_rules(entry, is_safe);
    *is_real = code == 0;
    if (!code) code = fake.sticky;
    return code ? code : fake_fault(entry);
}

unsigned fake_leave(unsigned code)
{
    if (code) last_error = code;
    pthread_mutex_unlock(&fake.lock);
    return code;
}

unsigned fake_leave_driver(unsigned code)
{
    pthread_mutex_unlock(&fake.lock);
    return code;
}

tarn_cuda_code cudaGetLastError(void);
tarn_cuda_code cudaGetLastError(void)
{
    unsigned code = last_error;
    pthread_mutex_lock(&fake.lock);
    fake.counts[ENTRY_GetLastError]++;
    last_error = fake.sticky;
    pthread_mutex_unlock(&fake.lock);
    return code;
}

/* ---- Objects ---- */

void *fake_object_create(enum fake_kind kind, size_t size)
{
    struct object *object = calloc(1, size);
    if (!object) abort();
    object->kind = kind;
    object->alive = true;
    object->device = fake_current_device();
    object->next = fake.objects[kind];
    fake.objects[kind] = object;
    fake.alive++;
    return object;
}

void fake_object_end(struct object *object)
{
    object->alive = false;
    fake.alive--;
}

bool fake_is(const void *handle, enum fake_kind kind, const char *where)
{
    static const char *const kinds[KINDS] = {"stream",     "event", "graph",   "executable graph",
                                             "allocation", "pool",  "library", "capture"};
    const struct object *object = handle;
    if (!object) {
        fake_violation("%s: no %s", where, kinds[kind]);
        if (kind == STREAM && fake_thread_capture()) fake_invalidate(fake_thread_capture());
        return false;
    }
    if (object->kind == kind && object->alive) return true;
    fake_violation("%s: the %s is %s", where, kinds[kind],
                   object->kind == kind ? "destroyed" : "something else");
    return false;
}

struct block *fake_find_block(const void *bytes, uint64_t size)
{
    for (struct object *object = fake.objects[BLOCK]; object; object = object->next) {
        struct block *block = (struct block *)object;
        if (!object->alive || block->is_registered) continue;
        uint64_t offset = (uint64_t)((const unsigned char *)bytes - block->bytes);
        if (offset < block->size && size <= block->size - offset) return block;
    }
    return NULL;
}

static void free_object(struct object *object)
{
    switch (object->kind) {
    case STREAM: free(((struct stream *)object)->tail); break;
    case EVENT:
        free(((struct event *)object)->nodes);
        fake_drop_moment(((struct event *)object)->latest);
        break;
    case GRAPH:
        fake_nodes_free(((struct graph *)object)->nodes, ((struct graph *)object)->count);
        break;
    case EXEC:
        fake_nodes_free(((struct exec *)object)->nodes, ((struct exec *)object)->count);
        free(((struct exec *)object)->begin);
        free(((struct exec *)object)->before);
        free(((struct exec *)object)->missing);
        free(((struct exec *)object)->ready);
        break;
    case BLOCK:
        if (object->alive && !((struct block *)object)->is_registered)
            free(((struct block *)object)->bytes);
        break;
    default: break;
    }
    free(object);
}

/* ---- Control ---- */

static enum fake_entry find_entry(const char *name)
{
    for (unsigned i = 0; i < ENTRIES; i++) {
        if (strcmp(names[i], name) == 0) return (enum fake_entry)i;
    }
    fprintf(stderr, "stand-in: no entry is called '%s'\n", name);
    abort();
}

static void set_options(const struct fake_options *options)
{
    fake.options = options ? *options : (struct fake_options){0};
    if (!fake.options.workers) fake.options.workers = 2;
    if (!fake.options.devices) fake.options.devices = 1;
    if (fake.options.devices < 0) fake.options.devices = 0;
    if (fake.options.devices > DEVICES_MAX) fake.options.devices = DEVICES_MAX;
    if (!fake.options.channels) fake.options.channels = 8;
    if (fake.options.channels > CHANNELS_MAX) fake.options.channels = CHANNELS_MAX;
    if (!fake.options.driver) fake.options.driver = 99000;
    if (fake.options.driver < 0) fake.options.driver = 0;
    if (!fake.options.capacity) fake.options.capacity = UINT64_C(1) << 36;
    fake.random = fake.options.seed;
}

void fake_cudart_reset(const struct fake_options *options)
{
    pthread_mutex_lock(&fake.lock);
    fake_drop_work();
    fake_wait_idle();
    for (enum fake_kind kind = 0; kind < KINDS; kind++) {
        while (fake.objects[kind]) {
            struct object *object = fake.objects[kind];
            fake.objects[kind] = object->next;
            free_object(object);
        }
    }
    fake.alive = fake.used = fake.violations = fake.works = fake.last_flags = 0;
    fake.freeing = fake.streams = 0;
    memset(fake.contexts, 0, sizeof fake.contexts);
    fake.resets++;
    memset(fake.counts, 0, sizeof fake.counts);
    fake.sticky = 0;
    fake.failing = ENTRY_NONE;
    fake.failed = fake.held = false;
    last_error = 0;
    set_options(options);
    pthread_cond_broadcast(&fake.changed);
    pthread_mutex_unlock(&fake.lock);
}

static void set_failure(const char *entry, uint64_t calls, unsigned code, bool sticky)
{
    fake.failing = entry ? find_entry(entry) : ENTRY_ANY;
    fake.fail_after = calls;
    fake.fail_code = code;
    fake.fail_sticky = sticky;
    fake.failed = false;
    if (code == 0) fake.failing = ENTRY_NONE;
}

void fake_cudart_inject(const char *entry, uint64_t calls, unsigned code, bool sticky)
{
    pthread_mutex_lock(&fake.lock);
    set_failure(entry, calls, code, sticky);
    pthread_mutex_unlock(&fake.lock);
}

bool fake_cudart_has_failed(void)
{
    pthread_mutex_lock(&fake.lock);
    bool failed = fake.failed;
    pthread_mutex_unlock(&fake.lock);
    return failed;
}

uint64_t fake_cudart_calls(const char *entry)
{
    pthread_mutex_lock(&fake.lock);
    uint64_t count = fake.counts[find_entry(entry)];
    pthread_mutex_unlock(&fake.lock);
    return count;
}

uint64_t fake_cudart_alive(void)
{
    pthread_mutex_lock(&fake.lock);
    while (fake.freeing > 0 && !fake.sticky) pthread_cond_wait(&fake.changed, &fake.lock);
    uint64_t alive = fake.alive;
    pthread_mutex_unlock(&fake.lock);
    return alive;
}

uint64_t fake_cudart_violations(char text[static 256])
{
    pthread_mutex_lock(&fake.lock);
    uint64_t violations = fake.violations;
    memcpy(text, fake.violation, sizeof fake.violation);
    pthread_mutex_unlock(&fake.lock);
    return violations;
}

void fake_cudart_hold(bool hold)
{
    pthread_mutex_lock(&fake.lock);
    fake.held = hold;
    pthread_cond_broadcast(&fake.changed);
    pthread_mutex_unlock(&fake.lock);
}

uint64_t fake_cudart_contexts(void)
{
    uint64_t mask = 0;
    pthread_mutex_lock(&fake.lock);
    for (int d = 0; d < DEVICES_MAX; d++) mask |= (uint64_t)fake.contexts[d].exists << d;
    pthread_mutex_unlock(&fake.lock);
    return mask;
}

uint64_t fake_cudart_instantiate_flags(void)
{
    pthread_mutex_lock(&fake.lock);
    uint64_t flags = fake.last_flags;
    pthread_mutex_unlock(&fake.lock);
    return flags;
}

/* ---- The environment ---- */

static void read_failure(char *text)
{
    char *entry = strtok_r(text, ":", &text), *calls = strtok_r(NULL, ":", &text);
    char *code = strtok_r(NULL, ":", &text), *sticky = strtok_r(NULL, ":", &text);
    if (!entry || !calls || !code) return;
    set_failure(entry, strtoull(calls, NULL, 10), (unsigned)strtoul(code, NULL, 10), sticky);
}

static void read_word(struct fake_options *options, char *word)
{
    char *value = strchr(word, '=');
    if (value) *value++ = '\0';
    long long number = value ? strtoll(value, NULL, 10) : 1;
    if (strcmp(word, "seed") == 0) options->seed = (uint64_t)number;
    if (strcmp(word, "workers") == 0) options->workers = (uint32_t)number;
    if (strcmp(word, "devices") == 0) options->devices = (int)number;
    if (strcmp(word, "driver") == 0) options->driver = (int)number;
    if (strcmp(word, "host") == 0) options->host_access = true;
    if (strcmp(word, "capacity") == 0) options->capacity = (uint64_t)number;
    if (strcmp(word, "strict") == 0) fake.strict = true;
    if (strcmp(word, "tell") == 0) fake.tell = true;
    if (strcmp(word, "fail") == 0 && value) read_failure(value);
}

__attribute__((constructor)) static void read_environment(void)
{
    const char *given = getenv("FAKE_CUDART");
    struct fake_options options = {0};
    char *copy = strdup(given ? given : ""), *rest = copy;
    for (char *word; (word = strtok_r(rest, " ", &rest));) read_word(&options, word);
    free(copy);
    set_options(&options);
}

__attribute__((destructor)) static void report(void)
{
    if (fake.tell && fake.counts[ENTRY_StreamCreateWithPriority] > 0)
        fprintf(stderr, "stand-in: CUDA %d was used\n", FAKE_CUDART_VERSION / 1000);
    if (!fake.strict || fake.violations == 0) return;
    fprintf(stderr, "stand-in: %llu violations: %s\n", (unsigned long long)fake.violations,
            fake.violation);
    _exit(96);
}
