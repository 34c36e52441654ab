/*
 * When the slices of a run begin: at multiples of their length on the wall clock, as 12:00:00 and 12:01:00, and one by
 * one by CLOCK_MONOTONIC, so that neither a wall clock that is slewed nor a launcher that is late moves them. Context
 * of everything here: any.
 */
#ifndef CSINK_SLICE_CLOCK_H
#define CSINK_SLICE_CLOCK_H

#include <stdint.h>

#define CSINK_SLICE_MOVED_NS 1000000000LL /* a wall clock that was moved by more begins a new schedule */

struct csink_slice_clock {
	uint64_t slice_ns;
	uint64_t due_ns;   /* CLOCK_MONOTONIC: the end of the slice that goes on; 0: none was asked for */
	int64_t offset_ns; /* the schedule's: CLOCK_REALTIME less CLOCK_MONOTONIC */
};

/**
 * The end of the slice that begins now.
 * @realtime_ns, @monotonic_ns  now; that is at or after the end of the slice before.
 * Returns the start that the slice which begins is given, CLOCK_REALTIME: a multiple of the slice, but for the first
 * one and one before which the clock was moved. due_ns is its end.
 */
uint64_t csink_slice_clock_next(struct csink_slice_clock *clock, uint64_t realtime_ns, uint64_t monotonic_ns);

#endif
