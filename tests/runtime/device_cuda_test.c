/* The CUDA device passes the conformance suite: on the stand-in for the CUDA runtime in several
 * guises, and on a GPU where there is one. The stand-in looks at every call: a violation of CUDA's
 * rules or of the device table's counts as an object left over, and fails the test it happens in.
 */
#include <stdio.h>
#include <string.h>

#include "fake_cudart/fake_cudart.h"
#include "support/conformance.h"
#include "support/required.h"
#include "tarn/cuda.h"

struct guise {
    const char *name;
    const char *library; /* NULL: the real one */
    bool pool;
    uint32_t ordinal;
    struct fake_options fake;
    struct fake_control control;
};

static bool open_cuda(void *user, struct tarn_device *device)
{
    struct guise *guise = user;
    struct tarn_error error;
    guise->fake.seed++;
    if (guise->library) guise->control.reset(&guise->fake);
    const struct tarn_cuda_options options = {.struct_size = sizeof options,
                                              .ordinal = guise->ordinal,
                                              .pool = guise->pool,
                                              .library = guise->library};
    if (tarn_device_cuda_open(&options, device, &error) == TARN_OK) return true;
    printf("# %s\n", error.text);
    return false;
}

static void close_cuda(void *user, struct tarn_device device)
{
    (void)user;
    tarn_device_cuda_close(device);
}

static uint64_t alive(void *user)
{
    struct guise *guise = user;
    char text[256];
    uint64_t violations = guise->control.violations(text);
    if (violations) printf("# %llu violations: %s\n", (unsigned long long)violations, text);
    uint64_t strange = guise->control.contexts() & ~(UINT64_C(1) << guise->ordinal);
    if (strange) printf("# a context on a device that nobody asked for\n");
    return guise->control.alive() + violations + (strange != 0);
}

static bool fail_after(void *user, uint64_t calls)
{
    struct guise *guise = user;
    bool failed = guise->control.has_failed();
    guise->control.inject(NULL, calls, calls == UINT64_MAX ? 0 : 999, false);
    return failed;
}

/* Only a GPU may be missing: without one all is skipped, unless the run was asked for one. */
static int run(struct guise *guise)
{
    bool watched = guise->library != NULL;
    return tarn_conformance_run(TARN_CONFORMANCE(.user = guise, .open = open_cuda,
                                                 .close = close_cuda,
                                                 .alive = watched ? alive : NULL,
                                                 .fail_after = watched ? fail_after : NULL,
                                                 .effort = conformance_effort(),
                                                 .required = watched || is_required("gpu"))) != 0;
}

/* device_cuda_test NAME: in that guise. */
int main(int count, char **words)
{
    static struct guise guises[] = {
        {.name = "cuda_plain", .library = FAKE_CUDART},
        {.name = "cuda_pool", .library = FAKE_CUDART, .pool = true},
        {.name = "cuda_serial", .library = FAKE_CUDART, .fake.workers = 1},
        {.name = "cuda_on_host", .library = FAKE_CUDART, .fake.host_access = true},
        {.name = "cuda_second", .library = FAKE_CUDART, .ordinal = 1, .fake.devices = 2},
        {.name = "cuda_gpu"},
        {.name = "cuda_gpu_pool", .pool = true},
    };
    for (size_t i = 0; i < sizeof guises / sizeof *guises; i++) {
        struct guise *guise = &guises[i];
        if (strcmp(guise->name, count > 1 ? words[1] : "cuda_plain") != 0) continue;
        if (guise->library && !fake_control_load(guise->library, &guise->control)) return 2;
        return run(guise);
    }
    return 2;
}
