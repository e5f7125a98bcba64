/* Storages that cannot share bytes and are too many: those of the bound's antichain, the heaviest
 * by name. Cost: one pass over the storages. */
#include "planning.h"

#include <stdio.h>
#include <string.h>

#include "streams/base/error.h"
#include "streams/graph/report.h"

enum { NAMED = 4 };

/* The heaviest members of the antichain, heaviest first. */
struct heaviest {
    uint32_t storages[NAMED];
    uint32_t named;
    uint32_t members; /* of the antichain, all of them */
};

static void take(struct heaviest *heaviest, const uint64_t *reserved, uint32_t storage)
{
    uint32_t i = heaviest->named;
    heaviest->members++;
    if (i < NAMED)
        heaviest->named++;
    else if (reserved[heaviest->storages[--i]] >= reserved[storage])
        return;
    for (; i > 0 && reserved[heaviest->storages[i - 1]] < reserved[storage]; i--)
        heaviest->storages[i] = heaviest->storages[i - 1];
    heaviest->storages[i] = storage;
}

static void write_names(char *text, size_t size, const struct heaviest *heaviest,
                        const struct tarn_reserve *reserve)
{
    size_t used = 0;
    for (uint32_t i = 0; i < heaviest->named; i++) {
        uint32_t a = heaviest->storages[i];
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
    struct heaviest heaviest = {.named = 0};
    char names[288] = "none";
    for (uint32_t a = 0; a < reserve->reuse->count; a++)
        if (tarn_antichain_has(bound->threshold, reserve->reuse, a))
            take(&heaviest, reserve->reserved, a);
    write_names(names, sizeof names, &heaviest, reserve);
    return tarn_error_set(
        error, TARN_DOES_NOT_FIT,
        "no plan fits %llu bytes, all need %llu or more: %u storages cannot share "
        "bytes%s; the heaviest: %s",
        (unsigned long long)capacity, (unsigned long long)bound->bound, heaviest.members,
        bound->gaps_count > 0 ? ", nor fill their contiguous groups" : "", names);
}
