/* One field placed window by window. */
#ifndef TARN_PLANNER_PLACE_WINDOW_H
#define TARN_PLANNER_PLACE_WINDOW_H

#include "field.h"

/* Writes the field's offsets, and how high they reach; INT32_MAX where that cannot be counted.
 * False: no memory. */
bool tarn_window_place_field(const struct tarn_windows_settings *settings,
                             const struct tarn_field *field, int32_t *top);

/* Places some storages of a field, whole blocks in the order of slots, as a field of their own:
 * with keys begin..end around obstacles, or by windows where `obstacles` is NULL. Offsets and *top
 * change where they become lower. False: no memory. */
bool tarn_window_place_storages(const struct tarn_windows_settings *settings,
                                const struct tarn_field *whole_field,
                                const struct tarn_whole *whole, const uint32_t *storages,
                                uint32_t count, struct tarn_obstacles *obstacles, uint32_t begin,
                                uint32_t end, int32_t *top);

#endif
