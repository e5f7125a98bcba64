/* The `tarn` command: finds the verb, and checks that all output was written. Verbs work by
 * the public API alone. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "command/help.h"
#include "interrupt.h"
#include "verbs.h"

static const struct tarn_verb verbs[] = {
    {"info", tarn_verb_info, "counts and sums of a graph"},
    {"plan", tarn_verb_plan, "decide where every storage lives; verify; write the plan"},
    {"verify", tarn_verb_verify, "prove a plan safe for a graph, or say what is wrong with it"},
    {"explain", tarn_verb_explain,
     "why the arena is that large, what shares bytes, what would help"},
    {"compare", tarn_verb_compare, "two plans: what grew, what moved, which is worse"},
    {"run", tarn_verb_run, "run a plan: checked byte by byte, or measured"},
    {"show", tarn_verb_show, "a picture of a plan: a page, an SVG, text, a trace"},
    {"transform", tarn_verb_transform,
     "a graph that computes the same: in less memory, in other streams"},
    {"assign", tarn_verb_assign, "a graph whose ops run side by side in several streams"},
    {"convert", tarn_verb_convert, "a graph, or the answer in a plan, to another kind of file"},
    {"pairs", tarn_verb_pairs, "how many pairs of storages must not share bytes, by a method"},
};

static const char help_brief[] =
    "help VERB: main options; --all: all of them; --man: a manual page";
static const char completion_brief[] = "a script that completes words, for bash, zsh or fish";

static const char example[] =
    "  tarn plan examples/graphs/bert_base_b1_adam.ddp.json.gz -o bert.plan\n"
    "  tarn run examples/graphs/bert_base_b1_adam.ddp.json.gz bert.plan --check\n";

static void print_help(FILE *file)
{
    fprintf(file,
            "tarn %s: the memory manager for multi-stream accelerators\n"
            "Usage: tarn VERB ...\n\nVerbs:\n",
            tarn_version());
    for (size_t i = 0; i < TARN_COUNT(verbs); i++) {
        fprintf(file, "  %-11s %s\n", verbs[i].name, verbs[i].brief);
    }
    fprintf(file,
            "  %-11s %s\n  %-11s %s\n"
            "\n'tarn help VERB' lists a verb's options; 'tarn --version' prints the version.\n"
            "A file named - is standard input or output. Messages go to standard error.\n\n"
            "Example:\n%s",
            "help", help_brief, "completion", completion_brief, example);
}

static void print_manual(void)
{
    tarn_manual_begin("tarn", "the memory manager for multi-stream accelerators");
    printf(".SH SYNOPSIS\ntarn VERB [FILE | OPTION]...\n.SH VERBS\n");
    for (size_t i = 0; i < TARN_COUNT(verbs); i++)
        printf(".TP\n.BR tarn-%s (1)\n%s\n", verbs[i].name, verbs[i].brief);
    printf(".TP\n.B tarn help\n%s\n.TP\n.B tarn completion\n%s\n", help_brief, completion_brief);
    printf(".SH EXAMPLES\n");
    tarn_manual_lines(example);
}

/* NULL after saying so: no such verb. */
static const struct tarn_verb *find_verb(const char *name)
{
    struct tarn_nearest nearest = {.text = name, .length = strlen(name)};
    for (size_t i = 0; i < TARN_COUNT(verbs); i++) {
        if (strcmp(name, verbs[i].name) == 0) return &verbs[i];
        tarn_nearest_offer(&nearest, verbs[i].name);
    }
    tarn_nearest_offer(&nearest, "help");
    tarn_nearest_offer(&nearest, "completion");
    tarn_fail(TARN_USAGE, NULL, "unknown verb '%s'%s; see 'tarn --help'", name,
              tarn_nearest_text(&nearest));
    return NULL;
}

static void print_completion_help(void)
{
    printf("Usage: tarn completion bash|zsh|fish\n\n"
           "Writes a script with which that shell completes verbs, options, their values\n"
           "and files. 'meson install' puts all three where the shells look for them.\n\n"
           "Example:\n  tarn completion bash > tarn.bash && source tarn.bash\n");
}

static bool asks_for_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 ||
           strcmp(word, "--help-all") == 0;
}

/* tarn help [--all | --man] [VERB], or the verb first */
static enum tarn_status run_help(char **words)
{
    static char in_brief[] = "--help", in_full[] = "--help-all", manual[] = TARN_ASK_MANUAL;
    char *question = in_brief, *verb_first[] = {*words, NULL};
    const char *asked = *words && words[1] && !words[2] && **words != '-' ? words[1] : *words;
    if (asked && strcmp(asked, "--all") == 0)
        question = in_full;
    else if (asked && strcmp(asked, "--man") == 0)
        question = manual;
    if (question != in_brief) words = asked == *words ? words + 1 : verb_first;
    if (!*words) {
        if (question == manual)
            print_manual();
        else
            print_help(stdout);
        return TARN_OK;
    }
    if (words[1])
        return tarn_fail(TARN_USAGE, NULL, "help: '%s' is one verb too many; see 'tarn --help'",
                         words[1]);
    bool is_own = strcmp(*words, "help") == 0 || asks_for_help(*words);
    if (is_own || strcmp(*words, "completion") == 0) {
        if (question == manual)
            print_manual(); /* they have no page of their own */
        else if (is_own)
            print_help(stdout);
        else
            print_completion_help();
        return TARN_OK;
    }
    const struct tarn_verb *verb = find_verb(*words);
    if (!verb) return TARN_USAGE;
    char page[64];
    snprintf(page, sizeof page, "tarn-%s", verb->name);
    if (question == manual) tarn_manual_begin(page, verb->brief);
    return verb->run((char *[]){question, NULL});
}

/* tarn completion SHELL */
static enum tarn_status run_completion(char **words)
{
    if (*words && asks_for_help(*words)) {
        print_completion_help();
        return TARN_OK;
    }
    if (*words && !words[1] && tarn_completion_script(verbs, TARN_COUNT(verbs), *words))
        return TARN_OK;
    return tarn_fail(TARN_USAGE, NULL, "completion: needs bash, zsh or fish; see 'tarn --help'");
}

static enum tarn_status run_verb(char **words)
{
    const char *name = words[0];
    if (!name) {
        fprintf(stderr, "tarn: a verb is missing\n\n");
        print_help(stderr);
        return TARN_USAGE;
    }
    if (strcmp(name, "--version") == 0) {
        printf("tarn %s\n", tarn_version());
        return TARN_OK;
    }
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
        print_help(stdout);
        return TARN_OK;
    }
    if (strcmp(name, "help") == 0) return run_help(words + 1);
    if (strcmp(name, "completion") == 0) return run_completion(words + 1);
    const struct tarn_verb *verb = find_verb(name);
    if (!verb) return TARN_USAGE;
    tarn_watch_begin(name, words[1] && words[1][0] != '-' ? words[1] : NULL);
    enum tarn_status status = verb->run(words + 1);
    tarn_watch_end();
    return status;
}

/* Was JSON asked for? Checked even if the command line is wrong, so that the error is JSON, too. */
static bool asks_for_json(char **words)
{
    for (; *words && strcmp(*words, "--") != 0; words++)
        if (strcmp(*words, "--json") == 0) return true;
    return false;
}

/* With a standard stream closed, the next file opened would take its number, and messages would
 * end up in it. Opened the wrong way round, every use of it is an error as it should be. */
static void occupy_standard_files(void)
{
    for (int number = 0; number <= 2; number++) {
        if (fcntl(number, F_GETFD) >= 0 || errno != EBADF) continue;
        if (open("/dev/null", number == 0 ? O_WRONLY : O_RDONLY) != number) return;
    }
}

int main(int argc, char **argv)
{
    (void)argc;
    occupy_standard_files();
    signal(SIGPIPE, SIG_IGN); /* a reader that has gone is an error of writing */
    signal(SIGXFSZ, SIG_IGN); /* as is a file that has grown too large */
    tarn_interrupt_install();
    char **words = argv + (argv[0] != NULL);
    if (asks_for_json(words)) tarn_fail_in_json();
    enum tarn_status status = run_verb(words);
    tarn_progress_clear();
    if (fflush(stdout) != 0 || ferror(stdout)) {
        tarn_say("standard output: %s", strerror(errno));
        if (status == TARN_OK) status = TARN_SYSTEM;
    }
    return (int)status;
}
