/* Internal functions of session.c and its neighbouring files. */
#ifndef TARN_RUNTIME_SESSION_SESSION_H
#define TARN_RUNTIME_SESSION_SESSION_H

#include "runtime/state/state.h"

/* Makes `calls` with all fixed fields, addresses included (calls.c). TARN_SYSTEM: no memory; the
 * calls made so far are freed with the session. */
enum tarn_status tarn_session_make_calls(struct tarn_session *session, struct tarn_error *error);
/* Updates all addresses after memory was bound. */
void tarn_session_find_addresses(struct tarn_session *session);

/* Writes the flight recorder's commands as Chrome trace events, which Perfetto opens too (trace.c):
 * a track for each stream, and a counter of the bytes of live planned storages. pre: there is a
 * recorder, and nothing runs. TARN_SYSTEM; TARN_DEVICE: a stamp cannot be read. */
enum tarn_status tarn_trace_save(const struct tarn_session *session, const char *path,
                                 struct tarn_error *error);

#endif
