/* Cutting lines and cells: each call puts a NUL at the end of what it returns and moves on, so that
 * a table is read in one pass without a copy. Cost: linear in the text.
 */
#include "csv.h"

#include <stdlib.h>
#include <string.h>

#include "streams/base/checked.h"

char *tarn_csv_begin(char *text, size_t size)
{
    if (strlen(text) != size) return NULL;
    return strncmp(text, "\xef\xbb\xbf", 3) == 0 ? text + 3 : text;
}

size_t tarn_csv_lines_count(const char *text)
{
    size_t lines = 1;
    while ((text = strchr(text, '\n')) != NULL) {
        lines++;
        text++;
    }
    return lines;
}

static char *without_blanks(char *begin, char *end)
{
    while (end > begin && (end[-1] == '\r' || end[-1] == ' ' || end[-1] == '\t')) end--;
    *end = 0;
    return begin + strspn(begin, " \t");
}

char *tarn_csv_next_line(char **text)
{
    char *line = *text, *end;
    if (!line || *line == 0) return NULL;
    end = strchr(line, '\n');
    *text = end ? end + 1 : NULL;
    return without_blanks(line, end ? end : line + strlen(line));
}

char *tarn_csv_next_cell(char **line)
{
    char *cell = *line, *comma;
    if (!cell) return NULL;
    comma = strchr(cell, ',');
    *line = comma ? comma + 1 : NULL;
    return without_blanks(cell, comma ? comma : cell + strlen(cell));
}

bool tarn_csv_number(const char *cell, uint64_t *number)
{
    uint64_t value = 0;
    const char *at = cell;
    for (; *at >= '0' && *at <= '9' && value <= TARN_NUMBER_MAX; at++)
        value = value * 10 + (uint64_t)(*at - '0');
    if (at == cell || *at != 0 || value > TARN_NUMBER_MAX) return false;
    *number = value;
    return true;
}

/* ---- Names ---- */

static int compare_names(const void *a, const void *b)
{
    const struct tarn_csv_name *x = a, *y = b;
    int order = strcmp(x->text, y->text);
    return order != 0 ? order : (x->index > y->index) - (x->index < y->index);
}

const struct tarn_csv_name *tarn_csv_find_twin(struct tarn_csv_name *names, uint32_t count)
{
    qsort(names, count, sizeof *names, compare_names);
    for (uint32_t i = 1; i < count; i++) {
        if (strcmp(names[i - 1].text, names[i].text) == 0) return &names[i];
    }
    return NULL;
}
