/* Recognizes the files of other programs by their first bytes: magic numbers, the first fields of a
 * protobuf, the first words of a text. One table, in the order in which it is tried.
 * python/tarn/read/detect.py has the same table, and reads these files. Cost: constant, since only
 * the first bytes are read.
 */
#include "foreign.h"

#include <ctype.h>
#include <string.h>

#include "streams/base/array.h"

static bool has_at(const struct tarn_foreign_head *head, size_t place, const char *magic)
{
    size_t length = strlen(magic);
    return head->size >= place + length && memcmp(head->bytes + place, magic, length) == 0;
}

static bool contains(const struct tarn_foreign_head *head, const char *words)
{
    size_t length = strlen(words);
    for (size_t place = 0; place + length <= head->size; place++) {
        if (memcmp(head->bytes + place, words, length) == 0) return true;
    }
    return false;
}

/* Does a line begin with these words? */
static bool has_line(const struct tarn_foreign_head *head, const char *words)
{
    for (size_t place = 0; place < head->size; place++) {
        if ((place == 0 || head->bytes[place - 1] == '\n') && has_at(head, place, words))
            return true;
    }
    return false;
}

static bool is_tflite(const struct tarn_foreign_head *head) { return has_at(head, 4, "TFL3"); }
static bool is_executorch(const struct tarn_foreign_head *head) { return has_at(head, 4, "ET12"); }
static bool is_zip(const struct tarn_foreign_head *head) { return has_at(head, 0, "PK\003\004"); }
static bool is_bytecode(const struct tarn_foreign_head *head) { return has_at(head, 0, "ML\xefR"); }
static bool is_hlo(const struct tarn_foreign_head *head) { return has_line(head, "HloModule "); }
static bool is_buffers(const struct tarn_foreign_head *head)
{
    return has_line(head, "BufferAssignment:");
}

static bool is_pickle(const struct tarn_foreign_head *head)
{
    return head->size > 2 && head->bytes[0] == 0x80 && head->bytes[1] >= 2 && head->bytes[1] <= 5;
}

static bool is_somas(const struct tarn_foreign_head *head)
{
    bool has_section = has_line(head, "All Parameters:") || has_line(head, "All Tensors:");
    return has_section && contains(head, "index:\t");
}

static bool is_stablehlo(const struct tarn_foreign_head *head)
{
    bool is_mlir = has_line(head, "module ") || has_line(head, "func.func ");
    return is_mlir && (contains(head, "stablehlo.") || contains(head, "func.func "));
}

static bool is_trace(const struct tarn_foreign_head *head)
{
    size_t begin = 0;
    while (begin < head->size && isspace(head->bytes[begin])) begin++;
    bool is_json = begin < head->size && (head->bytes[begin] == '{' || head->bytes[begin] == '[');
    return is_json && !contains(head, "tarn.") &&
           (contains(head, "\"traceEvents\"") || contains(head, "\"deviceProperties\"") ||
            contains(head, "chakra") || (contains(head, "\"ph\"") && contains(head, "\"ts\"")));
}

/* Reads a varint of protobuf at *place, and moves *place after it; false: there is none. */
static bool take_varint(const struct tarn_foreign_head *head, size_t *place, uint64_t *value)
{
    *value = 0;
    for (unsigned shift = 0; shift < 64 && *place < head->size; shift += 7) {
        unsigned char byte = head->bytes[(*place)++];
        *value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) return true;
    }
    return false;
}

/* ONNX's ModelProto: fields 1 (ir_version) and 5 (model_version) are varints, 2 to 4 and 6 texts,
 * 7 the graph, 8 the operator sets, 14, 20, 25 and 26 further messages. */
static bool is_onnx(const struct tarn_foreign_head *head)
{
    bool has_version = false, has_more = false;
    size_t place = 0;
    while (place < head->size && !(has_version && has_more)) {
        uint64_t key, value;
        if (!take_varint(head, &place, &key)) return false;
        uint64_t field = key >> 3;
        bool is_number = field == 1 || field == 5;
        bool is_known =
            (field >= 1 && field <= 8) || field == 14 || field == 20 || field == 25 || field == 26;
        if (!is_known || (key & 7) != (is_number ? 0u : 2u)) return false;
        if (!take_varint(head, &place, &value)) return false;
        if (field == 1 && (value == 0 || value > 100)) return false;
        has_version |= field == 1;
        has_more |= field != 1;
        if (!is_number) place += value < sizeof head->bytes ? (size_t)value : sizeof head->bytes;
    }
    return has_version && has_more;
}

static const struct {
    bool (*is)(const struct tarn_foreign_head *head);
    const char *what, *reader; /* kind of file; how to read it */
} formats[] = {
    {is_tflite, "a TensorFlow Lite model", "python -m tarn.read FILE -o GRAPH"},
    {is_executorch, "an ExecuTorch program", "python -m tarn.read FILE -o GRAPH"},
    {is_zip, "a zip archive, as torch.export.save and torch.save write them",
     "python -m tarn.read FILE -o GRAPH, if it is an exported program (.pt2)"},
    {is_pickle, "a pickle, as PyTorch's memory snapshots are",
     "python -m tarn.read FILE -o GRAPH, if it is a snapshot"},
    {is_bytecode, "MLIR bytecode", "python -m tarn.read FILE -o GRAPH, if it is StableHLO"},
    {is_hlo, "HLO text of XLA", "python -m tarn.read FILE -o GRAPH"},
    {is_buffers, "a buffer assignment of XLA", "python -m tarn.read FILE -o GRAPH --plan PLAN"},
    {is_somas, "a dump of MindSpore's SOMAS", "python -m tarn.read FILE -o GRAPH --plan PLAN"},
    {is_stablehlo, "MLIR, as StableHLO is written", "python -m tarn.read FILE -o GRAPH"},
    {is_trace, "a trace of execution, which has times but no graph",
     "python -m tarn.read FILE --costs-of GRAPH -o GRAPH"},
    {is_onnx, "an ONNX model", "python -m tarn.read FILE -o GRAPH"},
};

void tarn_foreign_keep(struct tarn_foreign_head *head, const char *bytes, size_t size)
{
    head->size = size < sizeof head->bytes ? size : sizeof head->bytes;
    memcpy(head->bytes, bytes, head->size);
}

void tarn_foreign_explain(const struct tarn_report *report, const struct tarn_foreign_head *head)
{
    for (size_t f = 0; f < TARN_COUNT_OF(formats); f++) {
        if (!formats[f].is(head)) continue;
        tarn_error_clear(report->error);
        tarn_report_bad(report, tarn_location_at(TARN_NONE, TARN_NONE, "%s", ""),
                        "this is no tarn.graph; it seems to be %s: read it with %s",
                        formats[f].what, formats[f].reader);
        return;
    }
}
