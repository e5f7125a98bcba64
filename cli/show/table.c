/* The map as a table, for plots of one's own: a row for each storage and workspace, with its bytes
 * and when it is in use. The rectangle of the map is [first, last) by [offset, offset + size).
 * Cost: linear. */
#include <inttypes.h>
#include <string.h>

#include "words.h"
#include "writers.h"

/* Writes a field, in quotes if needed, without control characters. */
static void write_field(FILE *file, const char *text)
{
    char plain[TARN_LINE_MAX + 1];
    tarn_text_escape(TARN_PLAIN, text, plain, sizeof plain);
    bool is_quoted = strpbrk(plain, ",\"") != NULL;
    if (is_quoted) fputc('"', file);
    for (const char *letter = plain; *letter; letter++) {
        if (*letter == '"') fputc('"', file);
        fputc(*letter, file);
    }
    if (is_quoted) fputc('"', file);
}

static void write_row(FILE *file, const struct tarn_picture *picture, uint32_t h)
{
    static const char *const kinds[TARN_HOLDER_KINDS] = {"intermediate", "gradient", "output",
                                                         "workspace"};
    const struct tarn_model *model = &picture->model;
    const struct tarn_holder *holder = &model->holders[h];
    const struct tarn_model_span *span = &picture->spans[h];
    write_field(file, holder->name);
    fprintf(file, ",%s,", kinds[holder->kind]);
    write_field(file, tarn_graph_stream_name(model->graph, model->launches[holder->writer].stream));
    fputc(',', file);
    write_field(file, model->spaces[holder->space].name);
    fprintf(file, ",%" PRIu64 ",%" PRIu64 ",%.15g,%.15g,%.15g\n", holder->size,
            tarn_holder_offset(model, holder), span->begin, span->end, span->free);
}

bool tarn_write_table(FILE *file, const struct tarn_picture *picture)
{
    fputs("name,kind,stream,space,size,offset,first,last,free\n", file);
    for (uint32_t h = 0; h < picture->model.holders_count; h++) write_row(file, picture, h);
    return true;
}
