/* Prints help in two lengths: one screen to begin with, and everything. */
#include "help.h"

#include <stdio.h>
#include <string.h>

#define HELP_COLUMN 24
#define HELP_WIDTH (80 - HELP_COLUMN - 2)

static const struct tarn_option help_option = {"help", 'h',         TARN_OPTION_FLAG, NULL,
                                               NULL,   "this text", TARN_EVERYDAY};
static const struct tarn_option help_all_option = {
    "help-all",   0, TARN_OPTION_FLAG, NULL, NULL, "all options, words and exit codes",
    TARN_EVERYDAY};

void tarn_help_form(const struct tarn_option *option, char form[TARN_FORM_MAX])
{
    char letter[8] = "";
    if (option->letter) snprintf(letter, sizeof letter, "-%c, ", option->letter);
    snprintf(form, TARN_FORM_MAX, "%s--%s%s%s", letter, option->name, option->value_name ? " " : "",
             option->value_name ? option->value_name : "");
}

/* Prints the words of `text` up to `end`, in lines that begin at HELP_COLUMN. */
static void print_wrapped(const char *text, const char *end)
{
    size_t column = 0;
    while (text < end) {
        size_t word = strcspn(text, " \n");
        if (text + word > end) word = (size_t)(end - text);
        if (column > 0 && column + 1 + word > HELP_WIDTH) {
            printf("\n  %-*s", HELP_COLUMN, "");
            column = 0;
        }
        printf("%s%.*s", column > 0 ? " " : "", (int)word, text);
        column += word + (column > 0);
        text += word + (text + word < end);
    }
    putchar('\n');
}

static void print_option(const struct tarn_option *option, bool in_full)
{
    char form[TARN_FORM_MAX];
    tarn_help_form(option, form);
    printf("  %-*s", HELP_COLUMN, form);
    if (strlen(form) >= HELP_COLUMN) printf("\n  %-*s", HELP_COLUMN, "");
    const char *end = option->help + (in_full ? strlen(option->help) : strcspn(option->help, "\n"));
    if (!in_full && *end && strchr(",:;", end[-1])) end--;
    print_wrapped(option->help, end);
}

const char *tarn_help_exit_text(const struct tarn_command *command, enum tarn_status status)
{
    switch (status) {
    case TARN_OK: return "ok";
    case TARN_DOES_NOT_FIT:
        return command->refusal ? command->refusal : "the plan does not fit into the capacity";
    case TARN_USAGE: return "wrong command line";
    case TARN_BAD_INPUT: return "a graph, plan or order is malformed or breaks a rule";
    case TARN_DEVICE: return "the device or a kernel failed";
    case TARN_DEADLINE: return "not finished within the deadline";
    case TARN_REJECTED: return "the verifier rejected the plan";
    case TARN_CHECK_FAILED: return "checked execution read a wrong byte";
    case TARN_SYSTEM: return "out of memory, or a file cannot be read or written";
    case TARN_INTERRUPTED: return "interrupted (SIGINT, SIGTERM)";
    }
    return "";
}

size_t tarn_help_exits(const struct tarn_command *command, enum tarn_status exits[TARN_EXITS_MAX])
{
    const enum tarn_status *own = command->exits;
    size_t count = 0;
    exits[count++] = TARN_OK;
    if (*own == TARN_DOES_NOT_FIT) exits[count++] = *own++;
    exits[count++] = TARN_USAGE;
    while (*own != TARN_OK) exits[count++] = *own++;
    exits[count++] = TARN_SYSTEM;
    exits[count++] = TARN_INTERRUPTED;
    return count;
}

static void print_exits(const struct tarn_command *command)
{
    enum tarn_status exits[TARN_EXITS_MAX];
    size_t count = tarn_help_exits(command, exits);
    printf("\nExit codes:\n");
    for (size_t i = 0; i < count; i++)
        printf("  %3d  %s\n", (int)exits[i], tarn_help_exit_text(command, exits[i]));
}

/* Bytes of the part of the about text that --help shows. */
static size_t summary_size(const struct tarn_command *command)
{
    const char *end = strstr(command->about, "\n\n");
    return end ? (size_t)(end - command->about) + 1 : strlen(command->about);
}

void tarn_help_print(const struct tarn_command *command, bool in_full)
{
    int about_size = in_full ? (int)strlen(command->about) : (int)summary_size(command);
    printf("Usage: tarn %s %s [OPTION]...\n\n%.*s\nOptions:\n", command->verb, command->usage,
           about_size, command->about);
    for (size_t i = 0; i < command->options_count; i++) {
        if (in_full || command->options[i].rank == TARN_EVERYDAY)
            print_option(&command->options[i], in_full);
    }
    print_option(&help_option, in_full);
    print_option(&help_all_option, in_full);
    if (in_full) print_exits(command);
    printf("\nExample:\n%s", command->example);
}
