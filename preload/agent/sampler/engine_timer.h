/*
 * The engine for where perf_event_open is refused: a POSIX timer on the thread's CPU clock. Fires on the kernel's tick,
 * at most HZ times a second; the overrun count says how many periods one signal stands for, so time stays exact.
 */
#ifndef CSINK_ENGINE_TIMER_H
#define CSINK_ENGINE_TIMER_H

#include <stdint.h>
#include <time.h>

/** Create the calling thread's timer; csink_cputimer_resume() starts it. Returns 0 or -errno (-EAGAIN:
 * RLIMIT_SIGPENDING). Context: thread. */
int csink_cputimer_open(timer_t *timer, int signo, void *cookie);

/** Stop it; a signal that was pending has been delivered. Context: thread. */
void csink_cputimer_pause(timer_t timer);
void csink_cputimer_resume(timer_t timer, uint64_t period_ns);
void csink_cputimer_close(timer_t timer);

#endif
