/* The inside of the session's front: what session.c asks of the files beside it. */
#ifndef TARN_RUNTIME_SESSION_SESSION_H
#define TARN_RUNTIME_SESSION_SESSION_H

#include "runtime/state/state.h"

/* Makes `calls` with all that does not change, addresses included (calls.c). TARN_SYSTEM: no
 * memory; what was made is released with the session. */
enum tarn_status tarn_session_make_calls(struct tarn_session *session, struct tarn_error *error);
/* Looks every address up again: memory was bound. */
void tarn_session_find_addresses(struct tarn_session *session);

/* Writes the commands that the flight recorder remembers as Chrome trace events, which Perfetto
 * opens too (trace.c): a track for each stream, and the bytes of planned storages that are alive as
 * a counter. pre: the recorder is there, and nothing runs. TARN_SYSTEM; TARN_DEVICE: a stamp cannot
 * be read. */
enum tarn_status tarn_trace_save(const struct tarn_session *session, const char *path,
                                 struct tarn_error *error);

#endif
