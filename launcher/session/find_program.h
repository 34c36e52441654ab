/* The program that a command names: where it is, and whether the library can be injected into it. */
#ifndef CSINK_FIND_PROGRAM_H
#define CSINK_FIND_PROGRAM_H

#include <limits.h>
#include <stdbool.h>

#include "include/internal/recording_format.h"
#include "launcher/base/message.h"

struct csink_program {
	char path[PATH_MAX];            /* as found; "" if it was not */
	enum csink_spawn_reason reason; /* 0: it can be injected, as far as one can see */
	char why[CSINK_WHY_BYTES];      /* with a reason: a phrase, "is statically linked" */
	bool is_unreadable;             /* it may be executed and not read */
};

/**
 * Find a command as execvp(3) does, and look at the program it is: through #! to the interpreter.
 * Returns 0; -ENOENT or -EACCES (found, but not to be executed): path is then what was met last, or "".
 */
int csink_program_find(const char *command, struct csink_program *out);

/** Look at a program file. One that cannot be read is_unreadable, and gives no reason. */
void csink_program_inspect(const char *path, struct csink_program *out);

#endif
