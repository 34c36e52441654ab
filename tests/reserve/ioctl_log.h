/* What tests/reserve/ioctl_log.c writes and reserve_figures.c reads. */
#ifndef CSINK_TESTS_IOCTL_LOG_H
#define CSINK_TESTS_IOCTL_LOG_H

#define IOCTL_LOG_VARIABLE "IOCTL_LOG"

struct ioctl_log {
	int nr_enabled;
};

#endif
