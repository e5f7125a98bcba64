/* Writes the page: the template that the build has joined from cli/show/page, with the plan's name
 * as title and its columns as data, which the page unpacks. No text of a plan is in the page
 * unescaped. Cost: compressing. */
#include <stdlib.h>
#include <string.h>

#include "words.h"
#include "writers.h"

extern const unsigned char tarn_page[]; /* text, NUL-terminated */

/* Writes the template up to a mark; returns what follows the mark. */
static const char *write_until(FILE *file, const char *page, const char *mark)
{
    const char *at = strstr(page, mark);
    fwrite(page, 1, (size_t)(at - page), file);
    return at + strlen(mark);
}

static bool write_data(FILE *file, const struct tarn_picture *picture)
{
    char *text = NULL;
    size_t size = 0;
    FILE *columns = open_memstream(&text, &size);
    if (!columns) return false;
    bool is_complete = tarn_write_columns(columns, picture);
    bool is_written = fclose(columns) == 0 && is_complete && tarn_pack(file, text, size);
    free(text);
    return is_written;
}

bool tarn_write_page(FILE *file, const struct tarn_picture *picture)
{
    const char *page = write_until(file, (const char *)tarn_page, "@TITLE@");
    tarn_write_name(file, TARN_XML, tarn_graph_name(picture->model.graph), TARN_NAME_MAX);
    page = write_until(file, page, "@DATA@");
    bool is_written = write_data(file, picture);
    fputs(page, file);
    return is_written;
}
