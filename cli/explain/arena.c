/* Explains why the arena is as large as it is. The certificate's storages can all be in use at
 * once, so no plan is below their sum; all bytes of a footprint above the sum are holes at that
 * moment. Cost: two schedules, and sorting the holders. */
#include <stdlib.h>
#include <string.h>

#include "../model/schedule.h"
#include "explain.h"

#define SHOWN_MAX 8u

/* ---- Sums by a word ---- */

struct sum {
    const char *word;
    uint64_t bytes;
    uint32_t count;
};

static int compare_words(const void *left, const void *right)
{
    return strcmp(((const struct sum *)left)->word, ((const struct sum *)right)->word);
}

static int compare_sums(const void *left, const void *right)
{
    const struct sum *a = left, *b = right;
    if (a->bytes != b->bytes) return a->bytes > b->bytes ? -1 : 1;
    return strcmp(a->word, b->word);
}

/* Adds up equal words, and prints the largest sums. */
static void print_sums(struct tarn_printer *printer, const char *key, const char *word_key,
                       struct sum *sums, size_t count)
{
    size_t sum = 0;
    qsort(sums, count, sizeof *sums, compare_words);
    for (size_t i = 1; i < count; i++) {
        if (strcmp(sums[i].word, sums[sum].word) == 0) {
            sums[sum].bytes += sums[i].bytes;
            sums[sum].count += sums[i].count;
        } else {
            sums[++sum] = sums[i];
        }
    }
    if (count > 0) sum++;
    qsort(sums, sum, sizeof *sums, compare_sums);
    tarn_printer_open_list(printer, key);
    for (size_t i = 0; i < sum && (printer->json || i < SHOWN_MAX); i++) {
        tarn_printer_open_row(printer, key);
        tarn_printer_text(printer, word_key, sums[i].word);
        tarn_printer_count(printer, "storages", sums[i].count);
        tarn_printer_bytes(printer, "bytes", sums[i].bytes);
        tarn_printer_close(printer);
    }
    tarn_printer_close_list(printer);
}

/* ---- The certificate ---- */

static const char *word_of(const struct tarn_model *model, const struct tarn_holder *holder,
                           bool by_stream)
{
    const struct tarn_launch *writer = &model->launches[holder->writer];
    struct tarn_op_info info;
    if (by_stream) return tarn_graph_stream_name(model->graph, writer->stream);
    tarn_graph_op(model->graph, writer->op, &info);
    return holder->kind == TARN_HOLDS_WORKSPACE ? "workspace" : info.kind;
}

static bool print_certificate(struct tarn_printer *printer, const struct tarn_model *model)
{
    bool done = false;
    struct sum *sums = calloc(model->holders_count + 1, sizeof *sums);
    for (int by_stream = 0; sums && by_stream < 2; by_stream++) {
        uint64_t bytes = 0;
        size_t count = 0;
        for (uint32_t h = 0; h < model->holders_count; h++) {
            const struct tarn_holder *holder = &model->holders[h];
            if (!holder->certified) continue;
            uint64_t reserved = tarn_holder_reserved(holder);
            sums[count++] = (struct sum){word_of(model, holder, by_stream), reserved, 1};
            bytes += reserved;
        }
        if (!by_stream) {
            tarn_printer_open(printer, "certificate", '{');
            tarn_printer_count(printer, "storages", count);
            tarn_printer_bytes(printer, "reserved_bytes", bytes);
            tarn_printer_close(printer);
        }
        print_sums(printer, by_stream ? "by_stream" : "by_kind", by_stream ? "stream" : "kind",
                   sums, count);
        done = true;
    }
    free(sums);
    return done;
}

struct sized {
    uint32_t holder;
    uint64_t size;
};

static int compare_sizes(const void *left, const void *right)
{
    const struct sized *a = left, *b = right;
    if (a->size != b->size) return a->size > b->size ? -1 : 1;
    return a->holder < b->holder ? -1 : a->holder > b->holder;
}

static bool print_largest(struct tarn_printer *printer, const struct tarn_model *model)
{
    struct sized *sizes = calloc((size_t)model->holders_count + 1, sizeof *sizes);
    size_t count = 0;
    if (!sizes) return false;
    for (uint32_t h = 0; h < model->holders_count; h++)
        if (model->holders[h].certified) sizes[count++] = (struct sized){h, model->holders[h].size};
    qsort(sizes, count, sizeof *sizes, compare_sizes);
    tarn_printer_open_list(printer, "largest");
    for (size_t i = 0; i < count && i < SHOWN_MAX; i++) {
        tarn_printer_open_row(printer, "largest");
        tarn_explain_print_holder(printer, model, sizes[i].holder);
        tarn_printer_bytes(printer, "size_bytes", sizes[i].size);
        tarn_printer_close(printer);
    }
    tarn_printer_close_list(printer);
    free(sizes);
    return true;
}

/* ---- Holes ---- */

struct range {
    uint64_t begin, end;
};

static int compare_ranges(const void *left, const void *right)
{
    const struct range *a = left, *b = right;
    return a->begin < b->begin ? -1 : a->begin > b->begin;
}

static uint32_t space_at(const struct tarn_model *model, uint64_t offset)
{
    uint32_t s = 0;
    while (s + 1 < model->spaces_count && model->spaces[s + 1].begin <= offset) s++;
    return s;
}

/* Of the arena at a moment of a schedule; a hole ends with its memory space. */
static void print_holes(struct tarn_printer *printer, const struct tarn_model *model,
                        const struct tarn_model_span *spans, double moment, struct range *ranges)
{
    size_t count = 0, holes = 0;
    uint64_t at = 0, free_bytes = 0;
    struct range largest = {0, 0};
    for (uint32_t h = 0; h < model->holders_count; h++) {
        const struct tarn_holder *holder = &model->holders[h];
        if (spans[h].begin > moment || spans[h].free <= moment) continue;
        ranges[count++] =
            (struct range){holder->offset, holder->offset + tarn_holder_reserved(holder)};
    }
    for (uint32_t s = 0; s < model->spaces_count; s++) {
        uint64_t end = model->spaces[s].begin + model->spaces[s].footprint;
        ranges[count++] = (struct range){end, end};
    }
    qsort(ranges, count, sizeof *ranges, compare_ranges);
    for (size_t i = 0; i < count; i++) {
        if (ranges[i].begin > at) {
            holes++;
            free_bytes += ranges[i].begin - at;
            if (ranges[i].begin - at > largest.end - largest.begin)
                largest = (struct range){at, ranges[i].begin};
        }
        if (ranges[i].end > at) at = ranges[i].end;
    }
    tarn_printer_open(printer, "holes", '{');
    tarn_printer_count(printer, "count", holes);
    tarn_printer_bytes(printer, "free_bytes", free_bytes);
    uint32_t space = space_at(model, largest.begin);
    if (model->spaces_count > 1)
        tarn_printer_text(printer, "largest_space", model->spaces[space].name);
    tarn_printer_bytes(printer, "largest_offset_bytes", largest.begin - model->spaces[space].begin);
    tarn_printer_bytes(printer, "largest_bytes", largest.end - largest.begin);
    tarn_printer_close(printer);
}

/* The moment of most bytes taken. */
static double peak_moment(const struct tarn_memory_level *levels, size_t count)
{
    size_t best = 0;
    for (size_t i = 1; i < count; i++)
        if (levels[i].taken > levels[best].taken) best = i;
    return count > 0 ? levels[best].at : 0;
}

static bool find_holes(struct tarn_printer *printer, const struct tarn_model *model)
{
    struct tarn_model_schedule schedule;
    struct tarn_memory memory = {0};
    bool by_cut = tarn_schedule_init(&schedule, model, TARN_AXIS_CUT, NULL);
    if (!by_cut) tarn_schedule_init(&schedule, model, TARN_AXIS_ORDER, NULL);
    size_t count = 0;
    struct tarn_model_span *spans = tarn_memory_take(&memory, model->holders_count, sizeof *spans);
    struct range *ranges =
        tarn_memory_take(&memory, model->holders_count + model->spaces_count, sizeof *ranges);
    bool done = spans && ranges && tarn_schedule_spans(&schedule, model, spans);
    const struct tarn_memory_level *levels =
        done ? tarn_schedule_levels(&memory, model, spans, TARN_NONE, &count) : NULL;
    if (levels)
        print_holes(printer, model, spans,
                    by_cut ? (double)schedule.mark_begin : peak_moment(levels, count), ranges);
    tarn_schedule_finish(&schedule);
    tarn_memory_finish(&memory);
    return levels != NULL;
}

/* ---- Holders that stay held after their last use ---- */

struct held {
    uint32_t holder;
    uint64_t time; /* from the end of its last use until some launch may have its bytes */
    double weight; /* bytes times time */
};

static int compare_held(const void *left, const void *right)
{
    const struct held *a = left, *b = right;
    if (a->weight != b->weight) return a->weight > b->weight ? -1 : 1;
    return a->holder < b->holder ? -1 : a->holder > b->holder;
}

/* The last use in every stream. */
static void print_last_uses(struct tarn_printer *printer, const struct tarn_model *model,
                            const struct tarn_holder *holder)
{
    tarn_printer_open(printer, "last_uses", '[');
    for (tarn_stream s = 0; s < model->streams_count; s++) {
        uint32_t last = TARN_NONE;
        for (uint32_t i = 0; i < holder->touches_count; i++)
            if (model->launches[holder->touches[i].launch].stream == s)
                last = holder->touches[i].launch;
        if (last == TARN_NONE) continue;
        tarn_printer_open(printer, NULL, '{');
        tarn_explain_print_launch(printer, model, last);
        tarn_printer_close(printer);
    }
    tarn_printer_close(printer);
}

static bool print_held(struct tarn_printer *printer, const struct tarn_model *model)
{
    struct tarn_model_schedule schedule;
    struct tarn_memory memory = {0};
    size_t count = 0;
    bool is_timed = tarn_schedule_init(&schedule, model, TARN_AXIS_TIME, NULL);
    struct tarn_model_span *spans = tarn_memory_take(&memory, model->holders_count, sizeof *spans);
    struct held *held = tarn_memory_take(&memory, model->holders_count, sizeof *held);
    bool done = is_timed && spans && held && tarn_schedule_spans(&schedule, model, spans);
    for (uint32_t h = 0; done && h < model->holders_count; h++) {
        const struct tarn_holder *holder = &model->holders[h];
        if (holder->pinned || spans[h].free <= spans[h].end) continue;
        uint64_t time = (uint64_t)(spans[h].free - spans[h].end);
        held[count++] = (struct held){h, time, (double)time * (double)tarn_holder_reserved(holder)};
    }
    if (done) qsort(held, count, sizeof *held, compare_held);
    if (done) tarn_printer_open_list(printer, "held");
    for (size_t i = 0; done && i < count && i < SHOWN_MAX; i++) {
        tarn_printer_open_row(printer, "held");
        tarn_explain_print_holder(printer, model, held[i].holder);
        tarn_printer_bytes(printer, "size_bytes", model->holders[held[i].holder].size);
        tarn_printer_count(printer, schedule.is_time ? "held_ns" : "held_steps", held[i].time);
        print_last_uses(printer, model, &model->holders[held[i].holder]);
        tarn_printer_close(printer);
    }
    if (done) tarn_printer_close_list(printer);
    tarn_schedule_finish(&schedule);
    tarn_memory_finish(&memory);
    return done;
}

bool tarn_explain_arena(struct tarn_printer *printer, const struct tarn_model *model)
{
    const struct tarn_plan_summary *made = &model->summary;
    tarn_printer_bytes(printer, "footprint_bytes", made->footprint);
    tarn_printer_bytes_or_null(printer, "bound_bytes", made->bound);
    tarn_printer_real(printer, "gap_percent", tarn_gap_percent(made->footprint, made->bound));
    tarn_printer_boolean(printer, "optimal", made->optimal);
    tarn_spaces_print(printer, model->plan);
    if (model->has_certificate &&
        (!print_certificate(printer, model) || !print_largest(printer, model)))
        return false;
    return find_holes(printer, model) && print_held(printer, model);
}
