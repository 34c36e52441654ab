/*
 * What the library does periodically while a program runs: store the process's clocks in the recording, so that a
 * killed process has an end, and look for loaded and unloaded objects. One function, emit(), does it: periodically,
 * by a timer queue, and at the end of an image. The queue is polled from the sampling handler,
 * before the sample is stored: what is emitted does not have a sample that came after its time. A program that does not
 * run needs none of it, and no timer of ours ever wakes or interrupts it.
 * Samples are not emitted from here: the handler writes each into the mapped recording. Nor are slices cut here: the
 * launcher takes differences of moments of the recordings, which needs no mark of the program's.
 */
#ifndef CSINK_HOUSEKEEPING_H
#define CSINK_HOUSEKEEPING_H

#include <stdint.h>

/**
 * Set the queue up, empty first.
 * @clock  of its events, in ns; NULL: CLOCK_MONOTONIC.
 * Context: init.
 */
void csink_housekeeping_init(uint64_t (*clock)(void));

/** Run what is due. Context: signal. A load and a compare when nothing is. */
void csink_housekeeping_poll(uint64_t now_ns);

/**
 * A sample took so long, in which and before which a thread ran for cpu_ns: once a second the sums are compared with
 * csink_plan.budget. Context: signal.
 */
void csink_housekeeping_account(uint64_t took_ns, uint64_t cpu_ns);

/** Emit once more, in the calling thread, whose state is csink_self. Context: thread, at the end of an image. */
void csink_housekeeping_last(void);

#endif
