/* Opens the devices that the command line knows, and runs kernels that only take time on them. */
#include "device.h"

#include <string.h>

#include "command/command.h"

bool tarn_cli_device_parse(const char *word, bool *is_cuda, uint32_t *ordinal)
{
    uint64_t number = 0;
    *is_cuda = word && strncmp(word, "cuda", 4) == 0;
    *ordinal = 0;
    if (!*is_cuda) return !word || strcmp(word, "host") == 0;
    if (word[4] == '\0') return true;
    if (word[4] != ':' || !tarn_number_parse(word + 5, &number) || number > INT32_MAX) return false;
    *ordinal = (uint32_t)number;
    return true;
}

enum tarn_status tarn_cli_device_open(struct tarn_cli_device *device, const char *word,
                                      const struct tarn_host_options *host,
                                      struct tarn_error *error)
{
    bool is_cuda;
    uint32_t ordinal;
    tarn_cli_device_parse(word, &is_cuda, &ordinal);
    device->device = tarn_device_host(host);
    if (!is_cuda) return TARN_OK;
    enum tarn_status status =
        tarn_device_cuda_open(TARN_CUDA_OPTIONS(.ordinal = ordinal), &device->device, error);
    device->is_cuda = status == TARN_OK;
    return status;
}

void tarn_cli_device_close(struct tarn_cli_device *device)
{
    if (device->is_cuda) tarn_device_cuda_close(device->device);
    device->is_cuda = false;
}

int tarn_cli_device_kernel(void *user, const struct tarn_call *call)
{
    const struct tarn_cli_device *device = user;
    if (device->spin_ns == 0) return 0;
    if (device->is_cuda) return tarn_device_cuda_spin(device->device, call->queue, device->spin_ns);
    for (double end = tarn_now_ms() + (double)device->spin_ns * 1e-6; tarn_now_ms() < end;)
        continue;
    return 0;
}
