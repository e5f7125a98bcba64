/* Builds the net of a small graph for exact search. Results are the versions that are written by
 * forward ops and not pinned. Every other version lives until its last reader, whatever is decided;
 * it takes the bytes of the version that it overwrites if its op is that version's last reader. An
 * op may run again while the persistent storages that it reads are unchanged; of its new versions
 * only droppable ones are read. Cost: forms × results. */
#include "net.h"

#include <assert.h>
#include <string.h>

struct netting {
    struct tarn_net *net;
    uint32_t *result_of; /* version -> result, or TARN_NONE */
    uint32_t *place_of;  /* op -> place */
    uint32_t *last;      /* version that is no result -> place of its last reader */
    uint32_t *updates;   /* persistent storage -> writes so far */
    bool fits;
};

static bool is_pinned(const struct netting *netting, uint32_t version)
{
    const struct tarn_recompute_model *model = netting->net->model;
    return model->graph->storages[model->versions[version].storage].pinned;
}

static void find_results(struct netting *netting)
{
    struct tarn_net *net = netting->net;
    const struct tarn_recompute_model *model = net->model;
    for (uint32_t i = 0; i < model->ops_count; i++) netting->place_of[model->order[i]] = i;
    for (uint32_t w = 0; w < model->versions_count; w++) {
        const struct tarn_version *version = &model->versions[w];
        netting->result_of[w] = TARN_NONE;
        netting->last[w] = netting->place_of[version->producer];
        if (!model->is_forward[netting->last[w]] || is_pinned(netting, w)) continue;
        if (net->results_count == TARN_NET_RESULTS_MAX) {
            netting->fits = false;
            return;
        }
        net->size[net->results_count] = version->size;
        net->result_version[net->results_count] = w;
        netting->result_of[w] = net->results_count++;
    }
}

/* ---- Forms ---- */

static void read_writes(struct netting *netting, const struct tarn_form *form, bool again,
                        struct tarn_net_form *made)
{
    const struct tarn_recompute_model *model = netting->net->model;
    for (uint32_t i = form->writes.begin; i < form->writes.end; i++) {
        uint32_t w = model->writes[i], result = netting->result_of[w];
        const struct tarn_version *version = &model->versions[w];
        if (result != TARN_NONE && (!again || version->droppable))
            made->writes |= 1u << result;
        else
            made->aside += version->copy_size;
        if (version->previous == TARN_NONE || netting->result_of[version->previous] == TARN_NONE)
            continue;
        if (made->over != TARN_NONE) netting->fits = false;
        made->over = netting->result_of[version->previous];
        made->over_size = version->size;
        made->forced = version->forced;
    }
}

static struct tarn_net_form read_form(struct netting *netting, uint32_t f, bool again)
{
    const struct tarn_recompute_model *model = netting->net->model;
    const struct tarn_form *form = &model->forms[f];
    struct tarn_net_form made = {.form = f, .over = TARN_NONE};
    for (uint32_t i = form->reads.begin; i < form->reads.end; i++) {
        uint32_t result = netting->result_of[model->reads[i]];
        if (result != TARN_NONE) made.reads |= 1u << result;
    }
    read_writes(netting, form, again, &made);
    return made;
}

/* Does the form read, of versions that are no results, only those that the op reads as written? */
static bool reads_no_more(const struct netting *netting, const struct tarn_form *form,
                          const struct tarn_form *own)
{
    const struct tarn_recompute_model *model = netting->net->model;
    for (uint32_t i = form->reads.begin; i < form->reads.end; i++) {
        uint32_t k = own->reads.begin;
        if (netting->result_of[model->reads[i]] != TARN_NONE) continue;
        while (k < own->reads.end && model->reads[k] != model->reads[i]) k++;
        if (k == own->reads.end) return false;
    }
    return true;
}

static void add_primary_forms(struct netting *netting, uint32_t place)
{
    struct tarn_net *net = netting->net;
    const struct tarn_recompute_model *model = net->model;
    struct tarn_range range = model->op_forms[model->order[place]];
    net->first[place] = net->count;
    for (uint32_t f = range.begin; f < range.end; f++) {
        const struct tarn_form *form = &model->forms[f];
        if (form->splits ||
            (form->whole && !reads_no_more(netting, form, &model->forms[range.begin])))
            netting->fits = false;
        if (form->whole) net->forms[net->count++] = read_form(netting, f, false);
    }
}

/* Finds the places from its op to the first place at which a state that it reads has changed. */
static void find_range(struct netting *netting, struct tarn_net_form *made)
{
    const struct tarn_recompute_model *model = netting->net->model;
    const struct tarn_form *form = &model->forms[made->form];
    made->begin = netting->place_of[form->op] + 1;
    made->end = 0;
    memset(netting->updates, 0, model->graph->storages_count * sizeof *netting->updates);
    for (uint32_t place = 0; place < model->ops_count; place++) {
        const struct tarn_graph_op *op = &model->graph->ops[model->order[place]];
        bool holds = true;
        for (uint32_t i = form->states.begin; i < form->states.end; i++)
            holds = holds && netting->updates[model->states[i].storage] == model->states[i].updates;
        if (place >= made->begin && !holds) return;
        made->end = place + 1;
        for (uint32_t k = 0; k < op->outputs_count; k++)
            netting->updates[model->graph->tensors[tarn_outputs(op)[k]].storage]++;
    }
}

static void add_forms_again(struct netting *netting)
{
    struct tarn_net *net = netting->net;
    const struct tarn_recompute_model *model = net->model;
    net->again = net->count;
    for (uint32_t place = 0; place < model->ops_count && netting->fits; place++) {
        if (!model->is_forward[place]) continue;
        struct tarn_range range = model->op_forms[model->order[place]];
        for (uint32_t f = range.begin; f < range.end; f++) {
            if (!model->forms[f].repeats) continue;
            struct tarn_net_form made = read_form(netting, f, true);
            find_range(netting, &made);
            if (made.writes != 0) net->forms[net->count++] = made;
        }
    }
}

/* ---- Versions that are no results ---- */

static void find_last_readers(struct netting *netting)
{
    const struct tarn_recompute_model *model = netting->net->model;
    for (uint32_t place = 0; place < model->ops_count; place++) {
        const struct tarn_form *own = &model->forms[model->op_forms[model->order[place]].begin];
        for (uint32_t i = own->reads.begin; i < own->reads.end; i++)
            netting->last[model->reads[i]] = place;
    }
    for (uint32_t w = 0; w < model->versions_count; w++)
        if (is_pinned(netting, w)) netting->last[w] = model->ops_count - 1;
}

/* Adds bytes while the places from `begin` to `end` run, and between them. Numbers wrap, and wrap
 * back in the sum. */
static void add_bytes(struct tarn_net *net, uint32_t begin, uint32_t end, uint64_t bytes)
{
    assert(begin <= end && end < net->model->ops_count);
    for (uint32_t place = begin; place <= end; place++) {
        net->during[place] += bytes;
        if (place > begin) net->between[place] += bytes;
    }
}

static void sum_bytes(struct netting *netting)
{
    const struct tarn_recompute_model *model = netting->net->model;
    for (uint32_t w = 0; w < model->versions_count; w++) {
        const struct tarn_version *version = &model->versions[w];
        uint32_t begin = netting->place_of[version->producer], over = version->previous;
        if (netting->result_of[w] != TARN_NONE) continue;
        add_bytes(netting->net, begin, netting->last[w], version->size);
        bool is_over = over != TARN_NONE && netting->result_of[over] == TARN_NONE &&
                       (version->forced || netting->last[over] == begin);
        if (is_over) add_bytes(netting->net, begin, netting->last[over], -version->size);
    }
}

static void find_wanted(struct tarn_net *net)
{
    const struct tarn_recompute_model *model = net->model;
    net->wanted[model->ops_count] = 0;
    for (uint32_t place = model->ops_count; place-- > 0;) {
        uint32_t wanted = net->wanted[place + 1];
        for (uint32_t i = net->first[place]; i < net->first[place + 1]; i++)
            wanted |= net->forms[i].reads;
        for (uint32_t i = net->count; i-- > net->again;) /* an op's inputs are made before it */
            if (net->forms[i].writes & wanted && place < net->forms[i].end)
                wanted |= net->forms[i].reads;
        net->wanted[place] = wanted;
    }
}

/* ---- The net ---- */

static void make_room(struct tarn_net *net, struct tarn_region *region)
{
    const struct tarn_recompute_model *model = net->model;
    size_t places = (size_t)model->ops_count + 2;
    net->forms = tarn_region_take(region, 2 * (size_t)model->forms_count, sizeof *net->forms);
    net->first = tarn_region_take(region, places, sizeof *net->first);
    net->between = tarn_region_take(region, places, sizeof *net->between);
    net->during = tarn_region_take(region, places, sizeof *net->during);
    net->wanted = tarn_region_take(region, places, sizeof *net->wanted);
}

static void make_temporary_room(struct netting *netting, struct tarn_region *region)
{
    const struct tarn_recompute_model *model = netting->net->model;
    size_t versions = model->versions_count, ops = model->graph->ops_count;
    netting->result_of = tarn_region_take(region, versions, sizeof *netting->result_of);
    netting->last = tarn_region_take(region, versions, sizeof *netting->last);
    netting->place_of = tarn_region_take(region, ops, sizeof *netting->place_of);
    netting->updates =
        tarn_region_take(region, model->graph->storages_count, sizeof *netting->updates);
}

static void read_model(struct netting *netting)
{
    struct tarn_net *net = netting->net;
    find_results(netting);
    if (!netting->fits) return;
    for (uint32_t place = 0; place < net->model->ops_count; place++)
        add_primary_forms(netting, place);
    net->first[net->model->ops_count] = net->count;
    add_forms_again(netting);
    assert(net->again <= net->count && net->count <= 2 * net->model->forms_count);
    find_last_readers(netting);
    sum_bytes(netting);
    if (netting->fits) find_wanted(net);
}

enum tarn_status tarn_net_init(struct tarn_net *net, struct tarn_region *region,
                               const struct tarn_recompute_model *model, bool *fits)
{
    *net = (struct tarn_net){.model = model};
    struct netting netting = {.net = net, .fits = model->graph->streams_count == 1};
    *fits = netting.fits;
    if (!netting.fits) return TARN_OK;
    make_room(net, region);
    struct tarn_region_mark mark = tarn_region_mark(region);
    make_temporary_room(&netting, region);
    if (!region->is_exhausted) read_model(&netting);
    *fits = netting.fits;
    tarn_region_release(region, mark);
    return region->is_exhausted ? TARN_SYSTEM : TARN_OK;
}
