/* The timer engine: see engine_timer.h. Each thread for itself; raw calls only, async-signal-safe. */
#include "preload/agent/sampler/engine_timer.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/rawcall.h"
#include "preload/core/seccomp_probe.h"

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

/* The kernel's own calls: glibc's timer_create keeps a table of its own and allocates. */

int csink_cputimer_open(timer_t *timer, int signo, void *cookie)
{
	struct sigevent event;
	long err;
	int id;

	if (CSINK_UNLIKELY(csink_deadly_calls & CSINK_DEADLY_TIMER))
		return -EPERM;
	memset(&event, 0, sizeof(event));
	event.sigev_notify = SIGEV_THREAD_ID;
	event.sigev_signo = signo;
	event.sigev_value.sival_ptr = cookie;
	event.sigev_notify_thread_id = gettid();
	err = csink_rawcall(SYS_timer_create, CLOCK_THREAD_CPUTIME_ID, &event, &id);
	if (err)
		return (int)err;
	*timer = (timer_t)(intptr_t)id;
	return 0;
}

static void set(timer_t timer, uint64_t period_ns)
{
	struct timespec at = {(time_t)(period_ns / CSINK_NS_PER_S), (long)(period_ns % CSINK_NS_PER_S)};
	struct itimerspec spec = {at, at};

	csink_rawcall(SYS_timer_settime, (int)(intptr_t)timer, 0, &spec, NULL);
}

void csink_cputimer_pause(timer_t timer)
{
	set(timer, 0);
}

void csink_cputimer_resume(timer_t timer, uint64_t period_ns)
{
	set(timer, period_ns);
}

void csink_cputimer_close(timer_t timer)
{
	csink_rawcall(SYS_timer_delete, (int)(intptr_t)timer);
}
