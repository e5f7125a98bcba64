/* Opens the device that a word of the command line names, for a run. */
#ifndef TARN_CLI_DEVICE_H
#define TARN_CLI_DEVICE_H

#include "tarn.h"

struct tarn_cli_device {
    struct tarn_device device;
    bool is_cuda;     /* to be closed */
    uint64_t spin_ns; /* how long a measured kernel takes; 0: it does nothing */
};

/* "host" (or NULL) or "cuda" or "cuda:N": is it one of these? *ordinal: N. */
bool tarn_cli_device_parse(const char *word, bool *is_cuda, uint32_t *ordinal);

/* Opens it; `host` must outlive it. The caller closes it, whatever the status. */
enum tarn_status tarn_cli_device_open(struct tarn_cli_device *device, const char *word,
                                      const struct tarn_host_options *host,
                                      struct tarn_error *error);
void tarn_cli_device_close(struct tarn_cli_device *device);

/* A kernel that only takes time. user: the struct tarn_cli_device. */
int tarn_cli_device_kernel(void *user, const struct tarn_call *call);

#endif
