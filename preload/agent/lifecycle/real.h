/*
 * The functions behind those that we interpose: the next definition of each after ours, which may be another preloaded
 * library's. Each is looked up by the first call that needs it, without the loader (libc.h): dlsym(3) takes the
 * loader's lock, and a forked child or a signal handler that calls execve() or sigaction() must not wait for it. Where
 * that cannot be done (csink_libc_next()), the constructor looks all of them up; only a call that comes before it (from
 * the constructor of a library that is initialised first) then looks for its own function.
 */
#ifndef CSINK_REAL_H
#define CSINK_REAL_H

#include "preload/agent/interposed.h"

/* As enum csink_real: CSINK_REAL_execve and so on. */
enum csink_real {
#define X(name) CSINK_REAL_##name,
	CSINK_REALS(X) CSINK_YOUNG(X)
#undef X
		CSINK_NR_REALS,
#define X(name) +1
	CSINK_NR_INTERPOSED = 0 CSINK_REALS(X) /* which come first */
#undef X
};

/** The function of that number; NULL if this libc has none. Context: any, once csink_reals_init() has run. */
void *csink_real(enum csink_real which);

/**
 * The same, before csink_reals_init(), too: NULL then, as allocators make their first calls while the loader starts the
 * program, and are not to be entered again. Context: any, and before we are relocated.
 */
void *csink_real_or_none(enum csink_real which);

/**
 * A function that is called clone and is not libc's, which the program's objects would call but for ours; NULL: there
 * is none. CSINK_REAL_clone is libc's even then. Context: any.
 */
void *csink_real_other_clone(void);

/** The same for daemon. Context: any. */
void *csink_real_other_daemon(void);

/** Its name. Context: any. */
const char *csink_real_name(enum csink_real which);

/** Look up what cannot be looked up later. Context: init, after csink_libc_init(). */
void csink_reals_init(void);

/* REAL(write) is the next definition of write after ours, with its type. */
#define REAL(name) ((__typeof__(&name))csink_real(CSINK_REAL_##name))

#endif
