/*
 * Phases that the program names (countersink.h). A phase is a number in each row of the recording; its name is written
 * there once. The handler reads the thread's current one; the thread itself sets it.
 */
#ifndef CSINK_PHASES_H
#define CSINK_PHASES_H

#include <stdint.h>

#include "include/internal/recording_format.h"

struct csink_thread;

/** The phase of a sample that the thread takes now: CSINK_PHASE_OFF where it is not to be profiled. Context: signal. */
uint16_t csink_phase_now(const struct csink_thread *thread);

/** Make room for names, which is touched only where there are some. Context: init. */
void csink_phases_init(void);

/** Write the names into a new recording, of a forked child. Context: init. */
void csink_phases_rewrite(void);

#endif
