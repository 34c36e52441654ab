/*
 * The next definitions of interposed functions: see real.h. Any thread, async-signal-safe once csink_reals_init() has
 * run.
 */
#include "preload/agent/lifecycle/real.h"

#include <dlfcn.h>
#include <string.h>

#include "preload/agent/lifecycle/libc.h"

/* One after the other: a table would be half empty, and pointers the loader would have to relocate in every program. */
static const char names[] =
#define X(name) #name "\0"
	CSINK_REALS(X) CSINK_YOUNG(X);
#undef X

const char *csink_real_name(enum csink_real which)
{
	const char *name = names;

	for (int i = 0; i < (int)which; i++)
		name += strlen(name) + 1;
	return name;
}

static void *reals[CSINK_NR_REALS], *other_clone, *other_daemon;

static void *look_up(enum csink_real which)
{
	const char *name = csink_real_name(which);
	void *real, *libcs;

	if (!csink_libc_next(name, &real))
		real = CSINK_ALLOW(dlsym) ? CSINK_ALLOW(dlsym)(RTLD_NEXT, name) : csink_libc_find(name);
	/* Another definition of the other names interposes libc as ours does; a function called clone or daemon may be
	 * anything. */
	if ((which == CSINK_REAL_clone || which == CSINK_REAL_daemon) && real && !csink_libc_has(real) &&
	    (libcs = csink_libc_find(name))) {
		*(which == CSINK_REAL_clone ? &other_clone : &other_daemon) = real;
		real = libcs;
	}
	__atomic_store_n(&reals[which], real, __ATOMIC_RELAXED);
	return real;
}

/* A function that is not known yet is looked for at any time where that takes no lock; else by the constructor, all of
 * them. No pointer: the loader calls functions of objects that it has relocated (IFUNC) before it relocates us. */
static enum { EARLY, AT_ANY_TIME, ALL_ARE_KNOWN } stage;

void *csink_real(enum csink_real which)
{
	void *real = __atomic_load_n(&reals[which], __ATOMIC_RELAXED);

	return __builtin_expect(real || stage == ALL_ARE_KNOWN, 1) ? real : look_up(which);
}

void *csink_real_other_clone(void)
{
	csink_real(CSINK_REAL_clone);
	return other_clone;
}

void *csink_real_other_daemon(void)
{
	csink_real(CSINK_REAL_daemon);
	return other_daemon;
}

void *csink_real_or_none(enum csink_real which)
{
	return stage == EARLY ? NULL : csink_real(which);
}

void csink_reals_init(void)
{
	void *any;

	stage = AT_ANY_TIME;
	if (csink_libc_next(names, &any))
		return;
	for (int which = 0; which < CSINK_NR_REALS; which++)
		look_up((enum csink_real)which);
	stage = ALL_ARE_KNOWN;
}
