/* The toy device under the conformance suite: what a vendor's test of a device is.
 *
 *     cc conformance.c toy_device.c $(pkg-config --cflags --libs tarn-conformance) -o conformance
 *     ./conformance          # or: ./conformance a_queue_keeps_its_order, one test
 */
#include <stdio.h>
#include <stdlib.h>
#include <tarn/conformance.h>

#include "toy_device.h"

/* The suite opens the device anew for each test. */
static struct toy *toy;

static bool open_toy(void *user, struct tarn_device *device)
{
    (void)user;
    toy = toy_open();
    if (!toy) return false;
    *device = toy_device(toy);
    return true;
}

static void close_toy(void *user, struct tarn_device device)
{
    (void)user, (void)device;
    toy_close(toy);
}

static uint64_t alive(void *user)
{
    (void)user;
    return toy_alive(toy);
}

static bool fail_after(void *user, uint64_t calls)
{
    (void)user;
    return toy_fail_after(toy, calls);
}

/* TOY_PATIENCE_MS: how long a test waits for a device that hangs. TOY_QUICK: under sanitizers. */
int main(int count, char **words)
{
    const char *patience = getenv("TOY_PATIENCE_MS");
    return tarn_conformance_run(
               TARN_CONFORMANCE(.open = open_toy, .close = close_toy, .alive = alive,
                                .fail_after = fail_after, .required = true,
                                .only = count > 1 ? words[1] : NULL,
                                .patience_ns =
                                    patience ? strtoull(patience, NULL, 10) * 1000000 : 0,
                                .effort = getenv("TOY_QUICK") ? TARN_CONFORMANCE_QUICK
                                                              : TARN_CONFORMANCE_USUAL)) != 0;
}
