/* What placement by windows works on: the whole problem or a part of it, and where its blocks are.
 */
#ifndef TARN_PLANNER_PLACE_FIELD_H
#define TARN_PLANNER_PLACE_FIELD_H

#include "obstacles.h"
#include "part.h"

/* What is to be placed, the whole or a part of it. */
struct tarn_field {
    const struct tarn_problem *problem;
    bool *in_antichain; /* by storage */
    int32_t *floor;     /* by block */
    int32_t *offset;    /* by block, in units: the result */
};

/* The same for all parts of a placement. */
struct tarn_windows_settings {
    uint32_t unit_shift, width, far, crossing_max;
    int32_t aim;
    int threads;
    const struct tarn_until *until; /* may be NULL */
};

/* No floors, all offsets 0; who is in the antichain is the caller's to fill in. False: no memory.
 */
bool tarn_field_init(struct tarn_field *field, const struct tarn_problem *problem);
/* A part's field: antichain and floors of the whole. False: no memory. */
bool tarn_field_init_part(struct tarn_field *field, const struct tarn_field *whole,
                          const struct tarn_part *part);
void tarn_field_finish(struct tarn_field *field);

/* Gives the whole the offsets of a part. */
void tarn_field_take_offsets(const struct tarn_field *whole, const struct tarn_part *part,
                             const struct tarn_field *field);

/* Where storage a of a block lies, in units, rounded outward. */
struct tarn_span tarn_field_span(const struct tarn_field *field, uint32_t unit_shift,
                                 uint32_t block, uint32_t a);

/* Decodes the field around obstacles with keys begin..end until the aim is met; the best plan
 * becomes the field's where it is lower than *top. False: no memory. */
bool tarn_field_decode(const struct tarn_field *field, const struct tarn_windows_settings *settings,
                       const struct tarn_obstacles *obstacles, uint32_t begin, uint32_t end,
                       int32_t *top);

#endif
