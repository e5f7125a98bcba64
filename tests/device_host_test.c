/* The host device passes the parts of the conformance suite that are about memory and sessions; it
 * has no queues. */
#include "support/device_suite.h"

static bool open_host(void *user, struct tarn_device *device)
{
    (void)user;
    *device = tarn_device_host(NULL);
    return true;
}

int main(void)
{
    return device_suite_run(&(struct device_suite){.name = "host", .open = open_host});
}
