/* The flight recorder's content as a picture: Chrome trace events (which Perfetto opens too). */
#ifndef TARN_RUNTIME_SESSION_TRACE_H
#define TARN_RUNTIME_SESSION_TRACE_H

#include "runtime/state/flight.h"

/* Writes the commands that the recorder remembers: a track for each stream, and the bytes of
 * planned storages that are alive as a counter. The recorder is there, and nothing runs.
 * TARN_SYSTEM; TARN_DEVICE: a stamp cannot be read. */
enum tarn_status tarn_trace_save(const struct tarn_session *session, const char *path,
                                 struct tarn_error *error);

#endif
