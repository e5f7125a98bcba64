/* Reads and writes linear orders: `tarn.order` version 1, one [op, iteration] per line. Reading
 * also takes a bare list of op ids, all of iteration 0. It does not check whether an order is
 * legal; its user does. Cost: linear. */
#include "json_read.h"
#include "streams/base/array.h"
#include "streams/base/memory.h"
#include "streams/text/json_write.h"
#include "streams/text/text_file.h"
#include "tarn/plan.h"

/* ---- Writing ---- */

struct order {
    const struct tarn_step *steps;
    size_t count;
};

static void print_order(const void *subject, FILE *file)
{
    const struct order *order = subject;
    fputs("{\"format\":\"tarn.order\",\"version\":1,\n\"order\":[", file);
    for (size_t i = 0; i < order->count; i++) {
        const uint32_t step[] = {order->steps[i].op, order->steps[i].iteration};
        fputs(i > 0 ? ",\n" : "\n", file);
        tarn_json_write(file, tarn_json_list(step, 2));
    }
    fputs(order->count > 0 ? "\n]}\n" : "]}\n", file);
}

enum tarn_status tarn_order_save(const struct tarn_step *steps, size_t count, const char *path,
                                 struct tarn_error *error)
{
    if (!path || (!steps && count > 0)) return tarn_error_null(error, __func__);
    struct order order = {steps, count};
    tarn_error_clear(error);
    return tarn_text_save(path, print_order, &order, error);
}

/* ---- Reading ---- */

static enum tarn_status read_pair(const struct tarn_json_at *at, struct tarn_step *step)
{
    size_t count = 0;
    enum tarn_status status = tarn_json_array(at, &count);
    if (status == TARN_OK && count != 2)
        return tarn_json_bad(at, "must be [op, iteration], not a list of %zu", count);
    struct tarn_json_at item = tarn_json_items(at);
    while (tarn_json_next(&item, &status))
        status = tarn_json_id(&item, item.index == 0 ? &step->op : &step->iteration);
    return status;
}

/* bare: a list of op ids instead of pairs. */
static enum tarn_status read_steps(const struct tarn_json_at *at, bool bare,
                                   struct tarn_step **steps, size_t *count)
{
    enum tarn_status status = tarn_json_array(at, count);
    if (status != TARN_OK) return status;
    *steps = tarn_take_zeros(*count + 1, sizeof **steps);
    if (!*steps) return tarn_error_no_memory(at->report->error);
    struct tarn_json_at item = tarn_json_items(at);
    while (tarn_json_next(&item, &status))
        status = bare ? tarn_json_id(&item, &(*steps)[item.index].op)
                      : read_pair(&item, &(*steps)[item.index]);
    return status;
}

static enum tarn_status read_document(const struct tarn_json_at *document, struct tarn_step **steps,
                                      size_t *count)
{
    static const struct tarn_json_field names[] = {
        {"format", true}, {"version", true}, {"order", true}};
    struct tarn_json_at fields[TARN_COUNT_OF(names)];
    enum tarn_status status = tarn_json_check_format(document, "tarn.order");
    if (status == TARN_OK) status = tarn_json_fields(document, names, TARN_COUNT_OF(names), fields);
    if (status == TARN_OK) status = read_steps(&fields[2], false, steps, count);
    return status;
}

enum tarn_status tarn_order_load(const char *path, struct tarn_step **steps, size_t *count,
                                 struct tarn_error *error)
{
    if (steps) *steps = NULL;
    if (count) *count = 0;
    if (!path || !steps || !count) return tarn_error_null(error, __func__);
    struct tarn_report report = {.error = error, .text_max = TARN_TEXT_MAX};
    struct tarn_json_at document;
    char *text = NULL;
    tarn_error_clear(error);
    enum tarn_status status =
        tarn_json_load(&report, &(struct tarn_reader){.name = path}, &text, &document);
    if (status == TARN_OK)
        status = tarn_json_is_array(&document) ? read_steps(&document, true, steps, count)
                                               : read_document(&document, steps, count);
    tarn_json_close(&document, text);
    if (status != TARN_OK) {
        tarn_free(*steps);
        *steps = NULL;
        *count = 0;
    }
    return status;
}
