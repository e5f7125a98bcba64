/* An ordered map from byte intervals to the parts of storages that own them (a storage without
 * slices is one part; streams/graph/graph.h). It reads the plan's offsets, and shares no code with
 * the cells of boundaries (order/cells.h).
 *
 *     bytes    0        512   768          2048
 *     cells    0         1     2    3        4        distinct starts and ends, in order
 *              ├─ A ─────┴──┬──┴────┼─ C ────┤
 *     begins   *            *       *        *        bits; owner[] is valid where one is set
 */
#ifndef TARN_STREAMS_VERIFY_BYTE_MAP_H
#define TARN_STREAMS_VERIFY_BYTE_MAP_H

#include "streams/plan/plan.h"

struct tarn_region;

#define TARN_BYTE_MAP_LEVELS 6 /* 64^6 cells are more than there are ids */

struct tarn_byte_map {
    uint32_t parts_count, cells_count;
    uint32_t *begin; /* part -> cell of its first byte */
    uint32_t *end;   /* part -> cell after its last byte, reserved or exact */
    uint32_t *owner; /* cell where an interval begins -> part, or TARN_NONE */
    uint64_t *bits[TARN_BYTE_MAP_LEVELS];
    uint32_t levels;
};

enum tarn_byte_map_extent {
    TARN_RESERVED_BYTES, /* with padding: what two storages must not share */
    TARN_EXACT_BYTES     /* what ops read and write */
};

/* Makes the map for all storages of the plan's graph at their offsets, the persistent part after
 * the arena; no byte has an owner yet. All arrays from the region. TARN_SYSTEM: no memory. pre: the
 * plan's offsets are complete and in range. */
enum tarn_status tarn_byte_map_init(struct tarn_byte_map *map, struct tarn_region *region,
                                    const struct tarn_plan *plan, enum tarn_byte_map_extent extent);
/* Nobody owns anything. */
void tarn_byte_map_clear(struct tarn_byte_map *map);

/* Makes a part the owner of its bytes. Amortised constant time. */
void tarn_byte_map_assign(struct tarn_byte_map *map, uint32_t part);

/* The start of the interval that holds a cell, and of the next interval (cells_count: none):
 *     for (uint32_t c = tarn_byte_map_floor(map, map->begin[a]); c < map->end[a];
 *          c = tarn_byte_map_next(map, c)) ... map->owner[c] ...                            */
uint32_t tarn_byte_map_floor(const struct tarn_byte_map *map, uint32_t cell);
uint32_t tarn_byte_map_next(const struct tarn_byte_map *map, uint32_t cell);

/* Is cell 0 a start, does every bit say whether the word below it has bits, and is every owner a
 * part that covers the cell, or did before its end was cut off? Linear; for assertions.
 */
bool tarn_byte_map_is_valid(const struct tarn_byte_map *map);

#endif
