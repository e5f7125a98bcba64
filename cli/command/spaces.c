/* Prints each memory space of a plan, if its graph has several. Cost: linear in the spaces. */
#include "print.h"

void tarn_spaces_print(struct tarn_printer *printer, const struct tarn_plan *plan)
{
    const struct tarn_graph *graph = tarn_plan_graph(plan);
    uint32_t count = tarn_graph_spaces_count(graph);
    if (count > 1 && printer->json) tarn_printer_open(printer, "spaces", '[');
    for (tarn_space s = 0; count > 1 && s < count; s++) {
        struct tarn_space_info info;
        struct tarn_plan_space_summary made;
        tarn_graph_space(graph, s, &info);
        tarn_plan_space(plan, s, &made);
        tarn_printer_open_row(printer, "space");
        tarn_printer_text(printer, "name", info.name);
        tarn_printer_bytes(printer, "footprint_bytes", made.footprint);
        tarn_printer_bytes_or_null(printer, "bound_bytes", made.bound);
        tarn_printer_bytes(printer, "persistent_bytes", made.persistent);
        tarn_printer_close(printer);
    }
    if (count > 1 && printer->json) tarn_printer_close(printer);
}
