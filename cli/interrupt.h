/* Ctrl-C and SIGTERM: the command ends at once with exit code 130 and leaves no half-written file.
 */
#ifndef TARN_CLI_INTERRUPT_H
#define TARN_CLI_INTERRUPT_H

#include "tarn.h"

void tarn_interrupt_install(void);

/* From now on the first of them only sets the flag that is returned; a second one ends the command.
 */
const bool *tarn_interrupt_note(void);

/* How a verb ends whose search an interrupt may have ended: says that the plan (or whatever it was
 * to find) is the best so far, and returns TARN_INTERRUPTED; else the status as it is. */
enum tarn_status tarn_interrupt_tell(enum tarn_status status, const char *found);

/* Between the two, an interrupt waits: around the writing of files. */
void tarn_interrupt_hold(void);
void tarn_interrupt_release(void);

#endif
