/* The conformance suite on the OpenCL device: what a vendor writes to test a device of its own.
 * Prints TAP; exits with 1 where a test fails or there is no device. */
#include <tarn/conformance.h>

#include "opencl_device.h"

static bool open_device(void *user, struct tarn_device *device)
{
    struct opencl_device *opencl = user;
    if (opencl_device_open(opencl, 0, false) == 0) {
        *device = opencl_device_table(opencl);
        return true;
    }
    opencl_device_close(opencl);
    return false;
}

static void close_device(void *user, struct tarn_device device)
{
    (void)device;
    opencl_device_close(user);
}

int main(void)
{
    static struct opencl_device opencl;
    return tarn_conformance_run(TARN_CONFORMANCE(.user = &opencl, .open = open_device,
                                                 .close = close_device, .required = true)) != 0;
}
