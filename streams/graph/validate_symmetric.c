/* Checks symmetric groups. Another device touches their bytes while a collective of this graph that
 * has a member as its input or output is under way here, and at no other time: a collective begins
 * on no device before its operands are there, and has ended on a device only when no other one
 * needs them. Nothing that this graph knows says when a peer's one-sided put or get comes, so a
 * member that no collective touches is refused. */
#include <stdlib.h>
#include <string.h>

#include "validate.h"

static enum tarn_status bad_member(const struct tarn_graph *graph, const struct tarn_report *report,
                                   uint32_t g, uint32_t t, const char *what)
{
    return tarn_report_bad(report, tarn_location_at(TARN_NONE, t, "/contiguous/%u/symmetric", g),
                           "%s is in the symmetric group %s, but %s",
                           tarn_tensor_label(graph, t).text,
                           tarn_quote(graph->given[g].symmetric).text, what);
}

static bool is_communicated(const struct tarn_graph *graph, const struct tarn_storage *storage)
{
    const uint32_t *users = tarn_storage_users(graph, storage);
    for (uint32_t i = 0; i < storage->users_count; i++)
        if (tarn_graph_op_class(graph, users[i]) == TARN_CLASS_COLLECTIVE) return true;
    return false;
}

static enum tarn_status check_group(const struct tarn_graph *graph,
                                    const struct tarn_report *report, uint32_t g, uint32_t space)
{
    const struct tarn_group *group = &graph->given[g];
    if (group->symmetric[0] == 0)
        return tarn_report_bad(
            report, tarn_location_at(TARN_NONE, group->tensors[0], "/contiguous/%u/symmetric", g),
            "symmetric group %u has no name; groups of one name lie at one offset in all graphs of "
            "a family",
            g);
    if (group->storages_count == 0)
        return bad_member(graph, report, g, group->tensors[0],
                          "no tensor of the group has bytes that could lie anywhere");
    for (uint32_t i = 0; i < group->storages_count; i++) {
        const struct tarn_storage *storage = &graph->storages[group->storages[i]];
        if (storage->persistent)
            return bad_member(graph, report, g, storage->tensor,
                              "it is persistent: a family has those at equal offsets in a part of "
                              "their own, only planned tensors can be symmetric");
        if (storage->space != space)
            return bad_member(graph, report, g, storage->tensor,
                              "another symmetric group is in another memory space: all of them lie "
                              "in one range");
        if (!is_communicated(graph, storage))
            return bad_member(graph, report, g, storage->tensor,
                              "no op of class collective reads or writes it: nothing orders what "
                              "other devices do with its bytes. Give the op that communicates its "
                              "class, or leave the group as it is without 'symmetric'");
    }
    return TARN_OK;
}

struct named {
    const char *name;
    uint32_t group;
};

static int compare_names(const void *left, const void *right)
{
    const struct named *a = left, *b = right;
    int order = strcmp(a->name, b->name);
    return order ? order : (a->group > b->group) - (a->group < b->group);
}

enum tarn_status tarn_validate_symmetric(const struct tarn_graph *graph,
                                         const struct tarn_report *report)
{
    uint32_t count = 0, space = TARN_NONE;
    enum tarn_status status = TARN_OK;
    for (uint32_t g = 0; g < graph->given_count && status == TARN_OK; g++) {
        if (!graph->given[g].symmetric) continue;
        if (space == TARN_NONE) space = graph->tensors[graph->given[g].tensors[0]].space;
        status = check_group(graph, report, g, space);
        count++;
    }
    if (status != TARN_OK || count < 2) return status;
    struct tarn_region region = {.chunks = NULL};
    struct named *names = tarn_region_take(&region, count, sizeof *names);
    if (!names) return TARN_SYSTEM;
    count = 0;
    for (uint32_t g = 0; g < graph->given_count; g++)
        if (graph->given[g].symmetric)
            names[count++] = (struct named){graph->given[g].symmetric, g};
    qsort(names, count, sizeof *names, compare_names);
    for (uint32_t i = 1; i < count && status == TARN_OK; i++)
        if (strcmp(names[i].name, names[i - 1].name) == 0)
            status = tarn_report_bad(
                report,
                tarn_location_at(TARN_NONE, graph->given[names[i].group].tensors[0],
                                 "/contiguous/%u/symmetric", names[i].group),
                "contiguous groups %u and %u are both the symmetric group %s; a graph has each "
                "name once",
                names[i - 1].group, names[i].group, tarn_quote(names[i].name).text);
    tarn_region_finish(&region);
    return status;
}
