/* The two queues. libpcp's functions are declared here from their manual page, so that no header of it is needed. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "countersink/timerq.h"
#include "tests/bench/timerq_peer.h"

volatile int peer_wall_step;

/*
 * The wall clock, which we can step without stepping the machine's. Exported by this program, these come before libc's
 * for libpcp too. The kernel's interval timers do not follow the wall clock, so nothing else is to be simulated.
 */
int gettimeofday(struct timeval *restrict t, void *restrict zone)
{
	struct timespec now;

	(void)zone;
	syscall(SYS_clock_gettime, CLOCK_REALTIME, &now);
	t->tv_sec = now.tv_sec + peer_wall_step;
	t->tv_usec = now.tv_nsec / 1000;
	return 0;
}

int clock_gettime(clockid_t clock, struct timespec *t)
{
	static int (*real)(clockid_t, struct timespec *);
	int ret;

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
	ret = real(clock, t);
	if (clock == CLOCK_REALTIME)
		t->tv_sec += peer_wall_step;
	return ret;
}

uint64_t peer_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* ---- ours ------------------------------------------------------------------------------------------------------- */

static struct csink_timerq *queue;

static const char *ours_open(void)
{
	struct csink_timerq_config config = {.capacity = 16384, .flags = CSINK_TIMERQ_ARMED};

	peer_now(); /* dlsym now, not in the handler */
	return csink_timerq_create(&queue, &config) ? "no timer" : NULL;
}

static int ours_setup(int64_t start_ns, int64_t delta_ns, void *data, peer_func func)
{
	return csink_timerq_setup(queue, start_ns < 0 ? 0 : start_ns, delta_ns, data, func);
}

static int ours_add(int64_t delta_ns, void *data, peer_func func)
{
	return csink_timerq_register(queue, delta_ns, data, func);
}

static int ours_unregister(int id)
{
	return csink_timerq_unregister(queue, id);
}

static void ours_block(void)
{
	csink_timerq_block(queue);
}

static void ours_unblock(void)
{
	csink_timerq_unblock(queue);
}

static int ours_isempty(void)
{
	return csink_timerq_isempty(queue);
}

const struct peer peer_ours = {
	.name = "countersink",
	.open = ours_open,
	.setup = ours_setup,
	.add = ours_add,
	.unregister = ours_unregister,
	.block = ours_block,
	.unblock = ours_unblock,
	.isempty = ours_isempty,
};

/* ---- libpcp's --------------------------------------------------------------------------------------------------- */

static struct {
	int (*setup)(const struct timeval *, const struct timeval *, void *, peer_func);
	int (*add)(const struct timeval *, void *, peer_func);
	int (*unregister)(int);
	void (*block)(void);
	void (*unblock)(void);
	int (*isempty)(void);
} pcp;

static const char *pcp_open(void)
{
	void *lib = dlopen("libpcp.so.3", RTLD_NOW);

	peer_now();
	if (!lib)
		return "libpcp.so.3 is not installed (Debian: libpcp3)";
	*(void **)&pcp.setup = dlsym(lib, "__pmAFsetup");
	*(void **)&pcp.add = dlsym(lib, "__pmAFregister");
	*(void **)&pcp.unregister = dlsym(lib, "__pmAFunregister");
	*(void **)&pcp.block = dlsym(lib, "__pmAFblock");
	*(void **)&pcp.unblock = dlsym(lib, "__pmAFunblock");
	*(void **)&pcp.isempty = dlsym(lib, "__pmAFisempty");
	if (!pcp.setup || !pcp.add || !pcp.unregister || !pcp.block || !pcp.unblock || !pcp.isempty)
		return "libpcp.so.3 has no __pmAF functions";
	return NULL;
}

static struct timeval timeval_of(int64_t ns)
{
	return (struct timeval){.tv_sec = ns / S, .tv_usec = ns % S / 1000};
}

static int pcp_setup(int64_t start_ns, int64_t delta_ns, void *data, peer_func func)
{
	struct timeval start = timeval_of(start_ns), delta = timeval_of(delta_ns);

	return pcp.setup(start_ns < 0 ? NULL : &start, &delta, data, func);
}

static int pcp_add(int64_t delta_ns, void *data, peer_func func)
{
	struct timeval delta = timeval_of(delta_ns);

	return pcp.add(&delta, data, func);
}

static int pcp_unregister(int id)
{
	return pcp.unregister(id);
}

static void pcp_block(void)
{
	pcp.block();
}

static void pcp_unblock(void)
{
	pcp.unblock();
}

static int pcp_isempty(void)
{
	return pcp.isempty();
}

const struct peer peer_pcp = {
	.name = "__pmAF",
	.open = pcp_open,
	.setup = pcp_setup,
	.add = pcp_add,
	.unregister = pcp_unregister,
	.block = pcp_block,
	.unblock = pcp_unblock,
	.isempty = pcp_isempty,
};
