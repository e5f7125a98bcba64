/* Tables of costs, and what they do to a training step: implementations that the graph has room
 * for, or an error with the line. */
#include <string.h>

#include "fuzz.h"
#include "support/training_graph.h"

static void use(const struct tarn_cost_table *table, bool split)
{
    struct tarn_error error = fuzz_old_error();
    struct tarn_graph *result = NULL;
    struct tarn_implementations_report report;
    struct training_graph training = training_graph(2);
    enum tarn_status status = tarn_graph_implementations(
        training.graph,
        TARN_IMPLEMENTATIONS_OPTIONS(.costs = table, .split_backward = split, .report = &report),
        &result, &error);
    fuzz_answered("implementations", status, &error, ANY_OF(TARN_OK) | ANY_OF(TARN_BAD_INPUT));
    PROMISED((result != NULL) == (status == TARN_OK), "%s", error.text);
    PROMISED(status == TARN_OK || error.line > 0 || error.op != TARN_NONE ||
                 error.tensor != TARN_NONE,
             "%s", error.text);
    if (result) fuzz_round_trip(result, "saved.json", ANY_OF(TARN_OK));
    tarn_graph_destroy(result);
    tarn_graph_destroy(training.graph);
}

void fuzz_costs(const uint8_t *data, size_t size)
{
    struct tarn_error error = fuzz_old_error();
    struct tarn_cost_table *table = (struct tarn_cost_table *)&error;
    const char *path = fuzz_file("costs.csv", data, size);
    fuzz_memory_begin();
    enum tarn_status status = tarn_cost_table_load(path, &table, &error);
    if (size < 2 || data[0] != 0x1f || data[1] != 0x8b) fuzz_memory_check(data, size);
    fuzz_loaded("load", status, &error, path);
    PROMISED((table != NULL) == (status == TARN_OK), "%s", error.text);
    if (status != TARN_OK) return;
    use(table, false);
    use(table, true);
    tarn_cost_table_destroy(table);
}
