/*
 * The bare kernel's part of a sample, for what is measured beside us: an event of the calling thread, as the sigtrap
 * engine asks for it, and a handler that does nothing.
 */
#ifndef CSINK_BENCH_SIGTRAP_EVENT_H
#define CSINK_BENCH_SIGTRAP_EVENT_H

#include <linux/perf_event.h>
#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SIGTRAP_DISABLED = 1, SIGTRAP_INHERITED = 2 };

/* Returns the descriptor, or -1 and errno. @sample_type: what the ring gets, once it is mapped. */
static inline int sigtrap_event_open(uint64_t period_ns, uint64_t sample_type, int how)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_TASK_CLOCK,
		.sample_period = period_ns,
		.sample_type = sample_type,
		.disabled = !!(how & SIGTRAP_DISABLED),
		.inherit = !!(how & SIGTRAP_INHERITED),
		.inherit_thread = !!(how & SIGTRAP_INHERITED),
		.watermark = 1,
		.wakeup_watermark = UINT32_MAX,
		.sigtrap = 1,
		.remove_on_exec = 1,
		.exclude_kernel = geteuid() != 0,
	};

	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static inline void sigtrap_nothing(int signo)
{
	(void)signo;
}

static inline void sigtrap_ignore(void)
{
	struct sigaction act = {.sa_handler = sigtrap_nothing, .sa_flags = SA_RESTART | SA_ONSTACK};

	sigaction(SIGTRAP, &act, NULL);
}

#endif
