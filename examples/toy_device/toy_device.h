/* A toy accelerator on threads, outside the library: the page to copy for a device of your own. It
 * includes tarn/device.h alone. All functions may be called from any thread. */
#ifndef TOY_DEVICE_H
#define TOY_DEVICE_H

#include <tarn/device.h>

struct toy;

/* Starts the accelerator's units. NULL: no memory, or no threads. */
struct toy *toy_open(void);
/* Ends them. pre: every session on the device has been destroyed with TARN_OK. */
void toy_close(struct toy *toy);
/* The device for sessions; it works until toy_close. */
struct tarn_device toy_device(struct toy *toy);

/* ---- For tests of the device ---- */

/* Objects that are alive: allocations, queues, events, stamps. */
uint64_t toy_alive(struct toy *toy);
/* So many more calls succeed and the next one fails, once; UINT64_MAX: none fails. True: one has
 * failed since the last call of this function. */
bool toy_fail_after(struct toy *toy, uint64_t calls);

#endif
