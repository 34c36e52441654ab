/*
 * Time off the CPU. A group of its own in each thread counts the thread's context switches, with a sample at each one.
 * The overflow happens as the thread leaves the CPU and its signal is delivered when it comes back, on the way to user
 * space: so the stack in the handler is the one that blocked, and no call is ever interrupted. What a sample weighs is
 * the time that passed since the last one, less the CPU time in it.
 */
#ifndef CSINK_SWITCHES_H
#define CSINK_SWITCHES_H

#include <stdint.h>

struct csink_event_spec;
struct csink_thread;

/** Describe the event for the recording's header. Context: init. */
void csink_switches_event(struct csink_event_spec *out);

/**
 * Open it for the calling thread. Returns 0 or -errno (-EACCES: perf_event_paranoid hides the kernel, where switches
 * are). Context: thread.
 */
int csink_switches_open(struct csink_thread *thread);

/** The ns off the CPU since this was last called, in the calling thread; 0 if it has no such counter.
 * Context: signal (one syscall, once a switch). */
uint64_t csink_switches_take(struct csink_thread *thread);

/** The same for another thread, whose CPU clock now stands at @cpu_ns; takes nothing. Context: thread. */
uint64_t csink_switches_open_ns(const struct csink_thread *thread, uint64_t cpu_ns);

#endif
