/*
 * What /proc/PID/status says of a process or thread, as far as it concerns us: the one place that reads it for the
 * library and for attach. Reads go on to the line that is wanted, however long others are: `Groups:` has as many
 * numbers as its user has groups, up to 65536.
 */
#ifndef CSINK_STATUS_H
#define CSINK_STATUS_H

#include <stdint.h>
#include <sys/types.h>

/* A line that the kernel does not have, or that cannot be understood, leaves 0; other values are noted. */
struct csink_status {
	pid_t tgid, parent, tracer; /* 0: none */
	uid_t uid;                  /* the real one */
	int seccomp;                /* 0 none, 1 strict, 2 filter; -1: the kernel does not say */
	int nr_filters;             /* of seccomp; 1 where the kernel does not say how many there are (< 5.9) */
	uint64_t caught;            /* bit signo - 1: the process has a handler for it */
	uint64_t effective;         /* capabilities */
};

enum { CSINK_STATUS_PROCESS = 0, CSINK_STATUS_THREAD = -1 };

/**
 * Read it.
 * @pid  a process or thread; or CSINK_STATUS_PROCESS or _THREAD, the calling ones.
 * Makes none but the calls that any program's loader has made: openat, read and close. Returns 0 or -errno; *status is
 * then what it was. Context: any, signal included; errno is kept.
 */
int csink_status_read(pid_t pid, struct csink_status *status);

/** The same from an open file; what a read of it gives may end anywhere. Context: as csink_status_read. */
int csink_status_read_fd(int fd, struct csink_status *status);

#endif
