/* Source: UCI's optical digits (README.md), and any text.
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
static void load_digits(const char *text)
{
    size_t lines = 0;
    for (const char *c = text; *c; c++) lines += *c == '\n';
    data.pixels = zeros(lines * PIXELS, sizeof *data.pixels);
    data.tokens = zeros(lines, sizeof *data.tokens);
    char *at = (char *)text;
    for (size_t i = 0; i < lines; i++, at++) {
        for (size_t k = 0; k < PIXELS; k++, at += *at == ',')
            data.pixels[i * PIXELS + k] = strtof(at, &at) / 16;
        data.tokens[i] = (int32_t)strtol(at, &at, 10);
        if (data.tokens[i] < 0 || data.tokens[i] >= DIGITS || *at != '\n')
            fail(TARN_BAD_INPUT, "%s: line %zu is not 64 values and a class", options.data, i + 1);
    }
    data.input_bytes = PIXELS * sizeof(float), data.classes = 1;
    data.training = lines * 5 / 6, data.testing = lines - data.training;
}

static void load_text(const char *text, size_t size)
{
    if (size < 100 * LENGTH) fail(TARN_BAD_INPUT, "%s: too short a text", options.data);
    data.tokens = zeros(size, sizeof *data.tokens);
    for (size_t i = 0; i < size; i++)
        data.tokens[i] = text[i] == '\n' ? 1 : text[i] >= ' ' && text[i] < 127 ? text[i] : '?';
    size_t samples = size - LENGTH;
    data.input_bytes = LENGTH * sizeof(int32_t), data.classes = LENGTH;
    data.training = samples * 9 / 10, data.testing = samples - data.training;
}

void data_load(void)
{
    size_t size;
    char *text = read_whole(options.data, &size);
    if (trains_text())
        load_text(text, size);
    else
        load_digits(text);
    free(text);
}

void data_copy(size_t sample, void *input, int32_t *wanted)
{
    const int32_t *tokens = data.tokens + sample;
    memcpy(input, data.pixels ? (void *)(data.pixels + sample * PIXELS) : (void *)tokens,
           data.input_bytes);
    memcpy(wanted, data.pixels ? tokens : tokens + 1, data.classes * sizeof *wanted);
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
