/* Prints a violation: a row of text, or an object of JSON with its witness. */
#include "violation.h"

#include <stdio.h>

static void print_witness(struct tarn_printer *printer, const struct tarn_violation *violation)
{
    if (!violation->witness) {
        tarn_printer_text(printer, "witness", NULL);
        return;
    }
    tarn_printer_open(printer, "witness", '[');
    for (size_t i = 0; i < violation->witness_count; i++) {
        tarn_printer_open(printer, NULL, '[');
        tarn_printer_count(printer, NULL, violation->witness[i].op);
        tarn_printer_count(printer, NULL, violation->witness[i].iteration);
        tarn_printer_close(printer);
    }
    tarn_printer_close(printer);
}

void tarn_print_violation(struct tarn_printer *printer, const struct tarn_violation *violation,
                          const char *graph, const char *plan)
{
    const char *kind = tarn_violation_text(violation->kind);
    if (!printer->json) {
        char text[4096];
        snprintf(text, sizeof text, "%s: %s", graph ? graph : "", violation->text);
        tarn_printer_text(printer, kind, graph ? text : violation->text);
        return;
    }
    tarn_printer_open(printer, NULL, '{');
    if (graph) tarn_printer_text(printer, "graph", graph);
    if (plan) tarn_printer_text(printer, "plan", plan);
    tarn_printer_text(printer, "kind", kind);
    tarn_printer_id(printer, "op", violation->op);
    tarn_printer_id(printer, "other_op", violation->other_op);
    tarn_printer_id(printer, "tensor", violation->tensor);
    tarn_printer_id(printer, "other_tensor", violation->other_tensor);
    tarn_printer_text(printer, "text", violation->text);
    print_witness(printer, violation);
    tarn_printer_close(printer);
}
