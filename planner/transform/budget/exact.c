/* Finds optimal schedules of small graphs by shortest paths over states. A state is a place in the
 * list and the set of forward results that are in memory. In a state the primary op of the place
 * can run, an earlier forward op can run again, and a result can be dropped. Shortest paths from
 * the empty state to the end of the list (E. Dijkstra, 1959) are the fastest schedules. The length
 * of a path is the time of ops that run again, and the extra time of implementations slower than
 * the fastest; both are non-negative. If no schedule fits, the same search with the peak as the
 * length of a path finds the lowest peak, and then the fastest schedule of that peak.
 *
 * A result is dropped only if some possible step does not fit, and results that no op reads any
 * more are not in the set. Both rules leave out states, but no best path. Source: the state space
 * of R. Kumar et al., "Efficient rematerialization for deep networks", 2019, without its
 * restriction to contiguous parts. Cost: at most STATES_MAX states x (results + ops). */
#include "budget.h"

#include <assert.h>
#include <string.h>

#include "net.h"
#include "planner/transform/steps.h"

enum {
    STATES_MAX = 1 << 16, /* that are looked at, before it is given up */
    TABLE_SIZE = 1 << 18, /* a power of two; at most half of it is used */
    HALF = TARN_NET_RESULTS_MAX / 2,
    STEPS_EACH = 64, /* states between two looks at the control */
    DROPS = 1 << 30  /* a move that drops a result, instead of a form of the net */
};

struct node {
    uint64_t key; /* the smallest so far: nanoseconds or bytes */
    uint32_t place, set;
    uint32_t parent; /* node */
    uint32_t move;   /* that led here: form of the net, or result + DROPS */
    bool over;       /* the form has overwritten a result */
    bool done;
};

struct entry {
    uint64_t key;
    uint32_t node;
};

struct exact {
    struct tarn_region region; /* of all arrays below */
    struct tarn_net net;
    uint64_t budget;
    bool by_bytes;                /* the search is for the lowest peak */
    uint64_t sizes[2][1 << HALF]; /* bytes of half a set */
    uint64_t *fastest;            /* place -> time of the fastest primary form */
    struct node *nodes;
    uint32_t nodes_count;
    uint32_t *table; /* hash -> node + 1 */
    struct entry *heap;
    size_t heap_count, heap_room;
    struct tarn_steps steps;
    uint64_t looked_at, states_max;
    bool no_memory, ended;
};

static uint64_t bytes_of(const struct exact *exact, uint32_t set)
{
    return exact->sizes[0][set & ((1 << HALF) - 1)] + exact->sizes[1][set >> HALF];
}

/* ---- States ---- */

static uint32_t find_slot(const struct exact *exact, uint32_t place, uint32_t set)
{
    uint64_t hash = ((uint64_t)place << 32 | set) * UINT64_C(0x9e3779b97f4a7c15);
    uint32_t slot = (uint32_t)(hash >> 40) & (TABLE_SIZE - 1);
    for (; exact->table[slot] > 0; slot = (slot + 1) & (TABLE_SIZE - 1)) {
        const struct node *node = &exact->nodes[exact->table[slot] - 1];
        if (node->place == place && node->set == set) break;
    }
    return slot;
}

static void push(struct exact *exact, uint64_t key, uint32_t node)
{
    struct entry *heap = tarn_region_grow(&exact->region, exact->heap, &exact->heap_room,
                                          exact->heap_count + 1, sizeof *heap);
    if (!heap) {
        exact->no_memory = exact->ended = true;
        return;
    }
    exact->heap = heap;
    size_t i = exact->heap_count++;
    for (; i > 0 && exact->heap[(i - 1) / 2].key > key; i = (i - 1) / 2)
        exact->heap[i] = exact->heap[(i - 1) / 2];
    exact->heap[i] = (struct entry){key, node};
}

static uint32_t pop(struct exact *exact)
{
    assert(exact->heap_count > 0);
    struct entry *heap = exact->heap, last = heap[--exact->heap_count];
    uint32_t node = heap[0].node;
    size_t i = 0, child;
    while ((child = 2 * i + 1) < exact->heap_count) {
        if (child + 1 < exact->heap_count && heap[child + 1].key < heap[child].key) child++;
        if (heap[child].key >= last.key) break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = last;
    return node;
}

/* Records a state that a move reaches from another state; `then.set` is cut to the results that are
 * still needed. */
static void reach(struct exact *exact, struct node then)
{
    then.set &= exact->net.wanted[then.place];
    uint32_t slot = find_slot(exact, then.place, then.set);
    if (exact->table[slot] == 0) {
        if (exact->nodes_count == TABLE_SIZE / 2) {
            exact->ended = true;
            return;
        }
        exact->nodes[exact->nodes_count] = then;
        exact->table[slot] = ++exact->nodes_count;
        push(exact, then.key, exact->table[slot] - 1);
        return;
    }
    struct node *known = &exact->nodes[exact->table[slot] - 1];
    if (known->done || known->key <= then.key) return;
    *known = then;
    push(exact, then.key, exact->table[slot] - 1);
}

/* ---- Moves ---- */

/* Chooses the fastest implementation that fits beside this many bytes, else the one with the
 * smallest workspace. */
static const struct tarn_choice *choose(const struct exact *exact, const struct tarn_net_form *form,
                                        uint64_t bytes)
{
    const struct tarn_recompute_model *model = exact->net.model;
    struct tarn_range choices = model->forms[form->form].choices;
    uint32_t i = choices.begin;
    while (i + 1 < choices.end &&
           (exact->by_bytes || bytes + model->choices[i].workspace > exact->budget))
        i++;
    return &model->choices[i];
}

/* True: it does not fit as it is. */
static bool run_form(struct exact *exact, uint32_t from, uint32_t f, bool over)
{
    const struct tarn_net *net = &exact->net;
    const struct tarn_net_form *form = &net->forms[f];
    const struct node now = exact->nodes[from];
    bool again = f >= net->again;
    uint64_t bytes = bytes_of(exact, now.set) + bytes_of(exact, form->writes) +
                     (again ? net->between[now.place] + form->aside : net->during[now.place]);
    if (!again) bytes -= bytes_of(exact, form->writes & now.set);
    if (over) bytes -= form->over_size;
    const struct tarn_choice *choice = choose(exact, form, bytes);
    bytes += choice->workspace;
    bool fits = bytes <= (exact->by_bytes ? now.key : exact->budget);
    if (!fits && !exact->by_bytes) return true;
    uint64_t extra = choice->time_ns - (again ? 0 : exact->fastest[now.place]);
    uint32_t set = (over ? now.set & ~(1u << form->over) : now.set) | form->writes;
    reach(exact, (struct node){.key = !exact->by_bytes ? now.key + extra
                                      : fits           ? now.key
                                                       : bytes,
                               .place = now.place + !again,
                               .set = set,
                               .parent = from,
                               .move = f,
                               .over = over});
    return !fits;
}

/* Runs it both ways: beside the version that it overwrites, and over it. */
static bool run_both(struct exact *exact, uint32_t from, uint32_t f)
{
    const struct tarn_net_form *form = &exact->net.forms[f];
    bool blocked = false;
    if (form->over == TARN_NONE || !form->forced) blocked = run_form(exact, from, f, false);
    if (form->over != TARN_NONE) blocked = run_form(exact, from, f, true) || blocked;
    return blocked;
}

static bool may_run_again(const struct exact *exact, const struct node *now,
                          const struct tarn_net_form *form)
{
    uint32_t gains = form->writes & exact->net.wanted[now->place] & ~now->set;
    bool known = form->writes & now->set;
    return form->begin <= now->place && now->place < form->end && !(form->reads & ~now->set) &&
           gains && !(known && form->over != TARN_NONE);
}

static void look_at(struct exact *exact, uint32_t from)
{
    const struct tarn_net *net = &exact->net;
    const struct node now = exact->nodes[from];
    bool blocked = false;
    for (uint32_t f = net->first[now.place]; f < net->first[now.place + 1]; f++) {
        if (net->forms[f].reads & ~now.set) continue;
        blocked = run_both(exact, from, f) || blocked;
    }
    for (uint32_t f = net->again; f < net->count; f++) {
        if (may_run_again(exact, &now, &net->forms[f]))
            blocked = run_both(exact, from, f) || blocked;
    }
    for (uint32_t i = 0; i < net->results_count && blocked; i++) {
        if (now.set >> i & 1)
            reach(exact, (struct node){.key = now.key,
                                       .place = now.place,
                                       .set = now.set & ~(1u << i),
                                       .parent = from,
                                       .move = DROPS + i});
    }
}

static bool may_go_on(struct exact *exact)
{
    if (exact->looked_at++ % STEPS_EACH == 0 && !tarn_steps_next(&exact->steps, exact->budget))
        exact->ended = true;
    if (exact->looked_at > exact->states_max) exact->ended = true;
    return !exact->ended;
}

/* The node at the end of the best path, or TARN_NONE: there is none, or the search was ended. */
static uint32_t solve(struct exact *exact)
{
    memset(exact->table, 0, TABLE_SIZE * sizeof *exact->table);
    exact->nodes_count = 0;
    exact->heap_count = 0;
    reach(exact, (struct node){.parent = TARN_NONE});
    while (exact->heap_count > 0 && may_go_on(exact)) {
        uint32_t node = pop(exact);
        if (exact->nodes[node].done) continue;
        exact->nodes[node].done = true;
        if (exact->nodes[node].place == exact->net.model->ops_count) return node;
        look_at(exact, node);
    }
    return TARN_NONE;
}

/* ---- The script ---- */

static void add_step(struct tarn_script *script, uint32_t what, bool drops)
{
    script->steps[script->count++] = (struct tarn_script_step){what, drops};
}

static enum tarn_status write_script(struct exact *exact, uint32_t end, struct tarn_region *region,
                                     struct tarn_script *script)
{
    const struct tarn_net *net = &exact->net;
    uint32_t count = 0, v = end;
    script->budget = exact->budget;
    for (; v != TARN_NONE; v = exact->nodes[v].parent) count++;
    uint32_t *path = tarn_region_take(&exact->region, count, sizeof *path);
    script->steps = tarn_region_take(region, 2 * (size_t)count, sizeof *script->steps);
    if (!path || !script->steps) return TARN_SYSTEM;
    for (uint32_t i = count; i-- > 0; end = exact->nodes[end].parent) path[i] = end;
    for (uint32_t i = 1; i < count; i++) {
        const struct node *node = &exact->nodes[path[i]];
        if (node->move >= DROPS) {
            add_step(script, net->result_version[node->move - DROPS], true);
            continue;
        }
        add_step(script, net->forms[node->move].form, false);
        if (node->over) add_step(script, net->result_version[net->forms[node->move].over], true);
    }
    return TARN_OK;
}

/* ---- The whole ---- */

static void fill_sizes(struct exact *exact)
{
    for (uint32_t half = 0; half < 2; half++) {
        for (uint32_t set = 1; set < 1 << HALF; set++) {
            uint32_t low = 0;
            while (!(set >> low & 1)) low++;
            uint32_t result = low + half * HALF;
            exact->sizes[half][set] =
                exact->sizes[half][set & (set - 1)] +
                (result < exact->net.results_count ? exact->net.size[result] : 0);
        }
    }
}

static void find_fastest(struct exact *exact)
{
    const struct tarn_net *net = &exact->net;
    for (uint32_t place = 0; place < net->model->ops_count; place++) {
        exact->fastest[place] = UINT64_MAX;
        for (uint32_t f = net->first[place]; f < net->first[place + 1]; f++) {
            struct tarn_range choices = net->model->forms[net->forms[f].form].choices;
            uint64_t time_ns = net->model->choices[choices.begin].time_ns;
            if (time_ns < exact->fastest[place]) exact->fastest[place] = time_ns;
        }
    }
}

static bool make_room(struct exact *exact)
{
    struct tarn_region *region = &exact->region;
    exact->fastest = tarn_region_take(region, exact->net.model->ops_count, sizeof *exact->fastest);
    exact->nodes = tarn_region_take(region, TABLE_SIZE / 2, sizeof *exact->nodes);
    exact->table = tarn_region_take(region, TABLE_SIZE, sizeof *exact->table);
    return !region->is_exhausted;
}

static enum tarn_status run(struct exact *exact, struct tarn_region *region,
                            struct tarn_script *script)
{
    if (!make_room(exact)) return TARN_SYSTEM;
    fill_sizes(exact);
    find_fastest(exact);
    uint32_t end = solve(exact);
    if (end == TARN_NONE && !exact->ended) {
        exact->by_bytes = true;
        end = solve(exact);
        if (end != TARN_NONE) {
            exact->budget = exact->nodes[end].key;
            exact->by_bytes = false;
            end = solve(exact);
        }
    }
    if (exact->no_memory) return TARN_SYSTEM;
    return end == TARN_NONE ? TARN_OK : write_script(exact, end, region, script);
}

enum tarn_status tarn_budget_exact(const struct tarn_recompute_model *model, uint64_t budget,
                                   const struct tarn_budget_limits *limits,
                                   struct tarn_region *region, struct tarn_script *script,
                                   uint64_t *evaluations)
{
    bool fits;
    *script = (struct tarn_script){0};
    if (limits->classes && !(limits->classes & TARN_BUDGET_RECOMPUTE)) return TARN_OK;
    struct tarn_region own = {.chunks = NULL};
    struct exact *exact = tarn_region_take(&own, 1, sizeof *exact);
    if (!exact) return TARN_SYSTEM;
    exact->budget = budget;
    exact->states_max =
        limits->steps > 0 && limits->steps < STATES_MAX ? limits->steps : STATES_MAX;
    exact->steps = (struct tarn_steps){limits->control, "budget", 0, limits->deadline_ms};
    enum tarn_status status = tarn_net_init(&exact->net, &exact->region, model, &fits);
    if (status == TARN_OK && fits) status = run(exact, region, script);
    *evaluations += exact->looked_at;
    if (status != TARN_OK) *script = (struct tarn_script){0};
    tarn_region_finish(&exact->region);
    tarn_region_finish(&own);
    return status;
}
