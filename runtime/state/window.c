/* Registers the window of a plan with the caller's communicators, once for the memory that it lies
 * in. Cost: a call for each communicator. */
#include <string.h>

#include "failure.h"
#include "plan_memory.h"
#include "streams/base/checked.h"
#include "streams/base/log.h"

static enum tarn_status refuse(const struct tarn_registrar *registrar, uint64_t size, int code,
                               struct tarn_error *error)
{
    const char *why = registrar->text ? registrar->text(registrar->user, code) : NULL;
    if (!why) why = "";
    if (error && error->status == TARN_OK) error->device_code = code;
    return tarn_error_set(error, TARN_DEVICE,
                          "registering the window of %s failed with code %d%s%.200s: its "
                          "memory must be such as the communicator takes (NCCL: ncclMemAlloc), and "
                          "all ranks must register windows of one size",
                          tarn_bytes_phrase(size).text, code, *why ? ", " : "", why);
}

/* From the last multiple of the registrar's alignment on, at equal offsets on all ranks. */
static enum tarn_status find_range(const struct tarn_plan_memory *memory,
                                   const struct tarn_registrar *registrar,
                                   const struct tarn_window *window, unsigned char **begin,
                                   uint64_t *size, struct tarn_error *error)
{
    uint64_t alignment = registrar->alignment > 0 ? registrar->alignment : 1;
    if (!registrar->enter || !registrar->leave || !tarn_is_power_of_two(alignment))
        return tarn_error_set(error, TARN_USAGE,
                              "a registrar needs both functions, enter and leave, and an alignment "
                              "that is a power of two");
    if (memory->device.table->region_create)
        return tarn_error_set(
            error, TARN_USAGE,
            "device '%s' has no addresses inside its memory, so that no window of "
            "it can be registered",
            tarn_device_name(memory->device.table));
    uint64_t offset = window->offset & ~(alignment - 1);
    *begin = (unsigned char *)memory->parts[window->space].memory + offset;
    *size = window->offset + window->size - offset;
    if ((uintptr_t)*begin % alignment == 0) return TARN_OK;
    return tarn_error_set(error, TARN_USAGE,
                          "the memory of the arena must be aligned to %s for the window to "
                          "be registered",
                          tarn_bytes_phrase(alignment).text);
}

enum tarn_status tarn_windows_enter(struct tarn_plan_memory *memory, struct tarn_region *region,
                                    const struct tarn_registrar *registrars, size_t count,
                                    const struct tarn_window *window, struct tarn_error *error)
{
    if (count > 0 && !registrars)
        return tarn_error_set(error, TARN_USAGE, "%zu registrars at NULL", count);
    if (count == 0 || window->size == 0) return TARN_OK;
    memory->registered = tarn_region_take(region, count, sizeof *memory->registered);
    if (!memory->registered) return tarn_error_no_memory(error);
    for (size_t i = 0; i < count; i++) {
        struct tarn_registered *entry = &memory->registered[i];
        unsigned char *begin = NULL;
        uint64_t size = 0;
        entry->registrar = registrars[i];
        enum tarn_status status =
            find_range(memory, &entry->registrar, window, &begin, &size, error);
        if (status != TARN_OK) return status;
        int code = entry->registrar.enter(entry->registrar.user, begin, size, &entry->handle);
        if (code) return refuse(&entry->registrar, size, code, error);
        memory->registered_count = i + 1;
    }
    return TARN_OK;
}

void tarn_windows_leave(struct tarn_plan_memory *memory)
{
    while (memory->registered_count > 0) {
        const struct tarn_registered *entry = &memory->registered[--memory->registered_count];
        int code = entry->registrar.leave(entry->registrar.user, entry->handle);
        if (code) tarn_log(TARN_LOG_WARNING, "a window is still registered: code %d", code);
    }
}
