/*
 * ThreadSanitizer keeps the stack of each thread itself, from calls that the compiler puts into the program's
 * functions. Ours have none: without an annotation the callers of ours would be missing in its reports.
 */
#ifndef CSINK_SANITIZER_H
#define CSINK_SANITIZER_H

/* In its runtime, which may be in the program or in a library. */
extern void __tsan_func_entry(void *caller) __attribute__((weak));
extern void __tsan_func_exit(void) __attribute__((weak));

/** Between these two, a function of the program's has called from @caller. Context: thread. */
static inline void csink_tsan_enter(void *caller)
{
	if (__builtin_expect(__tsan_func_entry != NULL, 0))
		__tsan_func_entry(caller);
}

static inline void csink_tsan_leave(void)
{
	if (__builtin_expect(__tsan_func_exit != NULL, 0))
		__tsan_func_exit();
}

#endif
