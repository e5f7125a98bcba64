/* Reports storages that cannot share bytes and exceed the capacity: the bound's antichain, the
 * heaviest storages by name. Cost: one pass over the storages. */
#include "planning.h"

#include <stdio.h>
#include <string.h>

#include "streams/base/error.h"
#include "streams/graph/report.h"

enum { NAMED = 4 };

static void write_names(char *text, size_t size, const uint32_t *storages, uint32_t count,
                        const struct tarn_reserve *reserve)
{
    size_t used = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t a = storages[i];
        char name[128];
        int length = snprintf(name, sizeof name, "%s%s (%llu)", i > 0 ? ", " : "",
                              tarn_storage_label(reserve->graph, a).text,
                              (unsigned long long)reserve->reserved[a]);
        if (used + (size_t)length >= size) break;
        memcpy(text + used, name, (size_t)length + 1);
        used += (size_t)length;
    }
}

enum tarn_status tarn_blocking_refuse(const struct tarn_gap_bound *bound,
                                      const struct tarn_reserve *reserve, uint64_t capacity,
                                      struct tarn_error *error)
{
    uint32_t heaviest[NAMED];
    char names[288] = "none";
    uint32_t members = tarn_antichain_heaviest(bound->threshold, reserve->reuse, reserve->reserved,
                                               heaviest, NAMED);
    write_names(names, sizeof names, heaviest, members < NAMED ? members : NAMED, reserve);
    return tarn_error_set(error, TARN_DOES_NOT_FIT,
                          "no plan fits %s, all need %llu or more: %u storages cannot share "
                          "bytes%s; the heaviest: %s",
                          tarn_bytes_phrase(capacity).text, (unsigned long long)bound->bound,
                          members,
                          bound->gaps_count > 0 ? ", nor fill their contiguous groups" : "", names);
}
