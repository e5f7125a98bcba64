/* The static picture, in parts. All measures are half pixels, whole numbers: paths stay short. */
#ifndef TARN_CLI_SHOW_SVG_H
#define TARN_CLI_SHOW_SVG_H

#include <stdio.h>

#include "picture.h"

/* A part of the picture: `width` for the axis, `height` for `top` bytes. */
struct tarn_svg_frame {
    int x, y, width, height;
    double top; /* at least 1 */
};

struct tarn_svg {
    FILE *file;
    const struct tarn_picture *picture;
    const struct tarn_model_schedule *schedule;
    struct tarn_svg_frame curve, map, rows;
    int width, height; /* of the whole */
    int row_height;
    uint32_t rows_count; /* streams that are drawn */
    int grain;           /* shapes that lie closer together are drawn as one */
    uint64_t merged;     /* storages that were */
};

static inline int tarn_svg_x(const struct tarn_svg *svg, double time)
{
    double share = time / (double)svg->schedule->length;
    return svg->map.x + (int)(share * svg->map.width + 0.5);
}

static inline int tarn_svg_y(const struct tarn_svg_frame *frame, uint64_t bytes)
{
    double share = (double)bytes / frame->top;
    return frame->y + frame->height - (int)(share * frame->height + 0.5);
}

/* Is the holder drawn pale, because the axis shows what the bound counts and the bound does not
 * count this holder? */
static inline bool tarn_svg_is_pale(const struct tarn_svg *svg, const struct tarn_holder *holder)
{
    return svg->schedule->axis == TARN_AXIS_CUT && !holder->certified && holder->space == 0;
}

/* The storages, held and alive, groups, the certificate, and names if there is room. False: no
 * memory. */
bool tarn_svg_map(struct tarn_svg *svg);
/* The streams, and waits if they are few. */
void tarn_svg_rows(struct tarn_svg *svg);

#endif
