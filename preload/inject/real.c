#include "preload/inject/real.h"

#include <dlfcn.h>

static const char *const names[CSINK_NR_REALS] = {
#define X(name) [CSINK_REAL_##name] = #name,
	CSINK_REALS(X)
#undef X
};

static void *reals[CSINK_NR_REALS];

void *csink_real(enum csink_real which)
{
	void *real = __atomic_load_n(&reals[which], __ATOMIC_RELAXED);

	if (__builtin_expect(!real, 0)) {
		real = dlsym(RTLD_NEXT, names[which]);
		__atomic_store_n(&reals[which], real, __ATOMIC_RELAXED);
	}
	return real;
}

void csink_reals_init(void)
{
	for (int which = 0; which < CSINK_NR_REALS; which++)
		csink_real((enum csink_real)which);
}
