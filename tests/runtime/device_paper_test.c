/* The paper device passes the whole conformance suite in each of its guises, so a back end that
 * fails it is at fault and not the suite. */
#include <string.h>

#include "support/conformance.h"
#include "support/queue_device.h"

struct guise {
    const char *name;
    struct queue_device fresh; /* as it is opened */
    struct queue_device device;
};

static bool open_paper(void *user, struct tarn_device *device)
{
    struct guise *guise = user;
    guise->device = guise->fresh;
    *device = queue_device(&guise->device);
    return true;
}

static uint64_t alive(void *user) { return queue_device_alive(&((struct guise *)user)->device); }

static bool fail_after(void *user, uint64_t calls)
{
    struct queue_device *device = &((struct guise *)user)->device;
    bool failed = device->failed;
    device->failed = false;
    device->fail_once = true;
    device->fail_after = calls == UINT64_MAX ? 0 : (uint32_t)calls + 1;
    return failed;
}

/* device_paper_test NAME: in that guise. */
int main(int count, char **words)
{
    static struct guise guises[] = {
        {.name = "whole"},
        {.name = "closures", .fresh = {.closures = true, .lacks_patterns = true}},
        {.name = "regions", .fresh = {.regions = true, .lacks_launch = true}},
        {.name = "off_host", .fresh = {.off_host = true, .lacks_capture = true}},
    };
    for (size_t i = 0; i < sizeof guises / sizeof *guises; i++) {
        struct guise *guise = &guises[i];
        if (strcmp(guise->name, count > 1 ? words[1] : "whole") != 0) continue;
        guise->fresh.source.state = i;
        guise->fresh.memory_size = UINT64_C(1) << 30;
        return tarn_conformance_run(TARN_CONFORMANCE(.user = guise, .open = open_paper,
                                                     .alive = alive, .fail_after = fail_after,
                                                     .effort = conformance_effort())) != 0;
    }
    return 2;
}
