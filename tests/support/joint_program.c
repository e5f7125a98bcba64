/* "MODeL: memory optimizations for deep learning", equations 1 to 9, said of storages instead of
 * tensors. Steps are 0 .. V-1 and one op runs in each:
 *
 *     R_v_s     op v runs in step s; the paper's C of all that v makes, which ties siblings (5)
 *     P_e_s     storage e is preserved in step s
 *     A_e       its address;  below_i_j, above_i_j: the paper's a and b
 *
 * and from its appendix: v runs between ASAP and ALAP (10), a storage is preserved at most from
 * there to its last user (11) and at least where that is certain (12), and two storages that one
 * order relation keeps apart need no address variables. Whatever is not written is 0. */
#include "joint_program.h"

#include <inttypes.h>
#include <stdlib.h>

#include "planner/transform/constraints.h"

struct program {
    const struct tarn_graph *graph;
    struct tarn_region region; /* of the constraints */
    struct tarn_constraints constraints;
    uint32_t *asap, *alap;     /* op -> step */
    uint32_t *last, *earliest; /* storage -> ALAP, ASAP of its last user */
    bool *reaches;             /* [u * ops + v]: u comes before v */
    uint64_t sum;
    FILE *file;
};

static bool reaches(const struct program *program, uint32_t u, uint32_t v)
{
    return program->reaches[(size_t)u * program->graph->ops_count + v];
}

static void fill_reaches(struct program *program)
{
    const struct tarn_arcs *arcs = &program->constraints.predecessors;
    uint32_t count = program->graph->ops_count;
    for (uint32_t v = 0; v < count; v++) {
        for (uint32_t i = arcs->begin[v]; i < arcs->begin[v + 1]; i++) {
            for (uint32_t u = 0; u < count; u++)
                program->reaches[(size_t)u * count + v] |=
                    u == arcs->ops[i] || reaches(program, u, arcs->ops[i]);
        }
    }
}

static void fill_steps(struct program *program)
{
    const struct tarn_graph *graph = program->graph;
    for (uint32_t v = 0; v < graph->ops_count; v++) {
        program->alap[v] = graph->ops_count - 1;
        for (uint32_t u = 0; u < graph->ops_count; u++) {
            program->asap[v] += reaches(program, u, v);
            program->alap[v] -= reaches(program, v, u);
        }
    }
    for (uint32_t a = 0; a < graph->planned_count; a++) {
        const struct tarn_storage *storage = &graph->storages[a];
        program->sum += storage->size;
        for (uint32_t k = 0; k < storage->users_count; k++) {
            uint32_t v = tarn_storage_users(graph, storage)[k];
            if (program->alap[v] > program->last[a]) program->last[a] = program->alap[v];
            if (program->asap[v] > program->earliest[a]) program->earliest[a] = program->asap[v];
        }
        if (storage->pinned) program->last[a] = program->earliest[a] = graph->ops_count - 1;
    }
}

static bool may_run(const struct program *program, uint32_t v, uint32_t s)
{
    return program->asap[v] <= s && s <= program->alap[v];
}

static bool may_be_preserved(const struct program *program, uint32_t a, uint32_t s)
{
    return program->asap[program->graph->storages[a].producer] < s && s <= program->last[a];
}

/* Do some order's lifetimes of the two overlap? */
static bool may_meet(const struct program *program, uint32_t a, uint32_t b)
{
    const struct tarn_storage *first = &program->graph->storages[a];
    bool apart = !first->pinned;
    for (uint32_t k = 0; k < first->users_count; k++)
        apart = apart && reaches(program, tarn_storage_users(program->graph, first)[k],
                                 program->graph->storages[b].producer);
    return !apart;
}

/* ---- Terms ---- */

static void write_run(const struct program *program, char sign, uint32_t v, uint32_t s)
{
    if (may_run(program, v, s)) fprintf(program->file, " %c R_%u_%u", sign, v, s);
}

static void write_kept(const struct program *program, char sign, uint32_t a, uint32_t s)
{
    if (may_be_preserved(program, a, s)) fprintf(program->file, " %c P_%u_%u", sign, a, s);
}

static void write_made(const struct program *program, char sign, uint32_t a, uint32_t s)
{
    write_run(program, sign, program->graph->storages[a].producer, s);
}

/* ---- Order ---- */

static void write_runs(const struct program *program)
{
    uint32_t count = program->graph->ops_count;
    for (uint32_t v = 0; v < count; v++) {
        for (uint32_t s = 0; s < count; s++) write_run(program, '+', v, s);
        fprintf(program->file, " = 1\n");
    }
    for (uint32_t s = 0; s < count; s++) {
        for (uint32_t v = 0; v < count; v++) write_run(program, '+', v, s);
        fprintf(program->file, " = 1\n");
    }
    for (uint32_t v = 0; v < count; v++) { /* v's step less u's is at least 1 */
        const struct tarn_arcs *arcs = &program->constraints.predecessors;
        for (uint32_t i = arcs->begin[v]; i < arcs->begin[v + 1]; i++) {
            for (uint32_t s = 0; s < count; s++) {
                if (may_run(program, v, s)) fprintf(program->file, " + %u R_%u_%u", s, v, s);
                if (may_run(program, arcs->ops[i], s))
                    fprintf(program->file, " - %u R_%u_%u", s, arcs->ops[i], s);
            }
            fprintf(program->file, " >= 1\n");
        }
    }
}

static void write_lifetime(const struct program *program, uint32_t a)
{
    const struct tarn_storage *storage = &program->graph->storages[a];
    for (uint32_t s = 0; s < program->graph->ops_count; s++) {
        if (may_be_preserved(program, a, s)) {
            write_made(program, '+', a, s); /* (1) */
            write_kept(program, '+', a, s);
            fprintf(program->file, " <= 1\n");
            write_kept(program, '+', a, s); /* (2) */
            write_kept(program, '-', a, s - 1);
            write_made(program, '-', a, s - 1);
            fprintf(program->file, " <= 0\n");
            if (s > program->alap[storage->producer] && s <= program->earliest[a])
                fprintf(program->file, " P_%u_%u = 1\n", a, s); /* (12) */
        }
        for (uint32_t k = 0; k < storage->users_count; k++) { /* (4) */
            uint32_t v = tarn_storage_users(program->graph, storage)[k];
            if (v == storage->producer || !may_run(program, v, s)) continue;
            write_run(program, '+', v, s);
            write_kept(program, '-', a, s);
            fprintf(program->file, " <= 0\n");
        }
    }
    for (uint32_t s = 1; storage->pinned && s < program->graph->ops_count; s++) {
        if (!may_be_preserved(program, a, s)) continue;
        write_kept(program, '+', a, s); /* kept once it is made */
        for (uint32_t t = 0; t < s; t++) write_made(program, '-', a, t);
        fprintf(program->file, " >= 0\n");
    }
}

/* ---- Addresses ---- */

static void write_pair(const struct program *program, uint32_t a, uint32_t b)
{
    uint64_t sum = program->sum;
    const struct tarn_storage *storages = program->graph->storages;
    for (uint32_t s = 0; s < program->graph->ops_count; s++) { /* (6) */
        fprintf(program->file, " below_%u_%u + above_%u_%u", a, b, a, b);
        write_kept(program, '-', a, s);
        write_kept(program, '-', b, s);
        if (storages[a].producer != storages[b].producer) {
            write_made(program, '-', a, s);
            write_made(program, '-', b, s);
        } else if (may_run(program, storages[a].producer, s)) {
            fprintf(program->file, " - 2 R_%u_%u", storages[a].producer, s);
        }
        fprintf(program->file, " >= -1\n");
    }
    fprintf(program->file, " A_%u - A_%u + %" PRIu64 " below_%u_%u <= %" PRId64 "\n", a, b, sum, a,
            b, (int64_t)(sum - storages[a].size)); /* (7a) */
    fprintf(program->file, " A_%u - A_%u + %" PRIu64 " above_%u_%u <= %" PRId64 "\n", b, a, sum, a,
            b, (int64_t)(sum - storages[b].size)); /* (7b) */
}

static void write_constraints(const struct program *program)
{
    uint32_t storages = program->graph->planned_count;
    fprintf(program->file, "Minimize\n peak\nSubject To\n");
    write_runs(program);
    for (uint32_t a = 0; a < storages; a++) write_lifetime(program, a);
    for (uint32_t a = 0; a < storages; a++) { /* (8) */
        fprintf(program->file, " peak - A_%u >= %" PRIu64 "\n", a,
                program->graph->storages[a].size);
        for (uint32_t b = a + 1; b < storages; b++)
            if (may_meet(program, a, b) && may_meet(program, b, a)) write_pair(program, a, b);
    }
    fprintf(program->file, " peak >= 0\n");
}

static void write_binaries(const struct program *program)
{
    uint32_t ops = program->graph->ops_count, storages = program->graph->planned_count;
    fprintf(program->file, "Binary\n");
    for (uint32_t s = 0; s < ops; s++) {
        for (uint32_t v = 0; v < ops; v++)
            if (may_run(program, v, s)) fprintf(program->file, " R_%u_%u\n", v, s);
        for (uint32_t a = 0; a < storages; a++)
            if (may_be_preserved(program, a, s)) fprintf(program->file, " P_%u_%u\n", a, s);
    }
    for (uint32_t a = 0; a < storages; a++) {
        for (uint32_t b = a + 1; b < storages; b++) {
            if (may_meet(program, a, b) && may_meet(program, b, a))
                fprintf(program->file, " below_%u_%u\n above_%u_%u\n", a, b, a, b);
        }
    }
    fprintf(program->file, "End\n");
}

void joint_program_write(const struct tarn_graph *graph, FILE *file)
{
    size_t ops = (size_t)graph->ops_count + 1, storages = (size_t)graph->planned_count + 1;
    struct program program = {.graph = graph,
                              .asap = calloc(ops, sizeof(uint32_t)),
                              .alap = calloc(ops, sizeof(uint32_t)),
                              .last = calloc(storages, sizeof(uint32_t)),
                              .earliest = calloc(storages, sizeof(uint32_t)),
                              .reaches = calloc(ops * ops, sizeof(bool)),
                              .file = file};
    bool complete = program.asap && program.alap && program.last && program.earliest &&
                    program.reaches &&
                    tarn_constraints_init(&program.constraints, &program.region, graph) == TARN_OK;
    if (!complete) abort();
    fill_reaches(&program);
    fill_steps(&program);
    write_constraints(&program);
    write_binaries(&program);
    tarn_region_finish(&program.region);
    free(program.asap);
    free(program.alap);
    free(program.last);
    free(program.earliest);
    free(program.reaches);
}
