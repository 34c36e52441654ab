/*
 * What the library does periodically while a program runs: store the process's clocks in the recording, so that a
 * killed process has an end, and look for loaded and unloaded objects. One timer queue drives both. It is polled from
 * the sampling handler: a program that does not run needs neither, and no timer of ours ever wakes or interrupts it.
 * Samples are not emitted from here: the handler writes each into the mapped recording.
 */
#ifndef CSINK_HOUSEKEEPING_H
#define CSINK_HOUSEKEEPING_H

#include <stdint.h>

struct csink_thread;

/** Set the queue up, empty first. Context: init. */
void csink_housekeeping_init(void);

/** Run what is due. Context: signal. A load and a compare when nothing is. */
void csink_housekeeping_poll(struct csink_thread *thread, uint64_t now_ns);

/** Write the process's clocks and the modules once more. Context: thread, at the end of an image. */
void csink_housekeeping_last(struct csink_thread *thread);

#endif
