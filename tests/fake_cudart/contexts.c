/* Which device a thread's calls go to. The driver keeps a stack of contexts for every thread; the
 * runtime takes the top, and where there is none it makes the primary context of the thread's
 * device (0 until cudaSetDevice) and puts it there. Also what a thread thinks of captures, and
 * peers. Source: CUDA Runtime API, "Interactions with the CUDA Driver API", "Peer Device Memory
 * Access"; CUDA Driver API, "Context Management". */
#include "fake.h"

#include <string.h>

enum { STACK_MAX = 16 };

/* Of a thread, until the next reset. */
struct state {
    uint64_t reset;
    int stack[STACK_MAX]; /* devices */
    uint32_t depth;
    int device; /* chosen; for when there is no context */
    unsigned mode;
};

static struct state *my_state(void)
{
    static _Thread_local struct state state;
    if (state.reset != fake.resets) state = (struct state){.reset = fake.resets};
    return &state;
}

static tarn_cuda_context handle_of(int device)
{
    return (tarn_cuda_context)(void *)&fake.contexts[device];
}

static int device_of(tarn_cuda_context context)
{
    const struct context *given = (const struct context *)(void *)context;
    for (int d = 0; d < DEVICES_MAX; d++) {
        if (given == &fake.contexts[d]) return d;
    }
    return -1;
}

static void push(struct state *state, int device)
{
    if (state->depth < STACK_MAX)
        state->stack[state->depth++] = device;
    else
        fake_violation("contexts are pushed and never popped");
}

int fake_current_device(void)
{
    const struct state *state = my_state();
    return state->depth > 0 ? state->stack[state->depth - 1] : state->device;
}

unsigned fake_capture_mode(void) { return my_state()->mode; }

/* ---- Contexts that calls make ---- */

/* Calls that only ask the driver for facts, and those of this file. */
static bool needs_none(enum fake_entry entry)
{
    switch (entry) {
    case ENTRY_DeviceGetAttribute:
    case ENTRY_DeviceGetPCIBusId:
    case ENTRY_DriverGetVersion:
    case ENTRY_GetDevice:
    case ENTRY_GetDeviceCount:
    case ENTRY_GetDriverEntryPoint:
    case ENTRY_GetDriverEntryPointByVersion:
    case ENTRY_RuntimeGetVersion:
    case ENTRY_SetDevice:
    case ENTRY_CtxGetCurrent:
    case ENTRY_CtxPopCurrent:
    case ENTRY_CtxPushCurrent:
    case ENTRY_DeviceGet:
    case ENTRY_DevicePrimaryCtxRelease:
    case ENTRY_DevicePrimaryCtxRetain: return true;
    default: return false;
    }
}

void fake_need_context(enum fake_entry entry)
{
    struct state *state = my_state();
    if (state->depth > 0 || needs_none(entry)) return;
    fake.contexts[state->device].exists = true;
    push(state, state->device);
}

bool fake_is_current(const struct stream *stream, const char *where)
{
    int current = fake_current_device();
    if (stream->object.device == current) return true;
    fake_violation("%s: the stream is of device %d, current is %d", where, stream->object.device,
                   current);
    return false;
}

/* ---- The runtime's ---- */

FAKE_DEFINE(GetDevice, (int *device))
{
    unsigned code = fake_enter(ENTRY_GetDevice, true);
    if (!code) *device = fake_current_device();
    return fake_leave(code);
}

FAKE_DEFINE(SetDevice, (int device))
{
    unsigned code = fake_enter(ENTRY_SetDevice, true);
    if (!code && (device < 0 || device >= fake.options.devices)) code = FAKE_INVALID_DEVICE;
    if (!code) {
        struct state *state = my_state();
        state->device = device;
        if (state->depth > 0) state->depth--;
        push(state, device);
        fake.contexts[device].exists = true;
    }
    return fake_leave(code);
}

FAKE_DEFINE(ThreadExchangeStreamCaptureMode, (unsigned *mode))
{
    unsigned code = fake_enter(ENTRY_ThreadExchangeStreamCaptureMode, true);
    if (!code && *mode > TARN_CUDA_CAPTURE_RELAXED) code = FAKE_INVALID_VALUE;
    if (!code) {
        unsigned before = my_state()->mode;
        my_state()->mode = *mode;
        *mode = before;
    }
    return fake_leave(code);
}

/* ---- Memory ---- */

bool fake_reaches(int device, const struct block *block)
{
    return device == block->object.device || block->is_pinned;
}

/* ---- The driver's ---- */

#define DRIVER_DEFINE(name, parameters) static tarn_cuda_code driver_##name parameters

DRIVER_DEFINE(CtxGetCurrent, (tarn_cuda_context * context))
{
    unsigned code = fake_enter(ENTRY_CtxGetCurrent, true);
    if (!code) *context = my_state()->depth > 0 ? handle_of(fake_current_device()) : NULL;
    return fake_leave_driver(code);
}

DRIVER_DEFINE(CtxPushCurrent, (tarn_cuda_context context))
{
    unsigned code = fake_enter(ENTRY_CtxPushCurrent, true);
    int device = device_of(context);
    if (!code && (device < 0 || !fake.contexts[device].exists)) code = FAKE_INVALID_CONTEXT;
    if (!code) push(my_state(), device);
    return fake_leave_driver(code);
}

DRIVER_DEFINE(CtxPopCurrent, (tarn_cuda_context * context))
{
    bool real;
    unsigned code = fake_enter_end(ENTRY_CtxPopCurrent, true, &real);
    struct state *state = my_state();
    if (real && state->depth == 0) {
        fake_violation("a context is popped that nobody pushed");
        code = FAKE_INVALID_CONTEXT;
    } else if (real) {
        *context = handle_of(state->stack[--state->depth]);
    }
    return fake_leave_driver(code);
}

DRIVER_DEFINE(DeviceGet, (int *device, int ordinal))
{
    unsigned code = fake_enter(ENTRY_DeviceGet, true);
    if (!code && (ordinal < 0 || ordinal >= fake.options.devices)) code = FAKE_INVALID_DEVICE;
    if (!code) *device = ordinal;
    return fake_leave_driver(code);
}

DRIVER_DEFINE(DevicePrimaryCtxRetain, (tarn_cuda_context * context, int device))
{
    unsigned code = fake_enter(ENTRY_DevicePrimaryCtxRetain, true);
    if (!code) {
        fake.contexts[device].exists = true;
        fake.contexts[device].retained++;
        fake.alive++;
        *context = handle_of(device);
    }
    return fake_leave_driver(code);
}

DRIVER_DEFINE(DevicePrimaryCtxRelease, (int device))
{
    bool real;
    unsigned code = fake_enter_end(ENTRY_DevicePrimaryCtxRelease, true, &real);
    if (real && fake.contexts[device].retained == 0) {
        fake_violation("a context is released that nobody retained");
    } else if (real) {
        fake.contexts[device].retained--;
        fake.alive--;
    }
    return fake_leave_driver(code);
}

static void *find_driver(const char *name)
{
    void *found = NULL;
#define FIND(entry, parameters)                                \
    if (strcmp(name, "cu" #entry) == 0) {                      \
        tarn_cuda_code(*function) parameters = driver_##entry; \
        memcpy(&found, &function, sizeof found);               \
    }
    TARN_CUDA_DRIVER_ENTRIES(FIND)
#undef FIND
    return found;
}

static unsigned look_up(const char *name, void **entry, unsigned *found)
{
    *entry = find_driver(name);
    if (found) *found = *entry ? 0 : 1;
    return 0;
}

FAKE_DEFINE(GetDriverEntryPoint,
            (const char *name, void **entry, unsigned long long flags, unsigned *found))
{
    unsigned code = fake_enter(ENTRY_GetDriverEntryPoint, true);
    (void)flags;
    return fake_leave(code ? code : look_up(name, entry, found));
}

FAKE_DEFINE(GetDriverEntryPointByVersion, (const char *name, void **entry, unsigned version,
                                           unsigned long long flags, unsigned *found))
{
    unsigned code = fake_enter(ENTRY_GetDriverEntryPointByVersion, true);
    (void)flags;
    if (!code && version > (unsigned)fake.options.driver) code = FAKE_INVALID_VALUE;
    return fake_leave(code ? code : look_up(name, entry, found));
}
