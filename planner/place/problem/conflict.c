/* Conflicts, streamed. Sorting the storages by (stream, position) turns "a does not precede b" into
 * prefixes of slots, so that only "b does not precede a" is left to compare: one contiguous row of
 * `first` against one number, without a branch.
 * Source: docs/how-it-works.md, "Reuse". Cost: O(T S + V) to make; a mask looks at T/64 words and
 * at every slot of those that hold any conflict. */
#include "conflict.h"

#include <assert.h>
#include <string.h>

enum { WORD = 64 };

/* ---- Making ---- */

/* Counting sort by position, stream by stream: afterwards slot_at[.. position] is the first slot of
 * that position. */
static void number_slots(struct tarn_conflicts *conflicts)
{
    const struct tarn_reuse *reuse = &conflicts->reuse;
    uint32_t *slot_at = conflicts->slot_at, slots = 0, at = 0;
    for (uint32_t s = 0; s < reuse->streams_count; s++) {
        conflicts->ops_begin[s] = at;
        at += reuse->length[s] + 1;
    }
    for (uint32_t a = 0; a < reuse->count; a++)
        slot_at[conflicts->ops_begin[reuse->stream[a]] + reuse->position[a]]++;
    for (uint32_t s = 0; s < reuse->streams_count; s++) {
        conflicts->begin[s] = slots;
        for (uint32_t p = 0; p <= reuse->length[s]; p++) {
            slots += slot_at[conflicts->ops_begin[s] + p];
            slot_at[conflicts->ops_begin[s] + p] = slots;
        }
    }
    conflicts->begin[reuse->streams_count] = slots;
    for (uint32_t a = reuse->count; a-- > 0;)
        conflicts->slot_of[a] =
            --slot_at[conflicts->ops_begin[reuse->stream[a]] + reuse->position[a]];
}

static void fill_rows(struct tarn_conflicts *conflicts)
{
    const struct tarn_reuse *reuse = &conflicts->reuse;
    for (uint32_t s = 0; s < reuse->streams_count; s++) {
        uint32_t *row = conflicts->row + (size_t)s * conflicts->words_count * WORD;
        uint32_t *highest = conflicts->highest + (size_t)s * conflicts->words_count;
        for (uint32_t a = 0; a < reuse->count; a++)
            row[conflicts->slot_of[a]] = reuse->first[(size_t)s * reuse->count + a];
        for (uint32_t i = 0; i < reuse->count; i++)
            if (row[i] > highest[i / WORD]) highest[i / WORD] = row[i];
    }
}

enum tarn_status tarn_conflicts_init(struct tarn_conflicts *conflicts, struct tarn_region *region)
{
    const struct tarn_reuse *reuse = &conflicts->reuse;
    size_t streams = reuse->streams_count, positions = 0;
    for (size_t s = 0; s < streams; s++) positions += reuse->length[s];
    conflicts->words_count = reuse->count / WORD + 1;
    conflicts->row = conflicts->highest = NULL;
    conflicts->slot_of = tarn_region_take(region, reuse->count, sizeof *conflicts->slot_of);
    conflicts->begin = tarn_region_take(region, streams + 1, sizeof *conflicts->begin);
    conflicts->ops_begin = tarn_region_take(region, streams + 1, sizeof *conflicts->ops_begin);
    conflicts->slot_at = tarn_region_take(region, positions + streams, sizeof *conflicts->slot_at);
    if (!conflicts->slot_of || !conflicts->begin || !conflicts->ops_begin || !conflicts->slot_at)
        return TARN_SYSTEM;
    number_slots(conflicts);
    return TARN_OK;
}

enum tarn_status tarn_conflicts_init_rows(struct tarn_conflicts *conflicts,
                                          struct tarn_region *region)
{
    size_t words = (size_t)conflicts->reuse.streams_count * conflicts->words_count;
    assert(!conflicts->row);
    conflicts->highest = tarn_region_take(region, words, sizeof *conflicts->highest);
    if (conflicts->highest)
        conflicts->row = tarn_region_take(region, words * WORD, sizeof *conflicts->row);
    if (!conflicts->row) return TARN_SYSTEM;
    fill_rows(conflicts);
    return TARN_OK;
}

/* ---- Asking ---- */

/* The end of the slots of stream s that a storage with that `first` does not precede. */
static uint32_t prefix_end(const struct tarn_conflicts *conflicts, uint32_t s, uint32_t first)
{
    return conflicts->slot_at[conflicts->ops_begin[s] + first];
}

/* Bit i: row[i] > position, for a word of slots. Bytes first, which compilers vectorise; then eight
 * of them at a time become bits by one multiplication. */
static uint64_t beyond(const uint32_t *row, uint32_t position)
{
    unsigned char is_beyond[WORD];
    uint64_t bits = 0;
    for (uint32_t i = 0; i < WORD; i++) is_beyond[i] = row[i] > position;
    for (uint32_t i = 0; i < WORD; i += 8) {
        uint64_t eight = 0;
        for (uint32_t k = 0; k < 8; k++) eight |= (uint64_t)is_beyond[i + k] << (8 * k);
        bits |= (eight * UINT64_C(0x0102040810204080) >> 56) << i;
    }
    return bits;
}

/* The bits of [begin, end) that lie in a word; the range is not empty there. */
static uint64_t bits_of_range(uint32_t word, uint32_t begin, uint32_t end)
{
    uint64_t bits = UINT64_MAX;
    if (begin > word * WORD) bits &= UINT64_MAX << (begin % WORD);
    if (end < (word + 1) * WORD) bits &= ~(UINT64_MAX << (end % WORD));
    return bits;
}

void tarn_conflicts_mask(const struct tarn_conflicts *conflicts, uint32_t storage, uint64_t *mask)
{
    const struct tarn_reuse *reuse = &conflicts->reuse;
    uint32_t t = reuse->stream[storage], position = reuse->position[storage];
    const uint32_t *row = conflicts->row + (size_t)t * conflicts->words_count * WORD;
    const uint32_t *highest = conflicts->highest + (size_t)t * conflicts->words_count;
    memset(mask, 0, conflicts->words_count * sizeof *mask);
    for (uint32_t s = 0; s < reuse->streams_count; s++) {
        uint32_t begin = conflicts->begin[s];
        uint32_t end = prefix_end(conflicts, s, reuse->first[(size_t)s * reuse->count + storage]);
        for (uint32_t w = begin / WORD; w * WORD < end; w++)
            if (highest[w] > position)
                mask[w] |= beyond(row + w * WORD, position) & bits_of_range(w, begin, end);
    }
}

/* Takes off, for the storages of stream t, those that precede them. */
static void subtract_preceding(const struct tarn_conflicts *conflicts, uint32_t t,
                               uint32_t *released, uint32_t length, uint32_t *degree)
{
    const struct tarn_reuse *reuse = &conflicts->reuse;
    memset(released, 0, ((size_t)length + 1) * sizeof *released);
    for (uint32_t a = 0; a < reuse->count; a++)
        released[reuse->first[(size_t)t * reuse->count + a]]++;
    for (uint32_t p = 0; p < length; p++) released[p + 1] += released[p];
    for (uint32_t a = 0; a < reuse->count; a++)
        if (reuse->stream[a] == t) degree[a] -= released[reuse->position[a]];
}

enum tarn_status tarn_conflicts_count(const struct tarn_conflicts *conflicts, uint32_t *degree)
{
    const struct tarn_reuse *reuse = &conflicts->reuse;
    struct tarn_region region = {.chunks = NULL};
    uint32_t *released =
        tarn_region_take(&region, (size_t)tarn_reuse_longest(reuse) + 1, sizeof *released);
    if (!released) return TARN_SYSTEM;
    for (uint32_t a = 0; a < reuse->count; a++) {
        degree[a] = 0;
        for (uint32_t s = 0; s < reuse->streams_count; s++) {
            uint32_t first = reuse->first[(size_t)s * reuse->count + a];
            degree[a] += prefix_end(conflicts, s, first) - conflicts->begin[s];
        }
        degree[a]--; /* itself */
    }
    for (uint32_t t = 0; t < reuse->streams_count; t++)
        subtract_preceding(conflicts, t, released, reuse->length[t], degree);
    tarn_region_finish(&region);
    return TARN_OK;
}

enum tarn_status tarn_conflicts_pairs(const struct tarn_conflicts *conflicts, uint64_t *pairs)
{
    uint32_t count = conflicts->reuse.count;
    struct tarn_region region = {.chunks = NULL};
    uint32_t *degree = tarn_region_take(&region, count, sizeof *degree);
    if (!degree) return TARN_SYSTEM;
    enum tarn_status status = tarn_conflicts_count(conflicts, degree);
    uint64_t ends = 0;
    for (uint32_t a = 0; status == TARN_OK && a < count; a++) ends += degree[a];
    *pairs = ends / 2;
    tarn_region_finish(&region);
    return status;
}

/* ---- Validity ---- */

/* Do the positions of every stream begin at increasing slots, from its first to its last one? */
static bool positions_are_valid(const struct tarn_conflicts *conflicts)
{
    const struct tarn_reuse *reuse = &conflicts->reuse;
    uint32_t streams_count = reuse->streams_count;
    for (uint32_t s = 0; s < streams_count; s++) {
        uint32_t length = reuse->length[s];
        const uint32_t *slot_at = conflicts->slot_at + conflicts->ops_begin[s];
        if (slot_at[0] != conflicts->begin[s] || slot_at[length] != conflicts->begin[s + 1])
            return false;
        for (uint32_t p = 0; p < length; p++)
            if (slot_at[p] > slot_at[p + 1]) return false;
    }
    return conflicts->begin[0] == 0 && conflicts->begin[streams_count] == conflicts->reuse.count;
}

/* That no two storages have the same slot is only looked at by the sum of the slots. */
static bool slots_are_valid(const struct tarn_conflicts *conflicts)
{
    const struct tarn_reuse *reuse = &conflicts->reuse;
    uint64_t sum = 0, count = reuse->count;
    for (uint32_t a = 0; a < reuse->count; a++) {
        uint32_t slot = conflicts->slot_of[a];
        uint32_t at = conflicts->ops_begin[reuse->stream[a]] + reuse->position[a];
        if (slot < conflicts->slot_at[at] || slot >= conflicts->slot_at[at + 1]) return false;
        sum += slot;
    }
    return count == 0 || sum == count * (count - 1) / 2;
}

static bool row_is_valid(const struct tarn_conflicts *conflicts, uint32_t s)
{
    const struct tarn_reuse *reuse = &conflicts->reuse;
    const uint32_t *row = conflicts->row + (size_t)s * conflicts->words_count * WORD;
    const uint32_t *highest = conflicts->highest + (size_t)s * conflicts->words_count;
    for (uint32_t a = 0; a < reuse->count; a++)
        if (row[conflicts->slot_of[a]] != reuse->first[(size_t)s * reuse->count + a]) return false;
    for (uint32_t w = 0; w < conflicts->words_count; w++) {
        uint32_t most = 0;
        for (uint32_t i = w * WORD; i < (w + 1) * WORD; i++) {
            if (i >= reuse->count && row[i] != 0) return false;
            most = row[i] > most ? row[i] : most;
        }
        if (highest[w] != most) return false;
    }
    return true;
}

bool tarn_conflicts_is_valid(const struct tarn_conflicts *conflicts)
{
    if (conflicts->words_count != conflicts->reuse.count / WORD + 1) return false;
    if (!positions_are_valid(conflicts) || !slots_are_valid(conflicts)) return false;
    for (uint32_t s = 0; conflicts->row && s < conflicts->reuse.streams_count; s++)
        if (!row_is_valid(conflicts, s)) return false;
    return true;
}
