/* The host device passes the parts of the conformance suite that are about memory and sessions; it
 * has no queues. */
#include "support/conformance.h"

static bool open_host(void *user, struct tarn_device *device)
{
    (void)user;
    *device = tarn_device_host(NULL);
    return true;
}

int main(void)
{
    return tarn_conformance_run(
               TARN_CONFORMANCE(.open = open_host, .effort = conformance_effort())) != 0;
}
