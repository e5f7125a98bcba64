/* The OpenCL device of examples/custom_sdk passes the conformance suite, with shared virtual memory
 * and with sub-buffers, each skipped where no device has it. Without a device it fails when OpenCL
 * was asked for. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "examples/custom_sdk/opencl_device.h"
#include "support/conformance.h"
#include "support/opencl_calls.h"
#include "support/required.h"

struct subject {
    struct opencl_device device;
    bool with_buffers;
};

static bool open_device(void *user, struct tarn_device *device)
{
    struct subject *subject = user;
    int code = opencl_device_open(&subject->device, 0, subject->with_buffers);
    if (code) printf("# %s (%d)\n", subject->device.table.error_text(NULL, code), code);
    if (!code && subject->device.is_svm != subject->with_buffers) {
        *device = opencl_device_table(&subject->device);
        return true;
    }
    opencl_device_close(&subject->device);
    return false;
}

static bool has_device(void)
{
    struct opencl_device device;
    int code = opencl_device_open(&device, 0, true);
    if (code) printf("# %s (%d)\n", device.table.error_text(NULL, code), code);
    opencl_device_close(&device);
    return code == 0;
}

static void close_device(void *user, struct tarn_device device)
{
    struct subject *subject = user;
    (void)device;
    opencl_device_close(&subject->device);
}

static uint64_t alive(void *user)
{
    (void)user;
    return opencl_calls_alive();
}

static bool fail_after(void *user, uint64_t calls)
{
    (void)user;
    return opencl_calls_fail_after(calls);
}

/* The leak checker crashes when it looks for the thread-local storage of PoCL's threads. */
const char *__lsan_default_options(void);
const char *__lsan_default_options(void) { return "use_tls=0"; }
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) { return "leak:ld-linux"; }

/* device_opencl_test opencl_svm|opencl_buffers */
int main(int count, char **words)
{
    static struct subject subject;
    subject.with_buffers = count > 1 && strcmp(words[1], "opencl_buffers") == 0;
    if (is_required("opencl") && !has_device()) {
        printf("1..1\nnot ok 1 - opencl_was_asked_for_and_has_a_device\n");
        return 1;
    }
    return tarn_conformance_run(TARN_CONFORMANCE(.user = &subject, .open = open_device,
                                                 .close = close_device, .alive = alive,
                                                 .fail_after = fail_after,
                                                 .effort = conformance_effort())) != 0;
}
