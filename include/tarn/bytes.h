/* Readers and writers: load from and save to memory or functions of the caller, instead of
 * files. */
#ifndef TARN_BYTES_H
#define TARN_BYTES_H

#include <stddef.h>

#include "error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Source of a text: `bytes`, or, if they are NULL, `read`. Compressed or not, as in a file. Used
 * during the call only. */
struct tarn_reader {
    size_t struct_size;
    const char *name; /* used in messages; its ending selects the format, as in a file's name. NULL:
                       * "memory" */
    const void *bytes;
    size_t size; /* of `bytes` */
    /* Writes up to `room` bytes to `to` and returns how many; 0: the end; below 0: TARN_SYSTEM. */
    ptrdiff_t (*read)(void *user, void *to, size_t room);
    void *user; /* of `read` */
};

/* Destination of a text: `write`, or, if it is NULL, `bytes`. */
struct tarn_writer {
    size_t struct_size;
    const char *name; /* used in messages; its ending selects the format, as in a file's name; ".gz"
                       *                         compresses. NULL: "memory" */
    /* Takes all `size` bytes; more calls may follow. Returns 0; any other value: TARN_SYSTEM. */
    int (*write)(void *user, const void *bytes, size_t size);
    void *user;  /* of `write` */
    void *bytes; /* with room for `room` bytes. TARN_USAGE: too little; then nothing is written */
    size_t room;
    size_t *size; /* size of the text, even if the room is too small. NULL: not wanted */
};
#ifndef __cplusplus
#define TARN_READER(...) \
    (&(struct tarn_reader){.struct_size = sizeof(struct tarn_reader), __VA_ARGS__})
#define TARN_WRITER(...) \
    (&(struct tarn_writer){.struct_size = sizeof(struct tarn_writer), __VA_ARGS__})
#endif

#ifdef __cplusplus
}
#endif

#endif
