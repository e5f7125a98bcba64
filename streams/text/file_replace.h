/* Bytes to a file, or to what else a path leads to. */
#ifndef TARN_STREAMS_TEXT_FILE_REPLACE_H
#define TARN_STREAMS_TEXT_FILE_REPLACE_H

#include <stddef.h>

#include "streams/base/error.h"

/* Writes to a temporary name in the same folder, then renames, so that the file is there whole or
 * not at all. Symbolic links stay: what they lead to is written, also where nothing was there. A
 * file that is replaced hands its mode on, its owner and group where the system allows it; further
 * names of it (hard links) keep the old contents; one that must not be written is not replaced
 * either. "-" is standard output; that, descriptors ("/dev/stdout") and what is no regular file (a
 * pipe, a device) are written in place. No signal is raised, and no handler changed, whatever
 * happens to what is written. TARN_SYSTEM. */
enum tarn_status tarn_file_replace(const char *path, const char *bytes, size_t size,
                                   struct tarn_error *error);

#endif
