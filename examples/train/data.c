/* Source: UCI's optical digits (README.md), and any text.
 * Cost: all samples lie in memory; a copy of one is a memcpy. */
#include "data.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "fail.h"

static void *room(size_t size)
{
    void *memory = malloc(size);
    if (!memory) fail(TARN_SYSTEM, "no memory for the data");
    return memory;
}

static char *read_whole(const char *path, size_t *size)
{
    enum { SIZE_MAX_READ = 1 << 24 };
    gzFile file = gzopen(path, "rb");
    if (!file) fail(TARN_SYSTEM, "%s: cannot be opened", path);
    char *text = room(SIZE_MAX_READ + 1);
    int got = gzread(file, text, SIZE_MAX_READ);
    if (got <= 0) fail(TARN_SYSTEM, "%s: cannot be read", path);
    gzclose(file);
    text[ *size = (size_t)got] = 0;
    return text;
}

static void load_digits(struct data *d, const char *path)
{
    size_t size, lines = 0, i = 0;
    char *text = read_whole(path, &size);
    for (size_t k = 0; k < size; k++) lines += text[k] == '\n';
    d->pixels = room(lines * PIXELS * sizeof *d->pixels);
    d->tokens = room(lines * sizeof *d->tokens);
    for (char *at = text; *at && i < lines; i++, at++) { /* 64 values from 0 to 16, and the class */
        for (int k = 0; k < PIXELS; k++, at += *at == ',')
            d->pixels[i * PIXELS + (size_t)k] = strtof(at, &at) / 16;
        d->tokens[i] = (int32_t)strtol(at, &at, 10);
        if (d->tokens[i] < 0 || d->tokens[i] >= DIGITS || *at != '\n')
            fail(TARN_BAD_INPUT, "%s: line %zu is not 64 values and a class", path, i + 1);
    }
    d->input_bytes = PIXELS * sizeof(float), d->wanted_count = 1;
    d->training = lines * 5 / 6, d->testing = lines - d->training;
    free(text);
}

static void load_text(struct data *d, const char *path)
{
    size_t size;
    char *text = read_whole(path, &size);
    if (size < 100 * LENGTH) fail(TARN_BAD_INPUT, "%s: too short a text", path);
    d->tokens = room(size * sizeof *d->tokens);
    for (size_t i = 0; i < size; i++)
        d->tokens[i] = text[i] == '\n' ? 1 : text[i] >= ' ' && text[i] < 127 ? text[i] : '?';
    size_t samples = size - LENGTH;
    d->input_bytes = LENGTH * sizeof(int32_t), d->wanted_count = LENGTH;
    d->training = samples * 9 / 10, d->testing = samples - d->training;
    free(text);
}

void data_load(struct data *d, const struct options *o)
{
    *d = (struct data){0};
    if (!strcmp(o->network, "digits"))
        load_digits(d, o->data);
    else
        load_text(d, o->data);
}

void data_free(struct data *d)
{
    free(d->pixels);
    free(d->tokens);
}

void data_copy(const struct data *d, size_t sample, void *input, int32_t *wanted)
{
    const void *from = d->pixels ? (const void *)(d->pixels + sample * PIXELS)
                                 : (const void *)(d->tokens + sample);
    memcpy(input, from, d->input_bytes);
    memcpy(wanted, d->tokens + sample + (d->pixels ? 0 : 1), d->wanted_count * sizeof *wanted);
}

size_t data_pick(const struct data *d, uint64_t k)
{
    k = (k + 1) * UINT64_C(0x9e3779b97f4a7c15);
    k = (k ^ k >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    k = (k ^ k >> 27) * UINT64_C(0x94d049bb133111eb);
    return (k ^ k >> 31) % d->training;
}
