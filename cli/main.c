/* The `tarn` command: finds the verb, and makes sure that what was printed has arrived. Everything
 * a verb does is one or two calls of the public API. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "interrupt.h"
#include "print.h"
#include "verbs.h"

static const struct {
    const char *name;
    enum tarn_status (*run)(char **words);
    const char *about;
} verbs[] = {
    {"info", tarn_verb_info, "counts and sums of a graph"},
    {"pairs", tarn_verb_pairs, "which storages must not share bytes, by a named method"},
    {"plan", tarn_verb_plan, "decide where every storage lives; verify; write the plan"},
    {"verify", tarn_verb_verify, "prove a plan safe for a graph, or say what is wrong with it"},
    {"run", tarn_verb_run, "run a plan: checked byte by byte, or measured"},
    {"transform", tarn_verb_transform, "a graph that computes the same in less memory"},
    {"assign", tarn_verb_assign, "a graph whose ops run side by side in several streams"},
    {"convert", tarn_verb_convert, "a graph, or the answer in a plan, to another kind of file"},
};

static void print_help(FILE *file)
{
    fprintf(file,
            "tarn %s: the memory manager for multi-stream accelerators\n\n"
            "Usage: tarn VERB ...\n\nVerbs:\n",
            tarn_version());
    for (size_t i = 0; i < TARN_COUNT(verbs); i++) {
        fprintf(file, "  %-9s %s\n", verbs[i].name, verbs[i].about);
    }
    fprintf(file, "\n'tarn VERB --help' tells the rest; 'tarn --version' prints the version.\n"
                  "A file named - is standard input or output. Messages go to standard error.\n\n"
                  "Example:\n"
                  "  tarn plan examples/graphs/bert_base_b1_adam.ddp.json.gz -o bert.plan\n"
                  "  tarn run examples/graphs/bert_base_b1_adam.ddp.json.gz bert.plan --check "
                  "--iterations 3\n");
}

static enum tarn_status run_verb(char **words)
{
    const char *name = words[0];
    if (!name) {
        fprintf(stderr, "tarn: a verb is missing\n\n");
        print_help(stderr);
        return TARN_USAGE;
    }
    for (size_t i = 0; i < TARN_COUNT(verbs); i++) {
        if (strcmp(name, verbs[i].name) == 0) return verbs[i].run(words + 1);
    }
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
        print_help(stdout);
        return TARN_OK;
    }
    if (strcmp(name, "--version") == 0) {
        printf("tarn %s\n", tarn_version());
        return TARN_OK;
    }
    tarn_say("unknown verb '%s'; see 'tarn --help'", name);
    return TARN_USAGE;
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
    enum tarn_status status = run_verb(argv + (argv[0] != NULL));
    if (fflush(stdout) != 0 || ferror(stdout)) {
        tarn_say("standard output: %s", strerror(errno));
        if (status == TARN_OK) status = TARN_SYSTEM;
    }
    return (int)status;
}
