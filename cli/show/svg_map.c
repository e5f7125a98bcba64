/* Draws the map: one path for each kind and shade. Storages of less than a pixel's height are
 * merged along their half row if they touch each other or are a grain apart. So the file's size is
 * bounded by the picture's size, not by the plan's. Cost: O(n log n) for n holders. */
#include <stdlib.h>

#include "svg.h"
#include "words.h"

enum { LABELS_MAX = 40, LABEL_HEIGHT = 28, LABEL_WIDTH = 92, LETTER_WIDTH = 13 };

struct rectangle {
    int x, y, width, height;
};

struct item {
    struct rectangle alive, held;
    uint64_t offset;
    uint32_t holder;
    int class; /* 2 * kind + (1: pale) */
};

/* By class, then row, then from left to right. */
static int compare_items(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    if (x->class != y->class) return x->class - y->class;
    if (x->alive.y != y->alive.y) return x->alive.y - y->alive.y;
    if (x->alive.height != y->alive.height) return x->alive.height - y->alive.height;
    if (x->alive.x != y->alive.x) return x->alive.x - y->alive.x;
    return (x->holder > y->holder) - (x->holder < y->holder);
}

static int at_least(int number, int least) { return number > least ? number : least; }

static struct item make_item(const struct tarn_svg *svg, uint32_t h)
{
    const struct tarn_holder *holder = &svg->picture->model.holders[h];
    const struct tarn_model_span *span = &svg->picture->spans[h];
    bool is_pale = tarn_svg_is_pale(svg, holder);
    int y = tarn_svg_y(&svg->map, holder->offset + holder->size);
    int height = at_least(tarn_svg_y(&svg->map, holder->offset) - y, 1);
    int begin = tarn_svg_x(svg, span->begin), end = tarn_svg_x(svg, span->end);
    int width = at_least(end - begin, 1);
    return (struct item){
        .alive = {begin, y, width, height},
        .held = {begin + width, y, tarn_svg_x(svg, span->free) - begin - width, height},
        .offset = holder->offset,
        .holder = h,
        .class = 2 * (int)holder->kind + is_pale};
}

/* ---- Paths ---- */

/* A path of rectangles, each relative to the one before. */
struct path {
    struct tarn_svg *svg;
    int x, y;
    bool is_open;
};

static void path_open(struct path *path, const char *class, const char *attributes)
{
    if (path->is_open) return;
    fprintf(path->svg->file, "<path class=\"%s\"%s d=\"M0 0", class, attributes);
    path->is_open = true;
    path->x = path->y = 0;
}

static void path_add(struct path *path, struct rectangle r)
{
    fprintf(path->svg->file, "m%d %dh%dv%dh%dz", r.x - path->x, r.y - path->y, r.width, r.height,
            -r.width);
    path->x = r.x;
    path->y = r.y;
}

static void path_close(struct path *path)
{
    if (path->is_open) fputs("\"/>\n", path->svg->file);
    path->is_open = false;
}

/* Leaves a thin line between large rectangles. */
static struct rectangle apart(struct rectangle r)
{
    if (r.width > 6) r.width--;
    if (r.height > 6) r.height--;
    return r;
}

static void draw_alive(struct tarn_svg *svg, const struct item *items, size_t count)
{
    struct path path = {.svg = svg};
    for (size_t i = 0; i < count; i++) {
        char class[16];
        struct rectangle r = items[i].alive;
        bool is_thin = r.height <= 1 + svg->grain / 2;
        if (i == 0 || items[i].class != items[i - 1].class) path_close(&path);
        snprintf(class, sizeof class, "k%d", items[i].class / 2);
        path_open(&path, class, items[i].class % 2 ? " opacity=\".45\"" : "");
        for (; is_thin && i + 1 < count; i++) { /* along the row */
            const struct rectangle *next = &items[i + 1].alive;
            bool joins = items[i + 1].class == items[i].class && next->y == r.y &&
                         next->height == r.height && next->x <= r.x + r.width + svg->grain - 1;
            if (!joins) break;
            r.width = at_least(next->x + next->width - r.x, r.width);
            svg->merged++;
        }
        path_add(&path, is_thin ? r : apart(r));
    }
    path_close(&path);
}

static void draw_held(struct tarn_svg *svg, const struct item *items, size_t count)
{
    struct path path = {.svg = svg};
    for (size_t i = 0; i < count; i++) {
        char class[16];
        if (i == 0 || items[i].class / 2 != items[i - 1].class / 2) path_close(&path);
        if (items[i].held.width <= svg->grain || items[i].held.height <= svg->grain) continue;
        snprintf(class, sizeof class, "h%d", items[i].class / 2);
        path_open(&path, class, "");
        path_add(&path, apart(items[i].held));
    }
    path_close(&path);
}

/* ---- Outlines ---- */

static void draw_certificate(struct tarn_svg *svg, const struct item *items, size_t count)
{
    struct path path = {.svg = svg};
    for (size_t i = 0; i < count; i++) {
        struct rectangle r = items[i].alive;
        if (!svg->picture->model.holders[items[i].holder].certified) continue;
        if (r.height <= 5 * svg->grain || r.width <= 5 * svg->grain) continue;
        path_open(&path, "i", " stroke-width=\"1.4\"");
        path_add(&path, (struct rectangle){r.x + 1, r.y + 1, r.width - 2, r.height - 2});
    }
    path_close(&path);
}

/* Up the right ends of a group's members, down the left ones: they lie back to back. */
static void draw_group(struct tarn_svg *svg, const struct item *members, size_t count)
{
    int y = members[0].alive.y + members[0].alive.height;
    fprintf(svg->file, "<path class=\"g\" stroke-width=\"3\" d=\"M%d %d",
            members[0].alive.x + members[0].alive.width, y);
    for (size_t i = 0; i < count; i++) {
        const struct rectangle *r = &members[i].alive;
        if (r->y == y && i + 1 < count) continue; /* no higher than a line */
        fprintf(svg->file, "H%dV%d", r->x + r->width, r->y);
        y = r->y;
    }
    y = -1;
    for (size_t i = count; i-- > 0;) {
        const struct rectangle *r = &members[i].alive;
        if (r->y + r->height == y && i > 0) continue;
        y = r->y + r->height;
        fprintf(svg->file, "H%dV%d", r->x, y);
    }
    fputs("z\"/>\n", svg->file);
}

/* By group, then by address. */
static int compare_members(const void *a, const void *b)
{
    const struct item *x = a, *y = b; /* `class` is the group here */
    if (x->class != y->class) return x->class - y->class;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

static bool draw_groups(struct tarn_svg *svg, const struct item *items, size_t count)
{
    struct item *members = calloc(count + 1, sizeof *members);
    size_t members_count = 0;
    if (!members) return false;
    for (size_t i = 0; i < count; i++) {
        uint32_t group = svg->picture->model.holders[items[i].holder].group;
        if (group == TARN_NONE) continue;
        members[members_count] = items[i];
        members[members_count++].class = (int)group;
    }
    qsort(members, members_count, sizeof *members, compare_members);
    for (size_t i = 0, end; i < members_count; i = end) {
        for (end = i; end < members_count && members[end].class == members[i].class;) end++;
        draw_group(svg, members + i, end - i);
    }
    free(members);
    return true;
}

/* ---- Names ---- */

static int compare_areas(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    int64_t left = (int64_t)x->alive.width * x->alive.height;
    int64_t right = (int64_t)y->alive.width * y->alive.height;
    if (left != right) return left < right ? 1 : -1;
    return (x->holder > y->holder) - (x->holder < y->holder);
}

/* Sorts the items by area. */
static void draw_names(struct tarn_svg *svg, struct item *items, size_t count)
{
    qsort(items, count, sizeof *items, compare_areas);
    int labels = 0;
    fputs("<g font-size=\"24\">\n", svg->file);
    for (size_t i = 0; i < count && labels < LABELS_MAX; i++) {
        const struct tarn_holder *holder = &svg->picture->model.holders[items[i].holder];
        const struct rectangle *r = &items[i].alive;
        if (r->height < LABEL_HEIGHT || r->width < LABEL_WIDTH || items[i].class % 2) continue;
        fprintf(svg->file, "<text class=\"n%d\" x=\"%d\" y=\"%d\">", items[i].class / 2, r->x + 8,
                r->y + r->height / 2 + 8);
        tarn_write_name(svg->file, TARN_XML, holder->name, (size_t)(r->width - 12) / LETTER_WIDTH);
        fputs("</text>\n", svg->file);
        labels++;
    }
    fputs("</g>\n", svg->file);
}

bool tarn_svg_map(struct tarn_svg *svg)
{
    uint32_t count = svg->picture->model.holders_count;
    struct item *items = calloc((size_t)count + 1, sizeof *items);
    if (!items) return false;
    for (uint32_t h = 0; h < count; h++) items[h] = make_item(svg, h);
    qsort(items, count, sizeof *items, compare_items);
    draw_held(svg, items, count);
    draw_alive(svg, items, count);
    draw_certificate(svg, items, count);
    bool is_complete = draw_groups(svg, items, count);
    draw_names(svg, items, count);
    free(items);
    return is_complete;
}
