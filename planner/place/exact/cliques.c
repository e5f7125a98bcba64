/* Finds the sections of an instance of exact search: cliques of pieces. The storages are visited in
 * list order, each with its earlier neighbours. On a single stream these neighbours are themselves
 * a clique (the classic enumeration of an interval graph's maximal cliques). With several streams
 * they are covered by cliques that grow greedily by size. Every conflict is in some section. Cost:
 * O(n / 64) for each piece of each section. */
#include <stdlib.h>
#include <string.h>

#include "builder.h"
#include "planner/place/effort/effort.h"

enum { SECTIONS_A_PIECE = 64 };
#define SECTION_PIECES_MAX ((size_t)1 << 23)

/* ---- Cliques ---- */

/* Pieces in list order of their producers: a counting sort by rank. */
static bool sort_by_time(struct tarn_exact_builder *builder)
{
    const struct tarn_problem *problem = builder->problem;
    struct tarn_region_mark mark = tarn_region_mark(&builder->region);
    uint32_t *begin =
        tarn_region_take(&builder->region, (size_t)problem->ops_count + 2, sizeof *begin);
    if (!begin) return false;
    for (uint32_t p = 0; p < builder->pieces_count; p++)
        begin[tarn_problem_begin(problem, builder->storage[p]) + 1]++;
    for (uint32_t v = 0; v < problem->ops_count; v++) begin[v + 1] += begin[v];
    for (uint32_t p = 0; p < builder->pieces_count; p++)
        builder->by_time[begin[tarn_problem_begin(problem, builder->storage[p])]++] =
            builder->rank_of[p];
    tarn_region_release(&builder->region, mark);
    return true;
}

/* The largest piece of a set; TARN_NONE when the set is empty. */
static uint32_t largest_of(const struct tarn_exact_builder *builder, const uint64_t *set)
{
    for (uint32_t w = 0; w < builder->words; w++) {
        if (set[w] != 0) return tarn_set_next(w, set[w]);
    }
    return TARN_NONE;
}

/* Moves piece p into the clique: only its neighbours stay candidates. */
static void join(const struct tarn_exact_builder *builder, uint64_t *clique, uint64_t *candidates,
                 uint32_t p)
{
    const uint64_t *adjacent = builder->adjacent + (size_t)p * builder->words;
    tarn_set_add(clique, p);
    for (uint32_t w = 0; w < builder->words; w++) candidates[w] &= adjacent[w];
}

/* Writes the clique as a section unless the last ones hold it. */
static bool keep_section(struct tarn_exact_builder *builder, const uint64_t *clique)
{
    struct tarn_exact_instance *instance = builder->instance;
    uint32_t s = instance->sections_count, begin = instance->section_begin[s], at = begin;
    uint32_t *begins = tarn_region_grow(&builder->region, instance->section_begin,
                                        &builder->sections_room, (size_t)s + 2, sizeof *begins);
    if (!begins) return false;
    instance->section_begin = begins;
    TARN_SET_EACH(rank, w, builder->words, clique[w]) {
        instance->section_pieces = tarn_region_grow(&builder->region, instance->section_pieces,
                                                    &builder->section_pieces_room, (size_t)at + 1,
                                                    sizeof *instance->section_pieces);
        if (!instance->section_pieces) return false;
        instance->section_pieces[at++] = builder->ranked[rank].piece;
    }
    for (uint32_t before = s; before > 0 && s - before < 16; before--) {
        uint32_t k = instance->section_begin[before - 1], missing = 0;
        if (instance->section_begin[before] - k != at - begin) continue;
        for (; k < instance->section_begin[before]; k++)
            missing += !tarn_set_has(clique, builder->rank_of[instance->section_pieces[k]]);
        if (missing == 0) return true;
    }
    instance->section_begin[s + 1] = at;
    instance->sections_count++;
    return true;
}

/* The same for all candidates among `wanted` at once, if they are a clique. */
static bool join_all(const struct tarn_exact_builder *builder, uint64_t *clique,
                     uint64_t *candidates, const uint64_t *wanted, uint64_t *common)
{
    size_t words = builder->words;
    memcpy(common, candidates, words * sizeof *common);
    TARN_SET_EACH(p, w, words, candidates[w] & wanted[w]) {
        const uint64_t *adjacent = builder->adjacent + (size_t)p * words;
        bool in = tarn_set_has(common, p);
        for (size_t v = 0; v < words; v++) common[v] &= adjacent[v];
        tarn_set_put(common, p, in);
    }
    for (size_t w = 0; w < words; w++) {
        if (candidates[w] & wanted[w] & ~common[w]) return false;
    }
    for (size_t w = 0; w < words; w++) {
        clique[w] |= candidates[w] & wanted[w];
        candidates[w] = common[w] & ~wanted[w];
    }
    return true;
}

/* Makes the clique maximal: earlier ones first, which on one stream are a clique already. */
static void fill_clique(const struct tarn_exact_builder *builder, uint64_t *clique,
                        uint64_t *candidates, const uint64_t *earlier, uint64_t *old)
{
    uint32_t next;
    if (!join_all(builder, clique, candidates, earlier, old)) {
        for (;;) {
            for (size_t w = 0; w < builder->words; w++) old[w] = candidates[w] & earlier[w];
            if ((next = largest_of(builder, old)) == TARN_NONE) break;
            join(builder, clique, candidates, next);
        }
    }
    while ((next = largest_of(builder, candidates)) != TARN_NONE)
        join(builder, clique, candidates, next);
}

/* Cliques with piece p until every earlier neighbour is in one with it. Later pieces join in as
 * well, so that cliques are maximal. sets: four sets of pieces to work in. */
static bool cover(struct tarn_exact_builder *builder, uint32_t p, const uint64_t *earlier,
                  uint64_t *sets)
{
    size_t words = builder->words;
    uint64_t *open = sets, *clique = sets + words, *candidates = sets + 2 * words;
    const uint64_t *adjacent = builder->adjacent + (size_t)p * words;
    uint32_t next;
    for (size_t w = 0; w < words; w++) open[w] = adjacent[w] & earlier[w];
    do {
        memset(clique, 0, words * sizeof *clique);
        memcpy(candidates, adjacent, words * sizeof *candidates);
        tarn_set_add(clique, p);
        if ((next = largest_of(builder, open)) != TARN_NONE)
            join(builder, clique, candidates, next);
        fill_clique(builder, clique, candidates, earlier, sets + 3 * words);
        for (size_t w = 0; w < words; w++) open[w] &= ~clique[w];
        builder->work +=
            TARN_WORK_EXACT_RAISE + words * (4 + 2 * (uint64_t)tarn_set_size(clique, words));
        if (!keep_section(builder, clique)) return false;
    } while (!tarn_set_is_empty(open, builder->words) &&
             builder->section_pieces_room < SECTION_PIECES_MAX);
    return true;
}

static bool find_sections(struct tarn_exact_builder *builder)
{
    uint64_t *sets = tarn_region_take(&builder->region, (size_t)builder->words * 5, sizeof *sets);
    struct tarn_exact_instance *instance = builder->instance;
    instance->section_begin = tarn_region_grow(&builder->region, NULL, &builder->sections_room, 256,
                                               sizeof *instance->section_begin);
    bool ok = sets && instance->section_begin && sort_by_time(builder);
    for (uint32_t i = 0; ok && i < builder->pieces_count; i++) {
        uint32_t p = builder->by_time[i];
        ok = !tarn_exact_builder_is_over(builder) &&
             cover(builder, p, sets + (size_t)builder->words * 4, sets);
        tarn_set_add(sets + (size_t)builder->words * 4, p);
    }
    return ok;
}

/* ---- Choosing ---- */

static int64_t load_of(const struct tarn_exact_instance *instance, uint32_t s)
{
    int64_t load = 0;
    for (uint32_t k = instance->section_begin[s]; k < instance->section_begin[s + 1]; k++)
        load += instance->piece_size[instance->section_pieces[k]];
    return load;
}

/* Notes the load of the blocks in a section, and its pieces as seen; true if one was not before. */
static bool note_load(struct tarn_exact_instance *instance, uint32_t s, int64_t load,
                      uint64_t *seen)
{
    bool first = false;
    for (uint32_t k = instance->section_begin[s]; k < instance->section_begin[s + 1]; k++) {
        uint32_t p = instance->section_pieces[k], b = instance->piece_block[p];
        if (!tarn_set_has(seen, p)) first = true;
        tarn_set_add(seen, p);
        if (load > instance->load[b]) instance->load[b] = load;
    }
    return first;
}

struct load {
    int64_t sum; /* of sizes */
    uint32_t pieces;
};

static int compare_loads(const void *a, const void *b)
{
    int64_t x = ((const struct load *)a)->sum, y = ((const struct load *)b)->sum;
    return (x < y) - (x > y);
}

/* The minimum load of sections that are kept: half of the greatest load, or the load at which
 * SECTIONS_A_PIECE sections for each piece are used up. */
static int64_t least_load(const struct tarn_exact_instance *instance, struct load *loads)
{
    uint64_t room = SECTIONS_A_PIECE * (uint64_t)instance->piece_begin[instance->count];
    const uint32_t *begin = instance->section_begin;
    for (uint32_t s = 0; s < instance->sections_count; s++)
        loads[s] = (struct load){load_of(instance, s), begin[s + 1] - begin[s]};
    qsort(loads, instance->sections_count, sizeof *loads, compare_loads);
    int64_t half = instance->sections_count > 0 ? loads[0].sum / 2 : 0;
    for (uint32_t s = 0; s < instance->sections_count && loads[s].sum > half; s++) {
        if (loads[s].pieces > room) return loads[s].sum;
        room -= loads[s].pieces;
    }
    return half;
}

/* Leaves out light sections in which no piece is for the first time: they hardly ever overflow, and
 * with several streams there can be thousands of them. */
static void drop_light_sections(struct tarn_exact_instance *instance, struct load *loads,
                                uint64_t *seen)
{
    int64_t least = least_load(instance, loads);
    uint32_t kept = 0;
    for (uint32_t s = 0; s < instance->sections_count; s++) {
        uint32_t begin = instance->section_begin[s], to = instance->section_begin[kept];
        uint32_t count = instance->section_begin[s + 1] - begin;
        int64_t load = load_of(instance, s);
        if (!note_load(instance, s, load, seen) && load < least) continue;
        memmove(instance->section_pieces + to, instance->section_pieces + begin,
                count * sizeof *instance->section_pieces);
        instance->section_begin[++kept] = to + count;
    }
    instance->sections_count = kept;
}

static bool choose_sections(struct tarn_exact_builder *builder)
{
    struct tarn_exact_instance *instance = builder->instance;
    size_t pieces = instance->piece_begin[instance->count];
    struct load *loads =
        tarn_region_take(&builder->region, instance->sections_count, sizeof *loads);
    uint64_t *seen = tarn_region_take(&builder->region, pieces / 64 + 1, sizeof *seen);
    bool ok = loads && seen;
    if (ok) drop_light_sections(instance, loads, seen);
    return ok;
}

bool tarn_exact_note_sections(struct tarn_exact_instance *instance, struct tarn_region *region)
{
    instance->section_words = instance->sections_count / 64 + 1;
    instance->section_sets = tarn_region_take(
        region, (size_t)instance->count * instance->section_words, sizeof(uint64_t));
    if (!instance->section_sets) return false;
    for (uint32_t s = 0; s < instance->sections_count; s++) {
        for (uint32_t k = instance->section_begin[s]; k < instance->section_begin[s + 1]; k++) {
            uint32_t b = instance->piece_block[instance->section_pieces[k]];
            tarn_set_add(instance->section_sets + (size_t)b * instance->section_words, s);
        }
    }
    return true;
}

bool tarn_exact_make_sections(struct tarn_exact_builder *builder)
{
    return find_sections(builder) && choose_sections(builder);
}
