/* Handles Ctrl-C and SIGTERM: by default the command ends at once with exit code 130 and leaves no
 * half-written file.
 */
#ifndef TARN_CLI_INTERRUPT_H
#define TARN_CLI_INTERRUPT_H

#include "tarn.h"

void tarn_interrupt_install(void);

/* After this call the first signal only sets the flag that is returned; a second signal ends the
 * command.
 */
const bool *tarn_interrupt_note(void);

/* Ends a verb whose search may have been interrupted. After an interrupt it says that the plan (or
 * other result) is the best so far, and returns TARN_INTERRUPTED; else it returns the status
 * unchanged. */
enum tarn_status tarn_interrupt_tell(enum tarn_status status, const char *found);

/* Between the two, an interrupt waits: around the writing of files. */
void tarn_interrupt_hold(void);
void tarn_interrupt_release(void);

#endif
