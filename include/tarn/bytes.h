/* Bytes in and out: what the functions that load and save do with files, done with memory and with
 * functions of the caller. */
#ifndef TARN_BYTES_H
#define TARN_BYTES_H

#include <stddef.h>

#include "error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Where a text comes from: `bytes`, or, where they are NULL, `read`. Compressed or not, as in a
 * file. Used during the call only. */
struct tarn_reader {
    size_t struct_size;
    const char *name; /* in messages; its ending counts as that of a file's name. NULL: "memory" */
    const void *bytes;
    size_t size; /* of `bytes` */
    /* Writes up to `room` bytes to `to`, and tells how many; 0: the end; below 0: TARN_SYSTEM. */
    ptrdiff_t (*read)(void *user, void *to, size_t room);
    void *user; /* of `read` */
};

/* Where a text goes to: `write`, or, where it is NULL, `bytes`. */
struct tarn_writer {
    size_t struct_size;
    const char *name; /* in messages; its ending counts as that of a file's name, ".gz" compresses.
                         NULL: "memory" */
    /* Takes all `size` bytes, perhaps not the last ones; 0: done; otherwise TARN_SYSTEM. */
    int (*write)(void *user, const void *bytes, size_t size);
    void *user;  /* of `write` */
    void *bytes; /* with room for `room` bytes. TARN_USAGE: too little; then nothing is written */
    size_t room;
    size_t *size; /* of the text; also where the room is too small. NULL: not wanted */
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
