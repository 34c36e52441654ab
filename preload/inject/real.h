/*
 * The functions behind those that we interpose. Looked up on first use: a program's own constructors may call them
 * before ours has run.
 */
#ifndef CSINK_INJECT_REAL_H
#define CSINK_INJECT_REAL_H

#include <dlfcn.h>

/* REAL(write) is the next definition of write after ours, with its type. */
#define REAL(name)                                                                                                     \
	({                                                                                                             \
		static __typeof__(&name) real_##name;                                                                  \
		if (!__atomic_load_n(&real_##name, __ATOMIC_RELAXED))                                                  \
			__atomic_store_n(&real_##name, (__typeof__(&name))dlsym(RTLD_NEXT, #name), __ATOMIC_RELAXED);  \
		real_##name;                                                                                           \
	})

#endif
