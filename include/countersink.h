/*
 * countersink.h - phases of a program, and parts that are left out of its profile.
 *
 *	#include <countersink.h>
 *	countersink_phase_begin("parse");
 *	...
 *	countersink_phase_end();
 *
 * There is no library to link; the C API, which has one, is in <countersink/NAME.h>. If the program does not run under
 * countersink, each call tests an address that is 0. (In a program that is linked with -no-pie the address is always 0:
 * there the calls never have an effect.)
 *
 * Samples of a phase have its name as the label "phase" in the profile: countersink report --by phase, go tool pprof
 * -tagfocus. All functions take no lock, allocate nothing, preserve errno and cannot fail. Context: any thread;
 * async-signal-safe.
 */
#ifndef COUNTERSINK_H
#define COUNTERSINK_H

#ifdef __cplusplus
extern "C" {
#endif

/* Internal: call the functions below instead. */
extern void csink_phase_begin(const char *name) __attribute__((weak));
extern void csink_phase_end(void) __attribute__((weak));
extern void csink_sampling_pause(void) __attribute__((weak));
extern void csink_sampling_resume(void) __attribute__((weak));
extern void csink_sampling_stop(void) __attribute__((weak));
extern void csink_sampling_start(void) __attribute__((weak));

/** Returns 1 if the program runs under countersink, else 0. */
static inline int countersink_is_here(void)
{
	return csink_phase_begin != 0;
}

/**
 * Begin a phase in the calling thread: its samples have that name from now on. Phases nest 15 deep; deeper phases count
 * as the 15th. A process has at most 254 names, of up to 63 bytes; further names become "[other phases]".
 * @name  copied.
 */
static inline void countersink_phase_begin(const char *name)
{
	if (csink_phase_begin)
		csink_phase_begin(name);
}

/** End the phase that the calling thread began last. */
static inline void countersink_phase_end(void)
{
	if (csink_phase_end)
		csink_phase_end();
}

/** Stop profiling the calling thread. Its CPU time is shown as [paused by the program]. */
static inline void countersink_pause(void)
{
	if (csink_sampling_pause)
		csink_sampling_pause();
}

/** Profile the calling thread again. Pauses do not nest. */
static inline void countersink_resume(void)
{
	if (csink_sampling_resume)
		csink_sampling_resume();
}

/** Stop profiling all threads of the process, future threads included; their CPU time is shown likewise. */
static inline void countersink_stop(void)
{
	if (csink_sampling_stop)
		csink_sampling_stop();
}

/** Profile all threads again, except those that paused themselves. */
static inline void countersink_start(void)
{
	if (csink_sampling_start)
		csink_sampling_start();
}

#ifdef __cplusplus
}
#endif

#endif
