/* Parses command lines: `--name VALUE`, `--name=VALUE`, `-o VALUE`, files in any place between
 * them, "--" before files that begin with a dash, and "-" as a file of its own (standard input or
 * output). */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "help.h"
#include "suggest.h"
#include "values.h"

enum tarn_status tarn_options_refuse(const struct tarn_command *command, const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return tarn_fail(TARN_USAGE, NULL, "%s: %s; see 'tarn %s --help'", command->verb, text,
                     command->verb);
}

/* The option that a word names; *value is the text after "=" or the letter, else NULL. */
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

static enum tarn_status refuse_option(const struct tarn_command *command, const char *word)
{
    size_t length = strcspn(word, "=");
    struct tarn_nearest nearest = {.text = word, .length = length};
    char name[64];
    for (size_t i = 0; i < command->options_count; i++) {
        snprintf(name, sizeof name, "--%s", command->options[i].name);
        tarn_nearest_offer(&nearest, name);
    }
    return tarn_options_refuse(command, "unknown option '%s'%s", word, tarn_nearest_text(&nearest));
}

/* Takes the option at *words and its value, and moves *words to the last word taken. */
static enum tarn_status take_option(const struct tarn_command *command, char ***words)
{
    const char *word = **words, *value;
    const struct tarn_option *option = find_option(command, word, &value);
    if (!option) return refuse_option(command, word);
    if (option->kind == TARN_OPTION_FLAG) {
        if (value) return tarn_options_refuse(command, "--%s takes no value", option->name);
    } else if (!value) {
        value = *++*words;
        if (!value) {
            --*words;
            return tarn_options_refuse(command, "--%s needs %s", option->name,
                                       tarn_option_wanted(option));
        }
    }
    if (tarn_option_parse(option, value)) return TARN_OK;
    char hint[TARN_HINT_MAX];
    tarn_option_hint(option, value, hint);
    return tarn_options_refuse(command, "--%s needs %s%s, not '%s'%s", option->name,
                               hint[0] ? "a whole number of " : "", tarn_option_wanted(option),
                               value, hint);
}

bool tarn_is_dash(const char *path)
{
    static const char *const names[] = {"-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"};
    for (size_t i = 0; path && i < sizeof names / sizeof *names; i++)
        if (strcmp(path, names[i]) == 0) return true;
    return false;
}

/* Is the word a question to the verb about itself? Then it is answered. */
static bool tell_about(const struct tarn_command *command, const char *word)
{
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
        tarn_help_print(command, false);
    else if (strcmp(word, "--help-all") == 0)
        tarn_help_print(command, true);
    else if (strcmp(word, TARN_ASK_MANUAL) == 0)
        tarn_manual_print(command);
    else if (strncmp(word, TARN_ASK_COMPLETION, strlen(TARN_ASK_COMPLETION)) == 0)
        tarn_completion_print(command, word + strlen(TARN_ASK_COMPLETION));
    else
        return false;
    return true;
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
        return (struct file){arguments[i],
                             i + command->arguments_written >= command->arguments_max};
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

static bool prints_json(const struct tarn_command *command)
{
    for (size_t i = 0; i < command->options_count; i++)
        if (strcmp(command->options[i].name, "json") == 0)
            return *(bool *)command->options[i].value;
    return false;
}

/* Standard input is one file, and standard output one, or JSON. */
static enum tarn_status check_streams(const struct tarn_command *command,
                                      const char *const *arguments)
{
    size_t inputs = 0, outputs = prints_json(command);
    for (size_t i = 0; i < command->arguments_max + command->options_count; i++) {
        struct file file = file_at(command, arguments, i);
        bool is_standard = tarn_is_dash(file.path);
        inputs += is_standard && !file.is_output;
        outputs += is_standard && file.is_output;
    }
    if (inputs > 1) return tarn_options_refuse(command, "only one file can be standard input");
    if (outputs > 1)
        return tarn_options_refuse(command, "only one file, or JSON, can go to standard output");
    return TARN_OK;
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
        } else if (!options_over && tell_about(command, word)) {
            return false;
        } else if (!options_over && word[0] == '-' && word[1] != '\0') {
            *status = take_option(command, &words);
            if (*status != TARN_OK) return false;
        } else if (count < command->arguments_max) {
            arguments[count++] = word;
        } else {
            *status = tarn_options_refuse(command, "'%s' is one argument too many", word);
            return false;
        }
    }
    if (count >= command->arguments_min) {
        *status = check_streams(command, arguments);
        if (*status == TARN_OK) *status = check_files(command, arguments);
        return *status == TARN_OK;
    }
    *status = tarn_options_refuse(command, "a file is missing");
    return false;
}
