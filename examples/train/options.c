/* Idea: one table says what there is, how it is read, and what it means.
 * Cost: a search through the table for each option. */
#include "options.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fail.h"
#include "ranks.h"

enum type { FLAG, NUMBER, SECONDS, TEXT };

#define AT(field) offsetof(struct options, field)
static const struct option {
    const char *name;
    enum type type;
    size_t at;
    const char *value, *help;
} table[] = {
    {"network", TEXT, AT(network), "digits|text", "what to train: images, or a transformer"},
    {"optimizer", TEXT, AT(optimizer), "sgd|adam", "default: sgd for digits, adam for text"},
    {"steps", NUMBER, AT(steps), "N", "default: 100"},
    {"batch", NUMBER, AT(batch), "N", "samples in a shard (default: 16; text: 8)"},
    {"shards", NUMBER, AT(shards), "1|2|4|8", "of a step, shared out among the ranks (default: 4)"},
    {"width", NUMBER, AT(width), "N", "channels or features, a multiple of 16"},
    {"bucket", NUMBER, AT(bucket), "BYTES", "of gradients reduced at once (default: 16384)"},
    {"second-stream", FLAG, AT(second_stream), NULL, "gradients of weights on their own stream"},
    {"memory", TEXT, AT(memory), "arena|malloc|free-at-last-use",
     "where an iteration's tensors live (default: arena)"},
    {"budget", TEXT, AT(budget), "BYTES|PERCENT%", "of the arena; percent: of the plan without"},
    {"reorder", FLAG, AT(reorder), NULL, "another order of the ops, in less memory"},
    {"couple", FLAG, AT(couple), NULL, "more waits between streams, in less memory"},
    {"in-place", FLAG, AT(in_place), NULL, "outputs written over inputs"},
    {"plan", TEXT, AT(plan), "FILE", "take this plan instead of making one"},
    {"graph", TEXT, AT(graph), "FILE", "take the costs of this graph instead of measuring"},
    {"save-plan", TEXT, AT(save_plan), "FILE", "for tarn show"},
    {"save-graph", TEXT, AT(save_graph), "FILE", "with measured costs, for tarn plan"},
    {"trace", TEXT, AT(trace), "FILE", "Chrome trace of rank 0's last iterations"},
    {"data", TEXT, AT(data), "FILE", "digits as CSV (.gz), or a text"},
    {"checkpoint", TEXT, AT(checkpoint), "FILE", "written at the end, and as --every says"},
    {"every", NUMBER, AT(every), "N", "steps between checkpoints"},
    {"resume", TEXT, AT(resume), "FILE", "go on from a checkpoint"},
    {"wire", NUMBER, AT(wire), "US", "sleep so long in each reduction: stands for a network"},
    {"deadline", SECONDS, AT(deadline), "SECONDS", "a step may take (default: 60)"},
    {"check-gradient", FLAG, AT(check_gradient), NULL, "compare with differences of the loss"},
    {"fault", TEXT, AT(fault), "KIND:RANK[:STEP]", "graph, race, plan, damage or hang"},
    {"help", FLAG, AT(help), NULL, "this text"},
};
enum { TABLE_SIZE = sizeof table / sizeof *table };

static void print_help(void)
{
    printf("mpirun -n RANKS train [OPTION...]\n\nTrains with Tarn's memory, oneDNN's kernels and "
           "MPI's communication.\n\n");
    for (const struct option *o = table; o < table + TABLE_SIZE; o++) {
        char left[64];
        snprintf(left, sizeof left, "--%s %s", o->name, o->value ? o->value : "");
        printf("  %-38s %s\n", left, o->help);
    }
}

static void set(const struct option *o, void *place, const char *value)
{
    char *end = NULL;
    if (o->type == FLAG) *(bool *)place = true;
    if (o->type == TEXT) *(const char **)place = value;
    if (o->type == NUMBER) *(int *)place = (int)strtol(value, &end, 10);
    if (o->type == SECONDS) *(double *)place = strtod(value, &end);
    if (end && (end == value || *end)) fail(TARN_USAGE, "--%s: '%s' is no number", o->name, value);
}

static void one_of(const char *name, const char *value, const char *words)
{
    size_t length = strlen(value);
    for (const char *word = words; word; word = strchr(word, '|')) {
        word += *word == '|';
        if (!strncmp(word, value, length) && (word[length] == '|' || !word[length])) return;
    }
    fail(TARN_USAGE, "--%s: there is no '%s' (there are: %s)", name, value, words);
}

static void settle(struct options *o)
{
    one_of("network", o->network, "digits|text");
    bool text = !strcmp(o->network, "text");
    if (!o->optimizer) o->optimizer = text ? "adam" : "sgd";
    if (!o->batch) o->batch = text ? 8 : 16;
    if (!o->width) o->width = text ? 64 : 16;
    if (!o->data) o->data = text ? TRAIN_TEXT : TRAIN_DIGITS;
    one_of("optimizer", o->optimizer, "sgd|adam");
    one_of("memory", o->memory, "arena|malloc|free-at-last-use");
    if (o->steps < 1 || o->batch < 1 || o->width < 16 || o->width % 16)
        fail(TARN_USAGE, "steps and batch are above 0, the width is a multiple of 16");
    if (o->shards < 1 || o->shards > 8 || o->shards & (o->shards - 1) || o->shards % ranks)
        fail(TARN_USAGE, "%d shards cannot be shared out evenly among %d ranks", o->shards, ranks);
}

void options_parse(struct options *o, int argc, char **argv)
{
    *o = (struct options){.network = "digits",
                          .memory = "arena",
                          .steps = 100,
                          .shards = 4,
                          .bucket = 16384,
                          .deadline = 60};
    for (int i = 1; i < argc; i++) {
        const struct option *found = NULL;
        for (const struct option *t = table; t < table + TABLE_SIZE; t++)
            if (!strncmp(argv[i], "--", 2) && !strcmp(argv[i] + 2, t->name)) found = t;
        if (!found) fail(TARN_USAGE, "there is no option '%s' (--help lists them)", argv[i]);
        if (found->type != FLAG && ++i == argc)
            fail(TARN_USAGE, "--%s needs %s", found->name, found->value);
        set(found, (char *)o + found->at, argv[i]);
    }
    if (o->help) {
        if (rank == 0) print_help();
        ranks_end();
        exit(0);
    }
    settle(o);
}

bool options_fault(const struct options *o, const char *kind, int *at)
{
    char name[16];
    int on = -1, step = 0;
    if (!o->fault || sscanf(o->fault, "%15[a-z]:%d:%d", name, &on, &step) < 2) return false;
    if (at) *at = step;
    return on == rank && !strcmp(name, kind);
}
