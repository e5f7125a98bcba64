/* Finds the known name that is nearest to a mistyped word. */
#ifndef TARN_CLI_COMMAND_SUGGEST_H
#define TARN_CLI_COMMAND_SUGGEST_H

#include <stddef.h>

#define TARN_NEAREST_MAX 64 /* longer names are not suggested */

struct tarn_nearest {
    const char *text;                /* the word, not owned */
    size_t length;                   /* bytes of it that count */
    size_t distance;                 /* of `name` */
    char name[TARN_NEAREST_MAX + 1]; /* the nearest so far, or "" */
    char message[TARN_NEAREST_MAX + 32];
};

/* Compares one more name. Set text and length, and zero the rest, before the first. Cost:
 * O(length * length of the name), both cut at TARN_NEAREST_MAX. */
void tarn_nearest_offer(struct tarn_nearest *nearest, const char *name);

/* Returns " (did you mean 'NAME'?)", or "" if no name is near. The text lives in *nearest. */
const char *tarn_nearest_text(struct tarn_nearest *nearest);

#endif
