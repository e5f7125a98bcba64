/* Answers about a plan, one function for each question. They read the model of the plan, and print
 * facts: lines for people, or members of the JSON object that the printer has open. */
#ifndef TARN_CLI_EXPLAIN_EXPLAIN_H
#define TARN_CLI_EXPLAIN_EXPLAIN_H

#include "../command/command.h"
#include "../model/model.h"
#include "../model/ways.h"

/* Why the arena is as large as it is: the certificate's storages by op kind, stream and size, the
 * holes beside them, and what is held long after its last use. False: no memory. */
bool tarn_explain_arena(struct tarn_printer *printer, const struct tarn_model *model);

/* Tries other ways of planning, and prints the footprint and the price of each. `source`: the graph
 * that the plan was made for; `stop` ends the tries early. Returns TARN_SYSTEM if a try ran out of
 * memory, TARN_INTERRUPTED if it was stopped, else TARN_OK. */
enum tarn_status tarn_explain_changes(struct tarn_printer *printer, const struct tarn_model *model,
                                      struct tarn_graph *source, const bool *stop);

/* Prints the launches that write and read a holder, the holders that have its bytes before and
 * after it, why that is safe, and the launches that may run meanwhile. False: no memory. */
bool tarn_explain_holder(struct tarn_printer *printer, const struct tarn_model *model,
                         uint32_t holder);
/* Prints what a launch waits for, reads and writes. False: no memory. */
bool tarn_explain_launch(struct tarn_printer *printer, const struct tarn_model *model,
                         uint32_t launch);

/* May two holders share bytes? If so, prints the ways by which one ends before the other begins. If
 * not, *order gets a legal order of all launches, allocated from the memory: a plan in which both
 * holders had the same bytes would read wrong bytes in this order. *order NULL: no such order
 * exists, and *why_none says why, for example because both are used only by the ops that write
 * them. False: no memory. */
bool tarn_explain_pair(struct tarn_printer *printer, struct tarn_memory *memory,
                       const struct tarn_model *model, uint32_t a, uint32_t b,
                       struct tarn_step **order, const char **why_none);

/* ---- Names of holders and launches, and ways as text ---- */

/* Prints a holder's or a launch's name, number and location: members of the open object, or one
 * text. */
void tarn_explain_print_holder(struct tarn_printer *printer, const struct tarn_model *model,
                               uint32_t holder);
void tarn_explain_print_launch(struct tarn_printer *printer, const struct tarn_model *model,
                               uint32_t launch);
void tarn_explain_print_op(struct tarn_printer *printer, const struct tarn_graph *graph,
                           tarn_op op);

/* The steps of a way: in JSON a list of objects, for people one text. */
void tarn_explain_print_way(struct tarn_printer *printer, const struct tarn_model *model,
                            const struct tarn_way *way);

/* Does a word stand for a tensor or an op of the graph? */
bool tarn_explain_is_name(const struct tarn_graph *graph, const char *word);
/* Finds what a word on the command line names: "tensor:ID", "op:ID", or the name of a tensor or of
 * an op. Exactly one of the two is set; TARN_USAGE after saying what is wrong. */
struct tarn_named {
    uint32_t holder, launch; /* TARN_NONE: not that */
};
enum tarn_status tarn_explain_find(const struct tarn_command *command,
                                   const struct tarn_model *model, const char *word,
                                   struct tarn_named *named);

#endif
