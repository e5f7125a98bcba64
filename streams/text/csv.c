/* Cuts lines and cells: each call puts a NUL at the end of what it returns and moves on, so that a
 * table is read in one pass without a copy. Cost: linear in the text.
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

/* Tabs may separate empty cells, so tabs at the ends of a line stay. */
char *tarn_csv_next_line(char **text)
{
    char *line = *text, *end;
    if (!line || *line == 0) return NULL;
    end = strchr(line, '\n');
    *text = end ? end + 1 : NULL;
    if (!end) end = line + strlen(line);
    while (end > line && (end[-1] == '\r' || end[-1] == ' ')) end--;
    *end = 0;
    line += strspn(line, " ");
    return line[strspn(line, " \t")] == 0 ? end : line;
}

/* ---- Cells ---- */

/* The position after the quote that ends a quoted cell; NULL: there is none. */
static const char *behind_quotes(const char *cell)
{
    const char *at = cell + 1;
    while (*at && (*at != '"' || at[1] == '"')) at += *at == '"' ? 2 : 1;
    return *at ? at + 1 : NULL;
}

static const char *behind_blanks(const char *at, char separator)
{
    while (*at == ' ' || (*at == '\t' && separator != '\t')) at++;
    return at;
}

/* The end of the first cell: its separator, or the line's end. Quotes that are not closed count as
 * letters.
 */
static const char *end_of_cell(const char *cell, char separator)
{
    const char *begin = behind_blanks(cell, separator);
    const char *behind = *begin == '"' ? behind_quotes(begin) : NULL;
    const char *end = strchr(behind ? behind : cell, separator);
    return end ? end : cell + strlen(cell);
}

char tarn_csv_separator(const char *header)
{
    for (const char *at = header; *at; at++) {
        const char *behind = *at == '"' ? behind_quotes(at) : NULL;
        if (behind)
            at = behind - 1;
        else if (strchr(",;\t", *at))
            return *at;
    }
    return ',';
}

bool tarn_csv_quotes_close(const char *line, char separator)
{
    for (;;) {
        const char *begin = behind_blanks(line, separator), *end = end_of_cell(line, separator);
        if (*begin == '"') {
            const char *behind = behind_quotes(begin);
            if (!behind || behind_blanks(behind, separator) != end) return false;
        }
        if (*end == 0) return true;
        line = end + 1;
    }
}

/* Removes the quotes of a cell in place. */
static char *without_quotes(char *cell)
{
    char *to = cell;
    for (const char *from = cell + 1; *from; from++) {
        if (*from == '"' && from[1] != '"') break;
        from += *from == '"';
        *to++ = *from;
    }
    *to = 0;
    return cell;
}

char *tarn_csv_next_cell(char **line, char separator)
{
    char *cell = *line;
    if (!cell) return NULL;
    bool is_quoted = *behind_blanks(cell, separator) == '"';
    char *end = cell + (end_of_cell(cell, separator) - cell);
    *line = *end ? end + 1 : NULL;
    cell = without_blanks(cell, end);
    return is_quoted ? without_quotes(cell) : cell;
}

static int lower(char letter)
{
    return letter >= 'A' && letter <= 'Z' ? letter - 'A' + 'a' : letter;
}

bool tarn_csv_is(const char *cell, const char *name)
{
    while (*cell && lower(*cell) == lower(*name)) {
        cell++;
        name++;
    }
    return *cell == 0 && *name == 0;
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
