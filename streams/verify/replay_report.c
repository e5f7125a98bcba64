/* What the replay says of a broken plan: the violation, the nodes where the search for a witness
 * begins, and a sentence with both ops, the storages and their bytes. */
#include <stdio.h>

#include "replay.h"
#include "streams/graph/report.h"

static uint32_t op_at(const struct tarn_proof_replay *replay, uint32_t node)
{
    return tarn_past_step(&replay->past, node)->op;
}

struct node_label {
    char text[128];
};

/* What messages about the step that runs now call a node. */
static struct node_label label(const struct tarn_proof_replay *replay, uint32_t node)
{
    struct node_label result;
    bool previous = tarn_past_iteration(&replay->past, node) < replay->past.iteration;
    snprintf(result.text, sizeof result.text, "%s%s",
             tarn_op_label(replay->graph, op_at(replay, node)).text,
             previous ? " of the previous iteration" : "");
    return result;
}

struct bytes_label {
    char text[300];
};

/* A storage with its exact bytes, as its memory space counts them, and with the end of what it
 * reserves where that is another. */
static struct bytes_label bytes(const struct tarn_proof_replay *replay, uint32_t storage)
{
    struct bytes_label result;
    const struct tarn_storage *record = &replay->graph->storages[storage];
    uint64_t offset = tarn_plan_offset_in_space(replay->plan, storage);
    uint64_t size = tarn_plan_place(replay->plan, storage)->size;
    uint64_t reserved = tarn_storage_reserved(replay->graph, storage, replay->plan->alignment);
    char padding[40] = "";
    if (reserved > size)
        snprintf(padding, sizeof padding, ", reserved up to %llu",
                 (unsigned long long)(offset + reserved));
    snprintf(result.text, sizeof result.text, "%s (bytes %llu..%llu%s%s)",
             tarn_storage_label(replay->graph, storage).text, (unsigned long long)offset,
             (unsigned long long)(offset + size),
             tarn_space_phrase(replay->graph, record->space).text, padding);
    return result;
}

/* Between the step that runs now and another node (TARN_NONE: none). */
static struct tarn_violation violation_with(const struct tarn_proof_replay *replay,
                                            enum tarn_violation_kind kind, uint32_t other,
                                            uint32_t storage, uint32_t other_storage)
{
    const struct tarn_storage *storages = replay->graph->storages;
    struct tarn_violation violation = tarn_violation_of(kind);
    violation.op = replay->past.step->op;
    if (other != TARN_NONE) violation.other_op = op_at(replay, other);
    if (storage != TARN_NONE) violation.tensor = storages[storage].tensor;
    if (other_storage != TARN_NONE) violation.other_tensor = storages[other_storage].tensor;
    return violation;
}

static struct tarn_suspects suspects(const struct tarn_proof_replay *replay, uint32_t other,
                                     uint32_t third)
{
    struct tarn_suspects result = {{replay->past.node, other, third}, 1};
    if (other != TARN_NONE) result.count = third != TARN_NONE ? 3 : 2;
    return result;
}

void tarn_replay_report_overlap(const struct tarn_proof_replay *replay, uint32_t storage,
                                uint32_t victim, uint32_t user)
{
    bool self = user == replay->past.node;
    tarn_verdict_add(
        replay->verdict, violation_with(replay, TARN_UNORDERED_OVERLAP, user, storage, victim),
        suspects(replay, user, replay->contents[victim].writer),
        "%s writes %s, which shares bytes with %s that %s %s%s",
        label(replay, replay->past.node).text, bytes(replay, storage).text,
        bytes(replay, victim).text, self ? "it" : label(replay, user).text,
        self ? "uses itself" : "uses", self ? "" : ", and nothing orders the use before the write");
}

void tarn_replay_report_lost_output(const struct tarn_proof_replay *replay, uint32_t storage,
                                    uint32_t victim)
{
    uint32_t writer = replay->contents[victim].writer;
    tarn_verdict_add(replay->verdict,
                     violation_with(replay, TARN_OVERWRITTEN_INPUT, writer, storage, victim),
                     suspects(replay, writer, TARN_NONE),
                     "%s writes %s over the output %s, which must stay until the iteration ends",
                     label(replay, replay->past.node).text, bytes(replay, storage).text,
                     bytes(replay, victim).text);
}

void tarn_replay_report_spoiled(const struct tarn_proof_replay *replay, uint32_t storage)
{
    const struct tarn_content *content = &replay->contents[storage];
    uint32_t spoiler = content->spoiler;
    bool ordered =
        tarn_past_has(&replay->past, tarn_past_step(&replay->past, spoiler)->stream, spoiler);
    tarn_verdict_add(
        replay->verdict,
        violation_with(replay, ordered ? TARN_OVERWRITTEN_INPUT : TARN_UNORDERED_OVERLAP, spoiler,
                       storage, content->spoiler_storage),
        suspects(replay, spoiler, content->writer), "%s reads %s, but %s %s overwritten it with %s",
        label(replay, replay->past.node).text, bytes(replay, storage).text,
        label(replay, spoiler).text, ordered ? "has" : "may have",
        bytes(replay, content->spoiler_storage).text);
}

void tarn_replay_report_hazard(const struct tarn_proof_replay *replay, uint32_t storage,
                               uint32_t other, const char *does, const char *other_does)
{
    tarn_verdict_add(
        replay->verdict, violation_with(replay, TARN_HAZARD_LOST, other, storage, TARN_NONE),
        suspects(replay, other, TARN_NONE),
        "%s %s %s, which %s %s, and nothing orders the two: a wait is missing",
        label(replay, replay->past.node).text, does,
        tarn_storage_label(replay->graph, storage).text, label(replay, other).text, other_does);
}

void tarn_replay_report_unwritten(const struct tarn_proof_replay *replay, uint32_t storage)
{
    const struct tarn_graph *graph = replay->graph;
    uint32_t producer = graph->storages[storage].producer;
    struct tarn_violation violation =
        violation_with(replay, TARN_HAZARD_LOST, TARN_NONE, storage, TARN_NONE);
    violation.other_op = producer;
    struct tarn_suspects who = suspects(replay, TARN_NONE, TARN_NONE);
    tarn_verdict_add(replay->verdict, violation, who,
                     "%s reads %s before its producer %s has run in the same iteration",
                     label(replay, replay->past.node).text, tarn_storage_label(graph, storage).text,
                     tarn_op_label(graph, producer).text);
}

void tarn_replay_report_lost_arc(const struct tarn_proof_replay *replay, uint32_t node)
{
    tarn_verdict_add(replay->verdict,
                     violation_with(replay, TARN_HAZARD_LOST, node, TARN_NONE, TARN_NONE),
                     suspects(replay, node, TARN_NONE),
                     "a control arc says that %s comes after %s, but nothing in the plan does",
                     label(replay, replay->past.node).text, label(replay, node).text);
}

void tarn_replay_report_persistent(const struct tarn_proof_replay *replay, uint32_t storage,
                                   uint32_t other)
{
    struct tarn_violation violation = tarn_violation_of(TARN_UNORDERED_OVERLAP);
    violation.tensor = replay->graph->storages[storage].tensor;
    violation.other_tensor = replay->graph->storages[other].tensor;
    tarn_verdict_add(replay->verdict, violation, (struct tarn_suspects){{0}, 1},
                     "persistent %s shares bytes with %s; both live for ever",
                     bytes(replay, storage).text, bytes(replay, other).text);
}
