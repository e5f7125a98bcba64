/* Command lines: `--name VALUE`, `--name=VALUE`, `-o VALUE`, files in any place between them, "--"
 * before files that begin with a dash, and "-" as a file of its own (standard input or output). */
#include "options.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "files.h"
#include "print.h"

/* ---- Values ---- */

/* Reads digits from *text on and moves it behind them. */
static bool read_digits(const char **text, uint64_t *number)
{
    const char *digit = *text;
    uint64_t sum = 0;
    for (; isdigit((unsigned char)*digit); digit++) {
        uint64_t value = (uint64_t)(*digit - '0');
        if (sum > (UINT64_MAX - value) / 10) return false;
        sum = 10 * sum + value;
    }
    if (digit == *text) return false;
    *text = digit;
    *number = sum;
    return true;
}

bool tarn_number_parse(const char *text, uint64_t *number)
{
    uint64_t result;
    if (!read_digits(&text, &result) || *text != '\0') return false;
    *number = result;
    return true;
}

static bool parse_count(const char *text, uint32_t *count)
{
    uint64_t number;
    if (!tarn_number_parse(text, &number) || number > UINT32_MAX) return false;
    *count = (uint32_t)number;
    return true;
}

static bool parse_size(const char *text, uint64_t *size)
{
    static const struct {
        const char *name;
        uint64_t bytes;
    } units[] = {
        {"", 1},
        {"B", 1},
        {"KB", 1000},
        {"MB", 1000000},
        {"GB", 1000000000},
        {"TB", 1000000000000},
        {"KiB", UINT64_C(1) << 10},
        {"MiB", UINT64_C(1) << 20},
        {"GiB", UINT64_C(1) << 30},
        {"TiB", UINT64_C(1) << 40},
    };
    uint64_t number;
    if (!read_digits(&text, &number)) return false;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcmp(text, units[i].name) != 0) continue;
        if (number > UINT64_MAX / units[i].bytes) return false;
        *size = number * units[i].bytes;
        return true;
    }
    return false;
}

static bool parse_seconds(const char *text, uint64_t *ns)
{
    const uint64_t second = 1000000000;
    uint64_t whole, fraction = 0;
    if (!read_digits(&text, &whole) || whole > UINT64_MAX / second - 1) return false;
    if (*text == '.') {
        uint64_t weight = second / 10;
        for (text++; isdigit((unsigned char)*text); text++, weight /= 10) {
            fraction += weight * (uint64_t)(*text - '0');
        }
    }
    if (*text != '\0') return false;
    *ns = whole * second + fraction;
    return true;
}

/* As many billionths as parse_seconds would make of it, of a percent. */
static bool parse_percent(const char *text, double *share)
{
    uint64_t billionths;
    if (!parse_seconds(text, &billionths)) return false;
    *share = (double)billionths * 1e-11;
    return true;
}

/* Which of the words between bars it is. */
static bool parse_choice(const char *text, const char *words, unsigned *choice)
{
    size_t length = strlen(text);
    for (unsigned i = 0; *words; i++) {
        size_t word = strcspn(words, "|");
        if (word == length && strncmp(words, text, length) == 0) {
            *choice = i;
            return true;
        }
        words += word + (words[word] == '|');
    }
    return false;
}

/* 0 would mean "not given" to the library: nobody who writes it wants that. */
static bool parse_value(const struct tarn_option *option, const char *text)
{
    switch (option->kind) {
    case TARN_OPTION_FLAG: *(bool *)option->value = true; return true;
    case TARN_OPTION_TEXT:
    case TARN_OPTION_INPUT:
    case TARN_OPTION_OUTPUT: *(const char **)option->value = text; return true;
    case TARN_OPTION_COUNT: return parse_count(text, option->value);
    case TARN_OPTION_TIMES:
        return parse_count(text, option->value) && *(uint32_t *)option->value > 0;
    case TARN_OPTION_NUMBER: return tarn_number_parse(text, option->value);
    case TARN_OPTION_SIZE: return parse_size(text, option->value) && *(uint64_t *)option->value > 0;
    case TARN_OPTION_SECONDS:
        return parse_seconds(text, option->value) && *(uint64_t *)option->value > 0;
    case TARN_OPTION_PERCENT: return parse_percent(text, option->value);
    case TARN_OPTION_CHOICE: return parse_choice(text, option->value_name, option->value);
    }
    return false;
}

static const char *value_wanted(const struct tarn_option *option)
{
    switch (option->kind) {
    case TARN_OPTION_COUNT:
    case TARN_OPTION_NUMBER: return "a whole number";
    case TARN_OPTION_TIMES: return "a whole number above 0";
    case TARN_OPTION_SIZE: return "bytes above 0, for example 512, 10MB or 8GiB";
    case TARN_OPTION_SECONDS: return "seconds above 0, for example 2 or 0.5";
    case TARN_OPTION_PERCENT: return "a percentage, for example 1 or 0.5";
    case TARN_OPTION_CHOICE: return option->value_name;
    default: return "a value";
    }
}

/* ---- Help ---- */

static void print_option(char letter, const char *name, const char *value_name, const char *help)
{
    char form[64];
    int length = 0;
    if (letter)
        length = snprintf(form, sizeof form, "-%c%s", letter, value_name || !name ? "" : ", ");
    if (name) {
        snprintf(form + length, sizeof form - (size_t)length, "%s--%s",
                 letter && value_name ? ", " : "", name);
    }
    if (value_name) {
        size_t used = strlen(form);
        snprintf(form + used, sizeof form - used, " %s", value_name);
    }
    printf("  %-24s", form);
    if (strlen(form) >= 24) printf("\n  %-24s", "");
    for (; *help; help++) {
        putchar(*help);
        if (*help == '\n') printf("  %-24s", "");
    }
    putchar('\n');
}

static const char *exit_meaning(enum tarn_status status)
{
    switch (status) {
    case TARN_OK: return "ok";
    case TARN_DOES_NOT_FIT: return "the plan does not fit into the capacity";
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

static void print_exit(enum tarn_status status)
{
    printf("  %3d  %s\n", (int)status, exit_meaning(status));
}

/* In increasing order: the fixed ones among the verb's own, which are sorted. */
static void print_exits(const enum tarn_status *exits)
{
    printf("\nExit codes:\n");
    print_exit(TARN_OK);
    if (*exits == TARN_DOES_NOT_FIT) print_exit(*exits++);
    print_exit(TARN_USAGE);
    while (*exits != TARN_OK) print_exit(*exits++);
    print_exit(TARN_SYSTEM);
    print_exit(TARN_INTERRUPTED);
}

static void print_help(const struct tarn_command *command)
{
    printf("Usage: tarn %s %s\n\n%s\nOptions:\n", command->verb, command->usage, command->about);
    for (size_t i = 0; i < command->options_count; i++) {
        const struct tarn_option *option = &command->options[i];
        print_option(option->letter, option->name, option->value_name, option->help);
    }
    print_option('h', "help", NULL, "this text");
    print_exits(command->exits);
    printf("\nExample:\n%s", command->example);
}

/* ---- Parsing ---- */

enum tarn_status tarn_options_refuse(const struct tarn_command *command, const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    tarn_say("%s: %s; see 'tarn %s --help'", command->verb, text, command->verb);
    return TARN_USAGE;
}

/* The option that a word names; *value is what follows "=" or the letter, else NULL. */
static const struct tarn_option *find_option(const struct tarn_command *command, const char *word,
                                             const char **value)
{
    for (size_t i = 0; i < command->options_count; i++) {
        const struct tarn_option *option = &command->options[i];
        *value = NULL;
        if (word[1] != '-') {
            if (word[1] != option->letter) continue;
            if (word[2] != '\0') *value = word + 2;
            return option;
        }
        size_t length = strlen(option->name);
        if (strncmp(word + 2, option->name, length) != 0) continue;
        if (word[2 + length] == '=') *value = word + 3 + length;
        if (word[2 + length] == '\0' || *value) return option;
    }
    return NULL;
}

/* Takes the option at *words and its value, and moves *words to the last word taken. */
static enum tarn_status take_option(const struct tarn_command *command, char ***words)
{
    const char *word = **words, *value;
    const struct tarn_option *option = find_option(command, word, &value);
    if (!option) return tarn_options_refuse(command, "unknown option '%s'", word);
    if (option->kind == TARN_OPTION_FLAG) {
        if (value) return tarn_options_refuse(command, "--%s takes no value", option->name);
    } else if (!value) {
        value = *++*words;
        if (!value) {
            --*words;
            return tarn_options_refuse(command, "--%s needs %s", option->name,
                                       value_wanted(option));
        }
    }
    if (parse_value(option, value)) return TARN_OK;
    return tarn_options_refuse(command, "--%s needs %s, not '%s'", option->name,
                               value_wanted(option), value);
}

bool tarn_is_dash(const char *path)
{
    static const char *const names[] = {"-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"};
    for (size_t i = 0; path && i < sizeof names / sizeof *names; i++)
        if (strcmp(path, names[i]) == 0) return true;
    return false;
}

static bool is_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

/* The i-th file of a command line: arguments, options, and standard output in the end. */
struct file {
    const char *path; /* NULL: not given */
    bool is_output;
};

static struct file file_at(const struct tarn_command *command, const char *const *arguments,
                           size_t i)
{
    if (i < command->arguments_max)
        return (struct file){arguments[i], i >= command->arguments_read};
    i -= command->arguments_max;
    if (i >= command->options_count) return (struct file){"-", true};
    const struct tarn_option *option = &command->options[i];
    bool is_output = option->kind == TARN_OPTION_OUTPUT;
    if (!is_output && option->kind != TARN_OPTION_INPUT) return (struct file){NULL, false};
    return (struct file){*(const char **)option->value, is_output};
}

static const char *shown(struct file file)
{
    if (!tarn_is_dash(file.path)) return file.path;
    return file.is_output ? "standard output" : "standard input";
}

/* Nothing is lost that is read, and nothing that is written. */
static enum tarn_status check_files(const struct tarn_command *command,
                                    const char *const *arguments)
{
    size_t count = command->arguments_max + command->options_count;
    for (size_t i = 0; i < count; i++) {
        struct file a = file_at(command, arguments, i);
        if (!a.path || !a.is_output) continue;
        for (size_t k = 0; k <= count; k++) {
            struct file b = file_at(command, arguments, k);
            bool is_standard = tarn_is_dash(a.path) && k == count;
            if (k == i || !b.path || is_standard) continue;
            if (!tarn_is_same_file(a.path, true, b.path, b.is_output)) continue;
            return tarn_options_refuse(
                command, "'%s' and '%s' are one file, which would be %s; write to another one",
                shown(a), shown(b), b.is_output ? "written twice" : "read and written");
        }
    }
    return TARN_OK;
}

bool tarn_options_parse(const struct tarn_command *command, char **words, const char **arguments,
                        enum tarn_status *status)
{
    size_t count = 0;
    bool options_over = false;
    for (size_t i = 0; i < command->arguments_max; i++) arguments[i] = NULL;
    *status = TARN_OK;
    for (; *words; words++) {
        const char *word = *words;
        if (!options_over && strcmp(word, "--") == 0) {
            options_over = true;
        } else if (!options_over && is_help(word)) {
            print_help(command);
            return false;
        } else if (!options_over && word[0] == '-' && word[1] != '\0') {
            *status = take_option(command, &words);
            if (*status != TARN_OK) return false;
        } else if (count < command->arguments_max) {
            arguments[count++] = word;
        } else {
            *status = tarn_options_refuse(command, "'%s' is one file too many", word);
            return false;
        }
    }
    if (count >= command->arguments_min) {
        *status = check_files(command, arguments);
        return *status == TARN_OK;
    }
    *status = tarn_options_refuse(command, "a file is missing");
    return false;
}
