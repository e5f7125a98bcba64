/* Writes bytes to a file, or to another target of a path. */
#ifndef TARN_STREAMS_TEXT_FILE_REPLACE_H
#define TARN_STREAMS_TEXT_FILE_REPLACE_H

#include <stddef.h>

#include "streams/base/error.h"

/* Writes to a temporary name in the same folder, then renames, so that the file exists whole or not
 * at all. Symbolic links stay: their target is written, even if it did not exist. The new file
 * keeps the old file's mode, and its owner and group if the system allows it; other hard links keep
 * the old contents. A read-only file is not replaced either. "-" is standard output; that,
 * descriptors ("/dev/stdout") and targets that are no regular file (a pipe, a device) are written
 * in place. No signal is raised, and no handler changed, even if writing fails. TARN_SYSTEM. */
enum tarn_status tarn_file_replace(const char *path, const char *bytes, size_t size,
                                   struct tarn_error *error);

#endif
