/* Ctrl-C and SIGTERM: the command ends at once with exit code 130 and leaves no half-written file.
 */
#ifndef TARN_CLI_INTERRUPT_H
#define TARN_CLI_INTERRUPT_H

#include <stdbool.h>

void tarn_interrupt_install(void);

/* From now on the first of them only sets the flag that is returned; a second one ends the command.
 */
const bool *tarn_interrupt_note(void);

/* Between the two, an interrupt waits: around the writing of files. */
void tarn_interrupt_hold(void);
void tarn_interrupt_release(void);

#endif
