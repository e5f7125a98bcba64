/* Idea: one table says what there is, how it is read, and what it means. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "train.h"

struct options options = {.network = "digits",
                          .memory = "arena",
                          .steps = 100,
                          .shards = 4,
                          .bucket = 16384,
                          .deadline = 60};

static const struct option {
    const char *name;
    enum { FLAG, NUMBER, TEXT } type;
    void *place;
    const char *value, *help;
} table[] = {
    {"network", TEXT, &options.network, "digits|text", "images, or a transformer"},
    {"steps", NUMBER, &options.steps, "N", "default: 100"},
    {"batch", NUMBER, &options.batch, "N", "samples in a shard (default: 16; text: 8)"},
    {"shards", NUMBER, &options.shards, "1|2|4|8", "of a step, among all ranks (default: 4)"},
    {"width", NUMBER, &options.width, "N", "channels or features, a multiple of 16"},
    {"bucket", NUMBER, &options.bucket, "BYTES", "of gradients reduced at once (default: 16384)"},
    {"second-stream", FLAG, &options.second_stream, "", "gradients of weights on their own stream"},
    {"memory", TEXT, &options.memory, "arena|malloc|free-at-last-use", "default: arena"},
    {"budget", TEXT, &options.budget, "BYTES|PERCENT%", "of the arena, or of its lower bound"},
    {"offload", NUMBER, &options.offload, "MB/S", "with a budget: tensors wait in a second memory"},
    {"reorder", FLAG, &options.reorder, "", "another order of the ops, in less memory"},
    {"couple", FLAG, &options.couple, "", "more waits between streams, in less memory"},
    {"in-place", FLAG, &options.in_place, "", "outputs written over inputs"},
    {"plan", TEXT, &options.plan, "FILE", "take this plan instead of making one"},
    {"graph", TEXT, &options.graph, "FILE", "take this graph's costs instead of measuring"},
    {"save-graph", TEXT, &options.save_graph, "FILE", "with costs, for tarn plan and tarn show"},
    {"trace", TEXT, &options.trace, "FILE", "Chrome trace of rank 0's last iterations"},
    {"checkpoint", TEXT, &options.checkpoint, "FILE", "written at the end"},
    {"resume", TEXT, &options.resume, "FILE", "go on from a checkpoint"},
    {"wire", NUMBER, &options.wire, "US", "sleep in each reduction: stands for a network"},
    {"deadline", NUMBER, &options.deadline, "SECONDS", "a step may take (default: 60)"},
    {"check-gradient", FLAG, &options.check_gradient, "", "against differences of the loss"},
    {"fault", TEXT, &options.fault, "KIND:RANK", "graph, race, plan, damage or hang"},
    {"help", FLAG, &options.help, "", "this text"},
};
enum { TABLE_SIZE = sizeof table / sizeof *table };

static void print_help(void)
{
    printf("mpirun -n RANKS train [OPTION...]\n\nTrains with Tarn's memory, oneDNN's kernels and "
           "MPI's communication.\n\n");
    for (const struct option *o = table; o < table + TABLE_SIZE; o++)
        printf("  --%-14s %-29s  %s\n", o->name, o->value, o->help);
}

static void set(const struct option *o, const char *value)
{
    char *end = "";
    if (o->type == FLAG) *(bool *)o->place = true;
    if (o->type == NUMBER) *(int *)o->place = (int)strtol(value, &end, 10);
    if (*end || !*value) fail(TARN_USAGE, "--%s: '%s' is no number", o->name, value);
    if (o->type == TEXT) *(const char **)o->place = value;
}

static void settle(struct options *o)
{
    o->is_text = !strcmp(o->network, "text");
    o->has_arena = !strcmp(o->memory, "arena");
    o->frees = !strcmp(o->memory, "free-at-last-use");
    if (!o->is_text && strcmp(o->network, "digits"))
        fail(TARN_USAGE, "--network: there is no '%s'", o->network);
    if (!o->has_arena && !o->frees && strcmp(o->memory, "malloc"))
        fail(TARN_USAGE, "--memory: there is no '%s'", o->memory);
    if (o->offload < 0 || (o->offload && (!o->budget || !o->has_arena)))
        fail(TARN_USAGE, "--offload is a rate above 0, and needs --budget and the arena");
    if (!o->has_arena) o->bucket = 1; /* malloc makes no neighbours */
    if (!o->batch) o->batch = o->is_text ? 8 : 16;
    if (!o->width) o->width = o->is_text ? 64 : 16;
    if (o->check_gradient) o->steps = 1;
    if (o->steps < 1 || o->batch < 1 || o->width < 16 || o->width % 16)
        fail(TARN_USAGE, "steps and batch are above 0, the width is a multiple of 16");
    if (o->shards < 1 || o->shards > SHARDS_MAX || o->shards & (o->shards - 1) || o->shards % ranks)
        fail(TARN_USAGE, "%d shards cannot be shared out evenly among %d ranks", o->shards, ranks);
    if (fault("graph")) o->width += 16;
}

void options_parse(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const struct option *o = table;
        while (o < table + TABLE_SIZE && strcmp(argv[i], named("--%s", o->name))) o++;
        if (o == table + TABLE_SIZE)
            fail(TARN_USAGE, "there is no option '%s' (--help lists them)", argv[i]);
        if (o->type != FLAG && ++i == argc) fail(TARN_USAGE, "--%s needs %s", o->name, o->value);
        set(o, argv[i]);
    }
    if (options.help) {
        if (rank == 0) print_help();
        ranks_end();
        exit(0);
    }
    settle(&options);
}

bool fault(const char *kind)
{
    return options.fault && !strcmp(options.fault, named("%s:%d", kind, rank));
}
