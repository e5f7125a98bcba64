/* Copies option structs of callers built for an older or a newer library. Cost: their size. */
#include "options.h"

#include <stdbool.h>
#include <string.h>

#include "checked.h"

enum { ALIGNMENT_DEFAULT = 512 };

static bool is_zero(const unsigned char *bytes, size_t begin, size_t end)
{
    while (begin < end && bytes[begin] == 0) begin++;
    return begin >= end;
}

enum tarn_status tarn_struct_take(void *taken, size_t known, const void *given, size_t size,
                                  const char *what, struct tarn_error *error)
{
    memset(taken, 0, known);
    if (!is_zero(given, known, size))
        return tarn_error_set(error, TARN_USAGE,
                              "%s of %zu bytes ask for what this library, which knows %zu, does "
                              "not have: leave the newer fields zero",
                              what, size, known);
    memcpy(taken, given, size < known ? size : known);
    return TARN_OK;
}

void tarn_struct_give(void *to, size_t size, const void *from, size_t known)
{
    memset(to, 0, size);
    memcpy(to, from, size < known ? size : known);
}

enum tarn_status tarn_options_take(void *options, size_t size, const void *given, const char *what,
                                   struct tarn_error *error)
{
    size_t given_size = size;
    memset(options, 0, size);
    if (given) memcpy(&given_size, given, sizeof given_size);
    if (given_size < sizeof given_size)
        return tarn_error_set(error, TARN_USAGE,
                              "%s without their struct_size: fill them with their macro, or set it "
                              "to sizeof",
                              what);
    enum tarn_status status =
        given ? tarn_struct_take(options, size, given, given_size, what, error) : TARN_OK;
    memcpy(options, &size, sizeof size);
    return status;
}

enum tarn_status tarn_options_seconds(double seconds, struct tarn_error *error)
{
    if (seconds >= 0) return TARN_OK;
    return tarn_error_set(error, TARN_USAGE, "the seconds of a search must be 0 or more");
}

enum tarn_status tarn_options_words(const char *const *words, size_t count, const char *what,
                                    struct tarn_error *error)
{
    for (size_t i = 0; i < count; i++) {
        if (words && words[i]) continue;
        return tarn_error_set(error, TARN_USAGE, "%s: word %zu of %zu is NULL", what, i, count);
    }
    return TARN_OK;
}

enum tarn_status tarn_options_alignment(uint64_t *alignment, struct tarn_error *error)
{
    if (*alignment == 0) *alignment = ALIGNMENT_DEFAULT;
    if (tarn_is_power_of_two(*alignment)) return TARN_OK;
    return tarn_error_set(error, TARN_USAGE, "the alignment %llu is not a power of two",
                          (unsigned long long)*alignment);
}
