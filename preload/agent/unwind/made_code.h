/*
 * Frames of code that a runtime makes while the program runs, where neither unwind tables nor frame pointers describe
 * them: the runtime's own tables do. The room that reads those (interp) sets a function that steps over such frames.
 * Context of everything here: signal.
 */
#ifndef CSINK_MADE_CODE_H
#define CSINK_MADE_CODE_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "include/internal/base.h"
#include "preload/core/safe_load.h"

struct csink_made_frame {
	uintptr_t pc, sp, fp;      /* of the frame; after CSINK_MADE_CALLER, of its caller */
	const mcontext_t *context; /* all registers: of the innermost frame, and of one that a signal interrupted;
				      else NULL, and pc is a return address */
	struct csink_loader *load; /* for the stack */
};

enum csink_made_step {
	CSINK_MADE_NOT,    /* no such code: nothing was changed */
	CSINK_MADE_CALLER, /* the frame is its caller's now */
	CSINK_MADE_CUT,    /* such code, but its caller is not known */
};

typedef enum csink_made_step (*csink_made_stepper)(struct csink_made_frame *frame);

/* Atomic: stored by csink_made_set_stepper(), loaded by csink_made_step(). */
extern csink_made_stepper csink_made_current CSINK_HIDDEN;

/** Step over such frames by @step from now on; NULL: there are none. Context: any. */
void csink_made_set_stepper(csink_made_stepper step);

/** One frame of code without tables. Context: signal. */
enum csink_made_step csink_made_step(struct csink_made_frame *frame);

#endif
