/* The words of several frameworks and of the vendors' libraries, as tracers write them. Cost: a
 * search through the kind for every word.
 */
#include "op_kinds.h"

#include <string.h>

#include "streams/base/array.h"

bool tarn_kind_has_word(const char *kind, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcasestr(kind, words[i])) return true;
    }
    return false;
}

bool tarn_kind_communicates(const char *kind)
{
    static const char *const words[] = {
        "all_reduce",     "allreduce",     "all_gather", "allgather", "all_to_all", "alltoall",
        "reduce_scatter", "reducescatter", "broadcast_", "send",      "recv",       "barrier"};
    return tarn_kind_has_word(kind, words, TARN_COUNT_OF(words));
}

bool tarn_kind_copies(const char *kind)
{
    static const char *const words[] = {
        "h2d", "d2h", "htod", "dtoh", "host_to_device", "device_to_host", "memcpy"};
    return tarn_kind_has_word(kind, words, TARN_COUNT_OF(words));
}
