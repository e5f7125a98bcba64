/* Source: UCI's optical digits, and a text of this project (README.md).
 * Cost: all samples lie in memory; a copy of one is a memcpy. */
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "train.h"

struct data data;

char *read_whole(const char *path, size_t *size)
{
    enum { SIZE_MAX_READ = 1 << 26 };
    gzFile file = gzopen(path, "rb");
    if (!file) fail(TARN_SYSTEM, "%s: cannot be opened", path);
    char *text = zeros(SIZE_MAX_READ + 1, 1);
    int got = gzread(file, text, SIZE_MAX_READ);
    if (got <= 0) fail(TARN_SYSTEM, "%s: cannot be read", path);
    gzclose(file);
    *size = (size_t)got;
    return text;
}

/* Lines of 64 values from 0 to 16, and the class. */
static void load_digits(char *at)
{
    size_t lines = 0;
    for (const char *c = at; *c; c++) lines += *c == '\n';
    float *pixel = zeros(lines * PIXELS, sizeof *pixel);
    int32_t *class = zeros(lines, sizeof *class);
    data.samples = lines, data.inputs = pixel, data.wanted = class;
    data.input_bytes = data.stride = PIXELS * sizeof *pixel, data.classes = 1;
    for (size_t i = 0; i < lines; i++) {
        for (size_t k = 0; k < PIXELS; k++, at++) *pixel++ = strtof(at, &at) / 16;
        *class ++ = (int32_t)strtol(at, &at, 10);
    }
}

static void load_text(const char *text, size_t size)
{
    int32_t *token = zeros(size, sizeof *token);
    data.samples = size - LENGTH, data.inputs = token, data.wanted = token + 1;
    data.input_bytes = LENGTH * sizeof *token, data.stride = sizeof *token, data.classes = LENGTH;
    for (const char *c = text; c < text + size; c++)
        *token++ = *c == '\n' ? 1 : *c >= ' ' && *c < 127 ? *c : '?';
}

void data_load(void)
{
    size_t size;
    char *text = read_whole(options.is_text ? TRAIN_TEXT : TRAIN_DIGITS, &size);
    if (options.is_text)
        load_text(text, size);
    else
        load_digits(text);
    data.training = data.samples * 5 / 6;
    free(text);
}

void data_copy(size_t sample, void *input, int32_t *wanted)
{
    memcpy(input, (const char *)data.inputs + sample * data.stride, data.input_bytes);
    memcpy(wanted, data.wanted + sample, data.classes * sizeof *wanted);
}

/* The k-th sample that training takes. */
static size_t pick(uint64_t k)
{
    k = (k + 1) * UINT64_C(0x9e3779b97f4a7c15);
    k = (k ^ k >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    k = (k ^ k >> 27) * UINT64_C(0x94d049bb133111eb);
    return (k ^ k >> 31) % data.training;
}

void data_batch(uint64_t step, uint32_t shard, void *input, int32_t *wanted)
{
    const uint64_t shards = (uint64_t)options.shards, batch = (uint64_t)options.batch;
    for (uint64_t i = 0; i < batch; i++)
        data_copy(pick((step * shards + shard) * batch + i), (char *)input + i * data.input_bytes,
                  wanted + i * data.classes);
}
