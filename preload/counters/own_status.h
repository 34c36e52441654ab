/* What /proc/PID/status says of a process, as far as it concerns us. */
#ifndef CSINK_COUNTERS_OWN_STATUS_H
#define CSINK_COUNTERS_OWN_STATUS_H

#include <sys/types.h>

struct csink_status {
	pid_t parent, tracer; /* 0: none */
	int nr_filters;       /* of seccomp; 1 where the kernel does not say how many there are (< 5.9) */
};

/**
 * Reads it, of @pid or (0) of the caller. Makes none but the calls that any program's loader has made: openat, read and
 * close. Returns 0 or -errno. Context: any.
 */
int csink_status_read(pid_t pid, struct csink_status *status);

#endif
