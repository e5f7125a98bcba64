/* Pairs forward and backward ops by data flow. A backward op reads the gradient and some of the
 * tensors that its forward op has read or written: its forward op is the op that shares most of its
 * inputs. A value is recognised through views and copies of it.
 *
 *     x, w ──convolution──► y ─ ─ ─ ─► dy ──convolution_backward──► dx, dw
 *     └─┴───────────────────────────────────────┴─ x, w: two shared; x's writer shares one
 *
 * Forward ops are ops that follow from no backward op, so the op that has made dy is none. If
 * several ops share as much, the op whose kind begins with the same words wins (gelu and
 * gelu_backward, not the writer of a tensor that both read). Next comes an op that wrote a shared
 * tensor (relu and threshold_backward, not a reader of relu's output), then an op without a
 * backward op so far. Last comes the latest op, because gradients come in the reverse order. */
#include "pairing.h"

#include <assert.h>
#include <string.h>

#include "streams/text/op_kinds.h"

/* A value that more forward ops use, such as a mask of all layers, is ignored as too common. */
#define USERS_MAX 1000

struct search {
    const struct tarn_graph *graph;
    struct tarn_pairing *pairing;
    struct tarn_region *region; /* for data that lasts as long as the search */
    bool *is_late;              /* op: backward, or follows from one that is */
    bool *is_taken;             /* op: has a backward op */
    uint32_t *users_begin;      /* value -> users; the users of t are [begin[t], begin[t + 1]) */
    uint32_t *users;            /* forward ops that touch a value */
    uint32_t *seen;             /* value -> 1 + the last op whose list contained it */
    uint32_t *shares;     /* op -> values that it shares with the op that is looked at, or 0 */
    uint32_t *candidates; /* ops whose shares are not 0 */
    uint32_t candidates_count;
};

static bool is_backward(const struct tarn_graph_op *op) { return tarn_kind_is_gradient(op->kind); }

/* ---- Values, and the start of the backward pass ---- */

static bool repeats_its_input(const struct tarn_graph_op *op)
{
    size_t length = strlen(op->kind), word = strlen("clone");
    if (op->inputs_count == 0) return false;
    return op->view || (length >= word && strcmp(op->kind + length - word, "clone") == 0);
}

static void trace_op(struct search *search, uint32_t v)
{
    const struct tarn_graph_op *op = &search->graph->ops[v];
    uint32_t *value = search->pairing->value;
    search->is_late[v] = is_backward(op);
    for (uint32_t k = 0; k < op->inputs_count; k++) {
        uint32_t producer = search->graph->tensors[op->inputs[k]].producer;
        if (producer != TARN_NONE && search->is_late[producer]) search->is_late[v] = true;
    }
    if (!repeats_its_input(op)) return;
    for (uint32_t k = 0; k < op->outputs_count; k++)
        value[tarn_outputs(op)[k]] = value[op->inputs[0]];
}

static bool may_be_forward(const struct search *search, uint32_t v)
{
    return !search->is_late[v] && !search->graph->ops[v].view;
}

/* ---- Users of values ---- */

/* The value of entry k of inputs and outputs; TARN_NONE if an earlier entry showed it. */
static uint32_t next_value(struct search *search, uint32_t v, uint32_t k)
{
    const struct tarn_graph_op *op = &search->graph->ops[v];
    uint32_t t = k < op->inputs_count ? op->inputs[k] : tarn_outputs(op)[k - op->inputs_count];
    uint32_t value = search->pairing->value[t];
    if (search->seen[value] == v + 1) return TARN_NONE;
    search->seen[value] = v + 1;
    return value;
}

/* Counts, or, when there is room, fills in. */
static void visit_users(struct search *search, uint32_t *place)
{
    const struct tarn_graph *graph = search->graph;
    memset(search->seen, 0, graph->tensors_count * sizeof *search->seen);
    for (uint32_t i = 0; i < graph->ops_count; i++) {
        uint32_t v = graph->order[i];
        const struct tarn_graph_op *op = &graph->ops[v];
        if (!may_be_forward(search, v)) continue;
        for (uint32_t k = 0; k < op->inputs_count + op->outputs_count; k++) {
            uint32_t value = next_value(search, v, k);
            if (value == TARN_NONE) continue;
            if (search->users) search->users[place[value]] = v;
            place[value]++;
        }
    }
}

static enum tarn_status list_users(struct search *search)
{
    uint32_t count = search->graph->tensors_count, sum = 0;
    uint32_t *place = tarn_region_take(search->region, count, sizeof *place);
    if (!place) return TARN_SYSTEM;
    visit_users(search, place);
    for (uint32_t t = 0; t < count; t++) {
        uint32_t users = place[t];
        search->users_begin[t] = place[t] = sum;
        sum += users;
    }
    search->users_begin[count] = sum;
    search->users = tarn_region_take(search->region, sum, sizeof *search->users);
    if (!search->users) return TARN_SYSTEM;
    visit_users(search, place);
    return TARN_OK;
}

/* ---- Choosing ---- */

/* How many words two kinds begin with in common. */
static uint32_t common_words(const char *a, const char *b)
{
    uint32_t words = 0;
    for (;; a++, b++, words++) {
        size_t length = strcspn(a, "._");
        if (length != strcspn(b, "._") || strncmp(a, b, length) != 0) return words;
        a += length;
        b += length;
        if (*a == 0 || *b == 0) return words + 1;
    }
}

static bool wrote_what_is_shared(const struct search *search, uint32_t u, uint32_t v)
{
    const struct tarn_graph *graph = search->graph;
    const struct tarn_graph_op *op = &graph->ops[v];
    for (uint32_t k = 0; k < op->inputs_count; k++)
        if (graph->tensors[search->pairing->value[op->inputs[k]]].producer == u) return true;
    return false;
}

/* Is `a` more likely the forward op of v than `b`? */
static bool is_better(const struct search *search, uint32_t a, uint32_t b, uint32_t v)
{
    const struct tarn_graph *graph = search->graph;
    const char *kind = graph->ops[v].kind;
    if (search->shares[a] != search->shares[b]) return search->shares[a] > search->shares[b];
    uint32_t words_a = common_words(graph->ops[a].kind, kind);
    uint32_t words_b = common_words(graph->ops[b].kind, kind);
    if (words_a != words_b) return words_a > words_b;
    bool wrote_a = wrote_what_is_shared(search, a, v), wrote_b = wrote_what_is_shared(search, b, v);
    if (wrote_a != wrote_b) return wrote_a;
    if (search->is_taken[a] != search->is_taken[b]) return !search->is_taken[a];
    return graph->rank[a] > graph->rank[b];
}

static void count_shares(struct search *search, uint32_t v)
{
    for (uint32_t k = 0; k < search->graph->ops[v].inputs_count; k++) {
        uint32_t value = next_value(search, v, k);
        if (value == TARN_NONE) continue;
        uint32_t begin = search->users_begin[value], end = search->users_begin[value + 1];
        if (end - begin > USERS_MAX) end = begin + USERS_MAX;
        for (uint32_t i = begin; i < end; i++) {
            uint32_t u = search->users[i];
            if (search->shares[u]++ == 0) search->candidates[search->candidates_count++] = u;
        }
    }
}

static uint32_t find_forward(struct search *search, uint32_t v)
{
    uint32_t best = TARN_NONE;
    count_shares(search, v);
    for (uint32_t i = 0; i < search->candidates_count; i++) {
        uint32_t u = search->candidates[i];
        if (search->graph->rank[u] > search->graph->rank[v]) continue;
        if (best == TARN_NONE || is_better(search, u, best, v)) best = u;
    }
    for (uint32_t i = 0; i < search->candidates_count; i++)
        search->shares[search->candidates[i]] = 0;
    search->candidates_count = 0;
    return best;
}

static void pair_ops(struct search *search)
{
    const struct tarn_graph *graph = search->graph;
    memset(search->seen, 0, graph->tensors_count * sizeof *search->seen);
    for (uint32_t i = 0; i < graph->ops_count; i++) {
        uint32_t v = graph->order[i];
        if (!is_backward(&graph->ops[v])) continue;
        uint32_t forward = find_forward(search, v);
        search->pairing->forward[v] = forward;
        if (forward != TARN_NONE) search->is_taken[forward] = true;
    }
}

/* ---- Pairing ---- */

static enum tarn_status find_pairs(struct search *search)
{
    const struct tarn_graph *graph = search->graph;
    for (uint32_t i = 0; i < graph->ops_count; i++) trace_op(search, graph->order[i]);
    if (list_users(search) != TARN_OK) return TARN_SYSTEM;
    pair_ops(search);
    return TARN_OK;
}

enum tarn_status tarn_pairing_init(struct tarn_pairing *pairing, struct tarn_region *region,
                                   const struct tarn_graph *graph)
{
    size_t ops = graph->ops_count, tensors = graph->tensors_count;
    pairing->forward = tarn_region_take(region, ops, sizeof *pairing->forward);
    pairing->value = tarn_region_take(region, tensors, sizeof *pairing->value);
    if (region->is_exhausted) return TARN_SYSTEM;
    for (uint32_t v = 0; v < ops; v++) pairing->forward[v] = TARN_NONE;
    for (uint32_t t = 0; t < tensors; t++) pairing->value[t] = t;
    struct tarn_region_mark mark = tarn_region_mark(region);
    struct search search = {
        .graph = graph,
        .pairing = pairing,
        .region = region,
        .is_late = tarn_region_take(region, ops, sizeof *search.is_late),
        .is_taken = tarn_region_take(region, ops, sizeof *search.is_taken),
        .users_begin = tarn_region_take(region, tensors + 1, sizeof *search.users_begin),
        .seen = tarn_region_take(region, tensors, sizeof *search.seen),
        .shares = tarn_region_take(region, ops, sizeof *search.shares),
        .candidates = tarn_region_take(region, ops, sizeof *search.candidates),
    };
    enum tarn_status status = region->is_exhausted ? TARN_SYSTEM : find_pairs(&search);
    tarn_region_release(region, mark);
    assert(status != TARN_OK || tarn_pairing_is_valid(pairing, graph));
    return status;
}

bool tarn_pairing_is_valid(const struct tarn_pairing *pairing, const struct tarn_graph *graph)
{
    for (uint32_t v = 0; v < graph->ops_count; v++) {
        uint32_t forward = pairing->forward[v];
        if (forward == TARN_NONE) continue;
        if (forward >= graph->ops_count || !is_backward(&graph->ops[v])) return false;
        if (graph->rank[forward] >= graph->rank[v]) return false;
    }
    for (uint32_t t = 0; t < graph->tensors_count; t++) {
        uint32_t value = pairing->value[t];
        if (value >= graph->tensors_count || pairing->value[value] != value) return false;
    }
    return true;
}
