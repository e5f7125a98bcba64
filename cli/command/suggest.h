/* Which of some names somebody may have meant by a word that is none of them. */
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

/* " (did you mean 'NAME'?)", or "" where no name is near. Lives in *nearest. */
const char *tarn_nearest_text(struct tarn_nearest *nearest);

#endif
