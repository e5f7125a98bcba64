/* Names of what a model has, and ways as text. */
#ifndef TARN_CLI_EXPLAIN_NAMES_H
#define TARN_CLI_EXPLAIN_NAMES_H

#include "../command/command.h"
#include "../model/ways.h"

/* A holder's or a launch's name and number, as members of the open object. */
void tarn_explain_print_holder(struct tarn_printer *printer, const struct tarn_model *model,
                               uint32_t holder);
void tarn_explain_print_launch(struct tarn_printer *printer, const struct tarn_model *model,
                               uint32_t launch);

/* A row of a list: opened by its key for people, by nothing in JSON. */
void tarn_explain_open_row(struct tarn_printer *printer, const char *key);
/* The list around rows, which only JSON has. */
void tarn_explain_open_list(struct tarn_printer *printer, const char *key);
void tarn_explain_close_list(struct tarn_printer *printer);

/* The steps of a way: in JSON a list of objects, for people one text. */
void tarn_explain_print_way(struct tarn_printer *printer, const struct tarn_model *model,
                            const struct tarn_way *way);

/* What a word on the command line names: "tensor:ID", "op:ID", or the name of a tensor or of an
 * op. Exactly one of the two is set; TARN_USAGE after saying what is wrong. */
struct tarn_named {
    uint32_t holder, launch; /* TARN_NONE: not that */
};
enum tarn_status tarn_explain_find(const struct tarn_command *command,
                                   const struct tarn_model *model, const char *word,
                                   struct tarn_named *named);

#endif
