/*
 * What the library does now and then while a program runs: keep the recording's clock and its next blocks ready, look
 * for loaded and unloaded objects, note interval counts. All of it is driven by one timer queue, which is polled from
 * the sampling handler: a program that does not run needs none of it, and no timer of ours ever wakes or interrupts it.
 */
#ifndef CSINK_SAMPLE_HOUSEKEEPING_H
#define CSINK_SAMPLE_HOUSEKEEPING_H

#include <stdint.h>

struct csink_thread;

/** Set the queue up, empty first. Context: init. */
void csink_housekeeping_init(void);

/** Run what is due. Context: signal. A load and a compare when nothing is. */
void csink_housekeeping_poll(struct csink_thread *thread, uint64_t now_ns);

/** Write the process's clocks, an interval and the modules once more. Context: thread, at the end of an image. */
void csink_housekeeping_last(struct csink_thread *thread);

#endif
