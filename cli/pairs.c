/* tarn pairs: the set of unsafe pairs by one of four independent methods, and how long it takes.
 */
#include <stdlib.h>

#include "command/command.h"
#include "verbs.h"

#define REPEAT_MAX 1000u

static int compare_reals(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static double median(double *times, uint32_t count)
{
    qsort(times, count, sizeof *times, compare_reals);
    return count % 2 ? times[count / 2] : (times[count / 2 - 1] + times[count / 2]) / 2;
}

/* *pairs gets the medians as its times. */
static enum tarn_status measure(const struct tarn_graph *graph, const char *method, uint32_t repeat,
                                struct tarn_pairs *pairs, struct tarn_error *error)
{
    double ms[REPEAT_MAX], matrix_ms[REPEAT_MAX];
    for (uint32_t i = 0; i < repeat; i++) {
        enum tarn_status status = tarn_graph_pairs(graph, method, pairs, error);
        if (status != TARN_OK) return status;
        ms[i] = pairs->ms;
        matrix_ms[i] = pairs->matrix_ms;
    }
    pairs->ms = median(ms, repeat);
    pairs->matrix_ms = median(matrix_ms, repeat);
    return TARN_OK;
}

static void print_pairs(const struct tarn_graph *graph, const char *method,
                        const struct tarn_pairs *pairs, bool json)
{
    struct tarn_printer printer;
    tarn_printer_begin(&printer, stdout, json);
    tarn_printer_text(&printer, "name", tarn_graph_name(graph));
    tarn_printer_text(&printer, "method", method);
    tarn_printer_count(&printer, "pairs", pairs->pairs);
    tarn_printer_count(&printer, "unsafe", pairs->unsafe);
    tarn_printer_hash(&printer, "hash", pairs->hash);
    tarn_printer_real(&printer, "ms", pairs->ms);
    tarn_printer_real(&printer, "matrix_ms", pairs->matrix_ms);
    tarn_printer_end(&printer);
}

static enum tarn_status find_pairs(const char *path, const struct tarn_load_options *load,
                                   const char *method, uint32_t repeat, bool json)
{
    struct tarn_error error;
    struct tarn_graph *graph;
    struct tarn_pairs pairs;
    enum tarn_status status = tarn_graph_load(path, load, &graph, &error);
    if (status != TARN_OK) return tarn_print_error(&error, status);
    status = measure(graph, method, repeat, &pairs, &error);
    if (status == TARN_OK)
        print_pairs(graph, method, &pairs, json);
    else
        tarn_print_error(&error, status);
    tarn_graph_destroy(graph);
    return status;
}

enum tarn_status tarn_verb_pairs(char **words)
{
    bool json = false;
    struct tarn_load_options load = {.struct_size = sizeof load};
    const char *path, *method = "clocks";
    uint32_t repeat = 1;
    const struct tarn_option options[] = {
        {"method", 0, TARN_OPTION_TEXT, &method, "NAME",
         "clocks, ancestors, ancestors-opt or stream-graph\n(default clocks)", TARN_EVERYDAY},
        {"repeat", 0, TARN_OPTION_COUNT, &repeat, "N",
         "do it N times (1 to 1000) and give the median times", TARN_EVERYDAY},
        TARN_LOAD_OPTION(load),
        TARN_JSON_OPTION(json),
    };
    const struct tarn_command command = {
        .verb = "pairs",
        .usage = "GRAPH",
        .about = "Counts the pairs of planned storages that must not share a byte. All methods\n"
                 "give the same set, and so the same hash.\n\n"
                 "  clocks         Tarn's own: no matrix is needed; its times are ms to be ready\n"
                 "                 and matrix_ms to write the matrix all the same\n"
                 "  ancestors      Algorithm 1 of the SOMAS paper\n"
                 "  ancestors-opt  the same with one consumer per stream\n"
                 "  stream-graph   Algorithm 2 of the SOMAS paper\n",
        TARN_OPTIONS(options),
        .arguments_min = 1,
        .arguments_max = 1,
        .exits = (const enum tarn_status[]){TARN_BAD_INPUT, TARN_OK},
        .example = "  tarn pairs examples/graphs/figure2.json --method stream-graph --json\n",
    };
    enum tarn_status status;
    if (!tarn_options_parse(&command, words, &path, &status)) return status;
    if (repeat < 1 || repeat > REPEAT_MAX)
        return tarn_options_refuse(&command, "--repeat must be 1 to %u", REPEAT_MAX);
    return find_pairs(path, &load, method, repeat, json);
}
