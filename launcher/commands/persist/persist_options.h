/* Options of `countersink persist`, in the form that launcher/base/options.h describes. */
#ifndef CSINK_PERSIST_OPTIONS_H
#define CSINK_PERSIST_OPTIONS_H

#include "launcher/base/options.h"

#define CSINK_PERSIST_OPTIONS(X)                                                                                       \
	X(EVENT, 'e', "NAME", "task-clock", CSINK_OPT_NO_ENV, "detach: the event to open")                             \
	X(PID, 'p', "PID", "", CSINK_OPT_NUMBER | CSINK_OPT_NO_ENV,                                                    \
	  "detach: count all threads of this process, or this one thread")                                             \
	X(CPU, 'C', "CPU", "", CSINK_OPT_NO_ENV, "detach: count on this CPU, every process unless --pid is given")     \
	X(PAGES, 'm', "N", "", CSINK_OPT_NUMBER | CSINK_OPT_NO_ENV,                                                    \
	  "detach: keep the latest samples in a ring of N pages, a power of two; for a process one ring per CPU")      \
	X(MODE, 0, "OCTAL", "0600", CSINK_OPT_NO_ENV, "detach: permission to read the values; 0644: all users")        \
	X(JSON, 'j', "", "0", CSINK_OPT_BOOL | CSINK_OPT_NO_ENV, "print JSON")                                         \
	X(PERSIST_DIR, 0, "DIR", "", 0,                                                                                \
	  "parent of the keeper's directory (default: $XDG_RUNTIME_DIR, else /tmp/countersink-persist-UID)")

#define CSINK_PERSIST_OPTION_ID(id, ...) CSINK_PERSIST_OPT_##id,
enum csink_persist_opt { CSINK_PERSIST_OPTIONS(CSINK_PERSIST_OPTION_ID) CSINK_NR_PERSIST_OPTS };

#endif
