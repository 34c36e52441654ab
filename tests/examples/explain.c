/*
 * Find out why perf_event_open(2) fails, beyond its errno.
 *
 *	cc -o explain explain.c $(pkg-config --cflags --libs countersink-api)
 */
#include <countersink/explain.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(void)
{
	/* A sample_type with bits that no kernel knows. */
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
				       .size = sizeof(attr),
				       .config = PERF_COUNT_SW_PAGE_FAULTS,
				       .sample_type = ~0ULL};
	struct csink_perf_call call = {.attr = &attr, .pid = 0, .cpu = -1, .group_fd = -1, .flags = 0};
	struct csink_explanation why[CSINK_EXPLAIN_MAX];
	char line[640];
	int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0), nr;

	if (fd >= 0) {
		close(fd);
		return 1; /* this kernel takes it */
	}
	nr = csink_explain_open(&call, errno, why, CSINK_EXPLAIN_MAX);
	for (int i = 0; i < nr; i++)
		printf("%s\n", csink_explain_print(&why[i], line, sizeof(line)));
	return 0;
}
