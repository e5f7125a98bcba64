/* The host device: memory and copies. It has no queues; its streams are run by the workers of
 * host/executor.c. Memory is reserved by mmap, aligned to a huge page, and zero-filled by the
 * system at the first touch. It is refused if the machine does not have that much: an arena that is
 * too big must be an error, not a process killed later. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "streams/base/checked.h"
#include "streams/base/options.h"
#include "tarn/device.h"
#include "topology.h"

#define SOURCE_ALIGNMENT 512u /* of a source that gives none */

/* The caller's options, whose header may be of another version. Errors in them, or in their source
 * of memory, are reported when a session or an arena is created. */
static struct tarn_host_options options_of(void *self)
{
    struct tarn_host_options options;
    if (tarn_options_take(&options, sizeof options, self, "host options", NULL))
        memset(&options, 0, sizeof options);
    return options;
}

/* Without functions if there is no source, or its struct_size is 0. */
static struct tarn_memory_source source_of(const struct tarn_host_options *options)
{
    struct tarn_memory_source source;
    if (tarn_options_take(&source, sizeof source, options->memory, "memory source", NULL))
        memset(&source, 0, sizeof source);
    if (source.alignment == 0) source.alignment = SOURCE_ALIGNMENT;
    return source;
}

static int memory_limits(void *self, struct tarn_memory_limits *limits)
{
    const struct tarn_host_options options = options_of(self);
    *limits = (struct tarn_memory_limits){
        .alignment = options.memory ? source_of(&options).alignment : TARN_HUGE_PAGE,
        .allocation_max = UINT64_MAX,
        .available = tarn_memory_available(),
        .on_host = true};
    return 0;
}

/* Reserves one huge page more than needed and frees the bytes outside of the aligned part. */
static unsigned char *map_aligned(uint64_t size)
{
    unsigned char *mapping = mmap(NULL, (size_t)(size + TARN_HUGE_PAGE), PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping == MAP_FAILED) return NULL;
    uint64_t before = -(uint64_t)(uintptr_t)mapping & (TARN_HUGE_PAGE - 1);
    if (before > 0) munmap(mapping, (size_t)before);
    munmap(mapping + before + size, (size_t)(TARN_HUGE_PAGE - before));
    return mapping + before;
}

/* Arenas of this device must initially be zeros. */
static int ask_source(const struct tarn_memory_source *source, uint64_t size, void **memory)
{
    if (size > SIZE_MAX) return ENOMEM;
    int code = source->create(source->user, size, memory);
    if (code) return code;
    if ((uintptr_t)*memory % source->alignment == 0) {
        memset(*memory, 0, (size_t)size);
        return 0;
    }
    source->destroy(source->user, *memory, size);
    return EINVAL;
}

static int memory_create(void *self, uint64_t size, void **memory)
{
    struct tarn_host_options options = options_of(self);
    uint64_t rounded, mapped;
    const struct tarn_memory_source source = source_of(&options);
    if (options.memory) return ask_source(&source, size, memory);
    if (!tarn_size_round_up(size, TARN_HUGE_PAGE, &rounded) ||
        !tarn_size_add(rounded, TARN_HUGE_PAGE, &mapped) || mapped > SIZE_MAX / 2)
        return ENOMEM;
    if (size > tarn_memory_available()) return ENOMEM;
    unsigned char *mapping = map_aligned(rounded);
    if (!mapping) return ENOMEM;
    madvise(mapping, (size_t)rounded, MADV_HUGEPAGE);
    *memory = mapping;
    return 0;
}

static void memory_destroy(void *self, void *memory, uint64_t size)
{
    struct tarn_host_options options = options_of(self);
    if (options.memory) {
        const struct tarn_memory_source source = source_of(&options);
        source.destroy(source.user, memory, size);
        return;
    }
    munmap(memory, (size_t)((size + TARN_HUGE_PAGE - 1) & ~(TARN_HUGE_PAGE - 1)));
}

static int copy_in(void *self, void *device, const void *host, uint64_t size)
{
    (void)self;
    memcpy(device, host, (size_t)size);
    return 0;
}

static int copy_out(void *self, void *host, const void *device, uint64_t size)
{
    (void)self;
    memcpy(host, device, (size_t)size);
    return 0;
}

static int fill(void *self, void *device, unsigned char byte, uint64_t size)
{
    (void)self;
    memset(device, byte, (size_t)size);
    return 0;
}

static int copy_enqueue(void *self, void *queue, void *to, const void *from, uint64_t size)
{
    (void)queue;
    return copy_in(self, to, from, size);
}

static const char *error_text(void *self, int code)
{
    (void)self;
    if (code == EINVAL) return "the source of memory gives no such alignment";
    return code == ENOMEM ? "not enough memory" : "unknown error";
}

static enum tarn_error_class error_class(void *self, int code)
{
    (void)self;
    return code == ENOMEM ? TARN_ERROR_OUT_OF_MEMORY : TARN_ERROR_POISONED;
}

static const struct tarn_device_table host_table = {
    .struct_size = sizeof(struct tarn_device_table),
    .abi_version = TARN_DEVICE_ABI,
    .name = "host",
    .memory_limits = memory_limits,
    .memory_create = memory_create,
    .memory_destroy = memory_destroy,
    .copy_in = copy_in,
    .copy_out = copy_out,
    .fill = fill,
    .error_text = error_text,
    .error_class = error_class,
    .copy_enqueue = copy_enqueue,
};

struct tarn_device tarn_device_host(const struct tarn_host_options *options)
{
    return (struct tarn_device){&host_table, (void *)(uintptr_t)options};
}
