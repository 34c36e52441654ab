/* Options of `countersink persist`, in the form that launcher/base/options.h describes. */
#ifndef CSINK_PERSIST_OPTIONS_H
#define CSINK_PERSIST_OPTIONS_H

#include "launcher/base/options.h"

#define CSINK_PERSIST_OPTIONS(X)                                                                                       \
	X(EVENT, 'e', "NAME", "task-clock", CSINK_OPT_NO_TWIN, "detach: the event to open")                            \
	X(PID, 'p', "PID", "", CSINK_OPT_NUMBER | CSINK_OPT_NO_TWIN,                                                   \
	  "detach: of this process, all its threads, or of this one thread")                                           \
	X(CPU, 'C', "CPU", "", CSINK_OPT_NO_TWIN, "detach: on this CPU, of every process unless --pid is given")       \
	X(PAGES, 'm', "N", "", CSINK_OPT_NUMBER | CSINK_OPT_NO_TWIN,                                                   \
	  "detach: keep a ring of N pages, a power of two, of the latest samples; of a process one for each CPU")      \
	X(MODE, 0, "OCTAL", "0600", CSINK_OPT_NO_TWIN, "detach: who may read its values; 0644: everybody")             \
	X(JSON, 'j', "", "0", CSINK_OPT_BOOL | CSINK_OPT_NO_TWIN, "print JSON")                                        \
	X(PERSIST_DIR, 0, "FOLDER", "", 0,                                                                             \
	  "where the keeper's folder is (else $XDG_RUNTIME_DIR, else /tmp/countersink-persist-UID)")

enum csink_persist_opt {
#define X(id, sh, arg, def, flags, help) CSINK_PERSIST_OPT_##id,
	CSINK_PERSIST_OPTIONS(X)
#undef X
		CSINK_NR_PERSIST_OPTS
};

#endif
