/* Reads lists of graphs: files with the path of a graph in each line. */
#include "list.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool tarn_list_open(struct tarn_graph_list *list, const char *path)
{
    *list = (struct tarn_graph_list){.path = path,
                                     .file = tarn_is_dash(path) ? stdin : fopen(path, "r")};
    if (!list->file) tarn_say("%s: cannot be read: %s", path, strerror(errno));
    return list->file;
}

const char *tarn_list_next(struct tarn_graph_list *list)
{
    ssize_t length;
    while ((length = getline(&list->line, &list->room, list->file)) >= 0) {
        list->number++;
        while (length > 0 && (list->line[length - 1] == '\n' || list->line[length - 1] == '\r'))
            list->line[--length] = '\0';
        if (length > 0) return list->line;
    }
    list->failed = !feof(list->file);
    return NULL;
}

enum tarn_status tarn_list_close(struct tarn_graph_list *list)
{
    enum tarn_status status = list->failed || ferror(list->file) ? TARN_SYSTEM : TARN_OK;
    if (status != TARN_OK) tarn_say("%s: cannot be read: %s", list->path, strerror(errno));
    free(list->line);
    if (list->file != stdin) fclose(list->file);
    return status;
}

struct tarn_list_place tarn_list_place(const struct tarn_graph_list *list)
{
    struct tarn_list_place place;
    snprintf(place.text, sizeof place.text, "%.200s, line %" PRIu64,
             tarn_is_dash(list->path) ? "standard input" : list->path, list->number);
    return place;
}
