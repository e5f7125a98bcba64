/* Checks and copies the caller's readers and writers; see base/options.h. Cost: constant. */
#include "streams/base/options.h"
#include "text_file.h"

enum tarn_status tarn_reader_check(struct tarn_reader *reader, const struct tarn_reader *given,
                                   const char *function, struct tarn_error *error)
{
    if (!given) return tarn_error_null(error, function);
    enum tarn_status status = tarn_options_take(reader, sizeof *reader, given, "a reader", error);
    if (status != TARN_OK) return status;
    if (!reader->name) reader->name = "memory";
    if (!tarn_reader_is_file(reader)) return TARN_OK;
    return tarn_error_set(error, TARN_USAGE, "%s: the reader has neither bytes nor a function",
                          reader->name);
}

enum tarn_status tarn_writer_check(struct tarn_writer *writer, const struct tarn_writer *given,
                                   const char *function, struct tarn_error *error)
{
    if (!given) return tarn_error_null(error, function);
    enum tarn_status status = tarn_options_take(writer, sizeof *writer, given, "a writer", error);
    if (status != TARN_OK) return status;
    if (!writer->name) writer->name = "memory";
    if (!tarn_writer_is_file(writer)) return TARN_OK;
    return tarn_error_set(error, TARN_USAGE, "%s: the writer has neither a function nor room",
                          writer->name);
}
