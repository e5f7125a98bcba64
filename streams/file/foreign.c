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

/* Does the name of a zip archive's first file end so? */
static bool begins_with_file(const struct tarn_foreign_head *head, const char *end)
{
    if (!is_zip(head) || head->size < 30) return false;
    size_t length = head->bytes[26] | (size_t)head->bytes[27] << 8, size = strlen(end);
    return length >= size && has_at(head, 30 + length - size, end);
}

static bool is_arrays(const struct tarn_foreign_head *head)
{
    return begins_with_file(head, ".npy") || has_at(head, 0, "\x93NUMPY");
}

/* The second one is a pickle of PyTorch's magic number. */
static bool is_saved(const struct tarn_foreign_head *head)
{
    return begins_with_file(head, "/data.pkl") ||
           has_at(head, 1, "\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19");
}

static bool is_torch_script(const struct tarn_foreign_head *head)
{
    return is_zip(head) && contains(head, "/code/__torch__");
}

/* Eight bytes of length, then JSON. */
static bool is_safetensors(const struct tarn_foreign_head *head)
{
    return has_at(head, 8, "{\"") && head->bytes[5] == 0 && head->bytes[6] == 0 &&
           head->bytes[7] == 0;
}

static bool is_gguf(const struct tarn_foreign_head *head) { return has_at(head, 0, "GGUF"); }
static bool is_hdf5(const struct tarn_foreign_head *head) { return has_at(head, 0, "\x89HDF\r\n"); }

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

/* Has a text of protobuf, of so many bytes at a place, no control characters? */
static bool is_readable(const struct tarn_foreign_head *head, size_t place, uint64_t size)
{
    for (uint64_t i = 0; i < size && place + i < head->size; i++)
        if (head->bytes[place + i] < ' ') return false;
    return true;
}

/* Takes the tag of field `field`, which has a length; false: it is another one. */
static bool take_field(const struct tarn_foreign_head *head, size_t *place, unsigned field,
                       uint64_t *size)
{
    uint64_t key;
    return take_varint(head, place, &key) && key == (field << 3 | 2) &&
           take_varint(head, place, size);
}

/* SavedModel: version 1, then a MetaGraphDef, which begins with a message. GraphDef and HloProto: a
 * message that begins with two texts. */
static bool is_tensor_flow(const struct tarn_foreign_head *head)
{
    uint64_t size, inner;
    size_t place = 2;
    if (has_at(head, 0, "\x08\x01") && take_field(head, &place, 2, &size) &&
        take_field(head, &place, 1, &inner))
        return inner < size;
    place = 0;
    if (!take_field(head, &place, 1, &size)) return false;
    for (unsigned field = 1; field <= 2; field++) {
        if (!take_field(head, &place, field, &inner) || inner == 0 || inner >= size) return false;
        if (!is_readable(head, place, inner)) return false;
        place += (size_t)inner;
    }
    return true;
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
        bool is_text = (field >= 2 && field <= 4) || field == 6;
        if (is_text && !is_readable(head, place, field == 6 ? 0 : value)) return false;
        has_version |= field == 1;
        has_more |= field != 1;
        if (!is_number) place += value < sizeof head->bytes ? (size_t)value : sizeof head->bytes;
    }
    return has_version && has_more;
}

#define READ_IT "read it with python -m tarn.read FILE -o GRAPH"
#define READ_MODEL "it has no graph; read the model that it belongs to (docs/reading.md)"

static const struct {
    bool (*is)(const struct tarn_foreign_head *head);
    const char *what, *advice; /* kind of file; what to do */
} formats[] = {
    {is_tflite, "a TensorFlow Lite model", READ_IT},
    {is_executorch, "an ExecuTorch program", READ_IT},
    {is_arrays, "an array of NumPy", READ_MODEL},
    {is_saved, "tensors that torch.save wrote", READ_MODEL},
    {is_torch_script, "a program of TorchScript",
     "write the model with torch.export.save, or as ONNX, and read that with python -m tarn.read"},
    {is_zip, "a zip archive, as torch.export.save and torch.save write them",
     READ_IT ", if it is an exported program (.pt2)"},
    {is_safetensors, "weights in the format of safetensors", READ_MODEL},
    {is_gguf, "weights in GGUF", READ_MODEL},
    {is_hdf5, "an HDF5 file, as Keras writes weights", READ_MODEL},
    {is_pickle, "a pickle, as PyTorch's memory snapshots are", READ_IT ", if it is a snapshot"},
    {is_bytecode, "MLIR bytecode", READ_IT ", if it is StableHLO"},
    {is_hlo, "HLO text of XLA", READ_IT},
    {is_buffers, "a buffer assignment of XLA", READ_IT " --plan PLAN"},
    {is_somas, "a dump of MindSpore's SOMAS", READ_IT " --plan PLAN"},
    {is_stablehlo, "MLIR, as StableHLO is written", READ_IT},
    {is_trace, "a trace of execution, which has times but no graph",
     "read it with python -m tarn.read FILE --costs-of GRAPH -o GRAPH"},
    {is_tensor_flow, "a protobuf of TensorFlow or XLA",
     "write the model as ONNX, TensorFlow Lite, StableHLO or HLO text, and read that with python "
     "-m "
     "tarn.read"},
    {is_onnx, "an ONNX model", READ_IT},
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
                        "this is no tarn.graph; it seems to be %s: %s", formats[f].what,
                        formats[f].advice);
        return;
    }
}
