/* Writes completion scripts for shells. Each verb writes its own part from its option table; the
 * code around these parts finds the verb. A verb's part is, in
 *
 *     bash    a case arm that sets `options`, or answers for the value of the option before
 *     zsh     a case arm that calls _arguments
 *     fish    a line for each option
 *
 * Texts stand between single quotes; a quote inside them would end them and becomes a backtick. */
#include "help.h"

#include <stdio.h>
#include <string.h>

/* The first line of a help text, for a shell's quotes. A colon or a bracket ends a part of zsh's.
 */
static void print_help_line(const char *help)
{
    for (; *help && *help != '\n'; help++) {
        if (*help == '\'')
            putchar('`');
        else if (*help == ':')
            fputs(" -", stdout);
        else if (*help == '[' || *help == ']')
            putchar(*help == '[' ? '(' : ')');
        else
            putchar(*help);
    }
}

/* "a|b|c" -> "a b c". */
static void print_words(const char *words)
{
    for (; *words; words++) putchar(*words == '|' ? ' ' : *words);
}

static bool is_file(const struct tarn_option *option)
{
    return option->kind == TARN_OPTION_INPUT || option->kind == TARN_OPTION_OUTPUT;
}

/* ---- bash ---- */

static void print_bash_names(const struct tarn_option *option)
{
    if (option->letter) printf("-%c|", option->letter);
    printf("--%s) ", option->name);
}

static void print_bash(const struct tarn_command *command)
{
    printf("    %s)\n        case $before in\n", command->verb);
    for (size_t i = 0; i < command->options_count; i++) {
        const struct tarn_option *option = &command->options[i];
        if (option->kind == TARN_OPTION_FLAG) continue;
        printf("        ");
        print_bash_names(option);
        if (is_file(option)) {
            printf("mapfile -t COMPREPLY < <(compgen -f -- \"$word\"); return ;;\n");
        } else if (option->kind == TARN_OPTION_CHOICE) {
            printf("mapfile -t COMPREPLY < <(compgen -W '");
            print_words(option->value_name);
            printf("' -- \"$word\"); return ;;\n");
        } else {
            printf("return ;;\n");
        }
    }
    printf("        esac\n        options='");
    for (size_t i = 0; i < command->options_count; i++) printf("--%s ", command->options[i].name);
    printf("--help --help-all' ;;\n");
}

static void print_bash_script(const struct tarn_verb *verbs, size_t count)
{
    printf("# bash completion of tarn, made by 'tarn completion bash'\n"
           "_tarn() {\n"
           "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} options=\n"
           "    COMPREPLY=()\n"
           "    if [ \"$COMP_CWORD\" = 1 ] || { [ \"$COMP_CWORD\" = 2 ] && [ \"${COMP_WORDS[1]}\" "
           "= help ]; }; then\n"
           "        mapfile -t COMPREPLY < <(compgen -W '");
    for (size_t i = 0; i < count; i++) printf("%s ", verbs[i].name);
    printf("help completion --help --version' -- \"$word\")\n"
           "        return\n    fi\n    case ${COMP_WORDS[1]} in\n");
    for (size_t i = 0; i < count; i++)
        verbs[i].run((char *[]){(char[]){TARN_ASK_COMPLETION "bash"}, NULL});
    printf("    completion) options='bash zsh fish' ;;\n    esac\n"
           "    if [[ $word == -* || ${COMP_WORDS[1]} == completion ]]; then\n"
           "        mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$word\")\n"
           "    else\n"
           "        mapfile -t COMPREPLY < <(compgen -f -- \"$word\")\n"
           "    fi\n}\n"
           "complete -o filenames -F _tarn tarn\n");
}

/* ---- zsh ---- */

static void print_zsh(const struct tarn_command *command)
{
    printf("    %s)\n        _arguments \\\n", command->verb);
    for (size_t i = 0; i < command->options_count; i++) {
        const struct tarn_option *option = &command->options[i];
        printf("            '--%s[", option->name);
        print_help_line(option->help);
        printf("]");
        if (option->kind == TARN_OPTION_CHOICE) {
            printf(":word:(");
            print_words(option->value_name);
            printf(")");
        } else if (option->kind != TARN_OPTION_FLAG) {
            printf(":value:%s", is_file(option) ? "_files" : "");
        }
        printf("' \\\n");
    }
    printf("            '--help[help]' '--help-all[all options]' '*:file:_files' ;;\n");
}

static void print_zsh_script(const struct tarn_verb *verbs, size_t count)
{
    printf("#compdef tarn\n# zsh completion of tarn, made by 'tarn completion zsh'\n"
           "_tarn() {\n    local -a verbs=(\n");
    for (size_t i = 0; i < count; i++) {
        printf("        '%s:", verbs[i].name);
        print_help_line(verbs[i].brief);
        printf("'\n");
    }
    printf("        'help:what a verb does'\n        'completion:a script for a shell'\n    )\n"
           "    if (( CURRENT == 2 )); then\n        _describe verb verbs\n        return\n    fi\n"
           "    local verb=$words[2]\n    shift words\n    (( CURRENT-- ))\n    case $verb in\n");
    for (size_t i = 0; i < count; i++)
        verbs[i].run((char *[]){(char[]){TARN_ASK_COMPLETION "zsh"}, NULL});
    printf("    help) _describe verb verbs ;;\n    completion) _values shell bash zsh fish ;;\n"
           "    esac\n}\n"
           "if [ \"$funcstack[1]\" = _tarn ]; then _tarn \"$@\"; else compdef _tarn tarn; fi\n");
}

/* ---- fish ---- */

static void print_fish(const struct tarn_command *command)
{
    for (size_t i = 0; i < command->options_count; i++) {
        const struct tarn_option *option = &command->options[i];
        printf("complete -c tarn -n '__fish_seen_subcommand_from %s' -l %s", command->verb,
               option->name);
        if (option->letter) printf(" -s %c", option->letter);
        if (option->kind != TARN_OPTION_FLAG) printf(is_file(option) ? " -r -F" : " -x");
        if (option->kind == TARN_OPTION_CHOICE) {
            printf(" -a '");
            print_words(option->value_name);
            printf("'");
        }
        printf(" -d '");
        print_help_line(option->help);
        printf("'\n");
    }
}

static void print_fish_script(const struct tarn_verb *verbs, size_t count)
{
    printf("# fish completion of tarn, made by 'tarn completion fish'\n");
    for (size_t i = 0; i < count; i++) {
        printf("complete -c tarn -n __fish_use_subcommand -f -a %s -d '", verbs[i].name);
        print_help_line(verbs[i].brief);
        printf("'\n");
    }
    printf("complete -c tarn -n __fish_use_subcommand -f -a help -d 'what a verb does'\n"
           "complete -c tarn -n __fish_use_subcommand -f -a completion -d 'a script for a shell'\n"
           "complete -c tarn -n '__fish_seen_subcommand_from completion' -f -a 'bash zsh fish'\n"
           "complete -c tarn -n '__fish_seen_subcommand_from help' -f -a '");
    for (size_t i = 0; i < count; i++) printf("%s ", verbs[i].name);
    printf("'\n");
    for (size_t i = 0; i < count; i++)
        verbs[i].run((char *[]){(char[]){TARN_ASK_COMPLETION "fish"}, NULL});
}

/* ---- All ---- */

void tarn_completion_print(const struct tarn_command *command, const char *shell)
{
    if (strcmp(shell, "bash") == 0)
        print_bash(command);
    else if (strcmp(shell, "zsh") == 0)
        print_zsh(command);
    else
        print_fish(command);
}

bool tarn_completion_script(const struct tarn_verb *verbs, size_t count, const char *shell)
{
    if (strcmp(shell, "bash") == 0)
        print_bash_script(verbs, count);
    else if (strcmp(shell, "zsh") == 0)
        print_zsh_script(verbs, count);
    else if (strcmp(shell, "fish") == 0)
        print_fish_script(verbs, count);
    else
        return false;
    return true;
}
