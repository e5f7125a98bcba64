/* Placeholder head, filled next. */
#include "../streams/graph/error.h"
#include "session.h"
static enum tarn_status executor_create(struct tarn_session *session,
                                        const struct tarn_session_options *options,
                                        struct tarn_executor **executor, struct tarn_error *error)
{
    (void)session, (void)options, (void)executor;
    return tarn_error_set(error, TARN_USAGE, "devices with queues are not served yet");
}
const struct tarn_executor_table tarn_executor_queues = {.create = executor_create};
