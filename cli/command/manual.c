/* Prints manual pages from the option tables. A line that begins with a dot or an apostrophe would
 * be a request, and a backslash an escape: none of the texts reaches roff unescaped. */
#include "help.h"

#include <stdio.h>
#include <string.h>

/* Text inside a line: a dash is one to copy, not a hyphen. */
static void print_text(const char *text)
{
    for (; *text; text++) {
        switch (*text) {
        case '\\': fputs("\\e", stdout); break;
        case '-': fputs("\\-", stdout); break;
        case '\'': fputs("\\(aq", stdout); break;
        case '\n': fputs("\n\\&", stdout); break; /* and no request */
        default: putchar(*text); break;
        }
    }
}

void tarn_manual_begin(const char *page, const char *brief)
{
    printf(".TH %s 1 \"" TARN_RELEASE_DATE "\" \"tarn %s\" \"User commands\"\n.SH NAME\n", page,
           tarn_version());
    print_text(page);
    printf(" \\- ");
    print_text(brief);
    putchar('\n');
}

static size_t longest_line(const char *lines)
{
    size_t most = 0;
    for (size_t length; *lines; lines += length + (lines[length] == '\n')) {
        length = strcspn(lines, "\n");
        if (length > most) most = length;
    }
    return most;
}

/* A page is 80 columns wide and its text begins in the eighth: lines that would not fit there begin
 * at the page's edge. */
void tarn_manual_lines(const char *lines)
{
    bool is_wide = longest_line(lines) > 72;
    printf(".nf\n%s\\&", is_wide ? ".in 0\n" : "");
    print_text(lines);
    printf("\n%s.fi\n", is_wide ? ".in\n" : "");
}

static void print_option(const char *form, const char *help)
{
    printf(".TP\n\\fB");
    print_text(form);
    printf("\\fR\n\\&");
    print_text(help);
    putchar('\n');
}

void tarn_manual_print(const struct tarn_command *command)
{
    char form[TARN_FORM_MAX];
    printf(".SH SYNOPSIS\ntarn %s ", command->verb);
    print_text(command->usage);
    printf(" [OPTION]...\n.SH DESCRIPTION\n");
    tarn_manual_lines(command->about);
    printf(".SH OPTIONS\n");
    for (size_t i = 0; i < command->options_count; i++) {
        tarn_help_form(&command->options[i], form);
        print_option(form, command->options[i].help);
    }
    print_option("-h, --help", "the options that most people need");
    print_option("--help-all", "what this page says");
    printf(".SH EXIT STATUS\n");
    enum tarn_status exits[TARN_EXITS_MAX];
    size_t count = tarn_help_exits(command, exits);
    for (size_t i = 0; i < count; i++) {
        snprintf(form, sizeof form, "%d", (int)exits[i]);
        print_option(form, tarn_help_exit_text(command, exits[i]));
    }
    printf(".SH EXAMPLES\n");
    tarn_manual_lines(command->example);
    printf(".SH SEE ALSO\n.BR tarn (1)\n");
}
