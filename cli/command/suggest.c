/* Suggests names by edit distance: insertions, deletions, replaced bytes, and two neighbours that
 * are exchanged (optimal string alignment). A name is near if at most a third of its bytes differ.
 *
 *     plna -> plan     one exchange      --budgt -> --budget     one insertion
 *
 * Source: F. Damerau, "A technique for computer detection and correction of spelling errors",
 * 1964. Cost: O(product of the lengths) for each name. */
#include "suggest.h"

#include <stdio.h>
#include <string.h>

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

static size_t edit_distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
    size_t rows[3][TARN_NEAREST_MAX + 1]; /* of the prefixes of a that end at i - 2, i - 1, i */
    size_t *before = rows[0], *above = rows[1], *row = rows[2];
    for (size_t j = 0; j <= b_length; j++) row[j] = j;
    for (size_t i = 1; i <= a_length; i++) {
        size_t *oldest = before;
        before = above;
        above = row;
        row = oldest;
        row[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            size_t differs = a[i - 1] != b[j - 1];
            row[j] = least(above[j - 1] + differs, least(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = least(row[j], before[j - 2] + 1);
        }
    }
    return row[b_length];
}

void tarn_nearest_offer(struct tarn_nearest *nearest, const char *name)
{
    size_t length = strlen(name);
    if (length == 0 || length > TARN_NEAREST_MAX || nearest->length > TARN_NEAREST_MAX) return;
    size_t distance = edit_distance(nearest->text, nearest->length, name, length);
    if (3 * distance > length + 1 || (nearest->name[0] && distance >= nearest->distance)) return;
    nearest->distance = distance;
    memcpy(nearest->name, name, length + 1);
}

const char *tarn_nearest_text(struct tarn_nearest *nearest)
{
    nearest->message[0] = '\0';
    if (nearest->name[0])
        snprintf(nearest->message, sizeof nearest->message, " (did you mean '%s'?)", nearest->name);
    return nearest->message;
}
