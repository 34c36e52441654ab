/*
 * What a program can tell countersink about itself: which phase it is in, and what is not to be in the profile.
 *
 *	#include <countersink.h>
 *	countersink_phase_begin("parse");
 *	...
 *	countersink_phase_end();
 *
 * There is nothing to link with; the C API, which has a library, is in <countersink/NAME.h>. Where the program does not
 * run under countersink, each call is a test of an address that is 0. (A program that is linked with -no-pie has no
 * such address to find: there, calls never do anything.)
 *
 * Samples of a phase have its name as the label "phase" in the profile: countersink report --by phase, go tool pprof
 * -tagfocus. Every function here takes no lock, allocates nothing, keeps errno, and may be called in signal handlers.
 */
#ifndef COUNTERSINK_H
#define COUNTERSINK_H

#ifdef __cplusplus
extern "C" {
#endif

/* The library's own; call what is below them. */
extern void csink_phase_begin(const char *name) __attribute__((weak));
extern void csink_phase_end(void) __attribute__((weak));
extern void csink_sampling_pause(void) __attribute__((weak));
extern void csink_sampling_resume(void) __attribute__((weak));
extern void csink_sampling_stop(void) __attribute__((weak));
extern void csink_sampling_start(void) __attribute__((weak));

/** Whether the program runs under countersink. */
static inline int countersink_is_here(void)
{
	return csink_phase_begin != 0;
}

/**
 * The calling thread begins a phase: what is sampled of it from here on has that name. Phases nest, 15 deep; deeper
 * ones are those they are in. A process has 254 names at most, of up to 63 bytes; further ones are "[other phases]".
 */
static inline void countersink_phase_begin(const char *name)
{
	if (csink_phase_begin)
		csink_phase_begin(name);
}

/** The phase that the calling thread began last is over. */
static inline void countersink_phase_end(void)
{
	if (csink_phase_end)
		csink_phase_end();
}

/** What the calling thread does from here on is not profiled. Its time stays accounted for, as [paused by the program].
 */
static inline void countersink_pause(void)
{
	if (csink_sampling_pause)
		csink_sampling_pause();
}

/** It is again. Pauses do not nest. */
static inline void countersink_resume(void)
{
	if (csink_sampling_resume)
		csink_sampling_resume();
}

/** The same for all threads of the process, those to come included. */
static inline void countersink_stop(void)
{
	if (csink_sampling_stop)
		csink_sampling_stop();
}

/** All threads that did not pause themselves are profiled again. */
static inline void countersink_start(void)
{
	if (csink_sampling_start)
		csink_sampling_start();
}

#ifdef __cplusplus
}
#endif

#endif
