/* Splits a comma-separated list of op kinds. */
#include "kinds.h"

#include <string.h>

const char *tarn_kinds_split(struct tarn_kinds *kinds)
{
    kinds->count = 0;
    if (kinds->text && strlen(kinds->text) >= sizeof kinds->copy)
        return "--in-place-kinds takes up to 1023 characters";
    if (kinds->text) {
        strcpy(kinds->copy, kinds->text);
        char *rest = kinds->copy;
        for (char *word; (word = strsep(&rest, ",")) != NULL;) {
            if (word[0] == '\0') return "--in-place-kinds has a kind without a name";
            if (kinds->count == TARN_KINDS_MAX) return "--in-place-kinds takes up to 32 kinds";
            kinds->words[kinds->count++] = word;
        }
    }
    kinds->allowed = (struct tarn_verify_options){.struct_size = sizeof kinds->allowed,
                                                  .in_place_kinds = kinds->words,
                                                  .in_place_kinds_count = kinds->count};
    return NULL;
}
