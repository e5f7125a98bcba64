/* Some storages placed window by window. */
#ifndef TARN_PLANNER_PLACE_WINDOWS_WINDOW_H
#define TARN_PLANNER_PLACE_WINDOWS_WINDOW_H

#include "field.h"

/* Places some storages of a field, whole blocks in the order of slots. Writes their offsets, and
 * how high they reach; INT32_MAX where that cannot be counted, or time is over. False: no memory.
 */
bool tarn_window_place(const struct tarn_windows_settings *settings, const struct tarn_field *field,
                       const uint32_t *storages, uint32_t count, int32_t *top);

#endif
