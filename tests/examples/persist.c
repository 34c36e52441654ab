/*
 * Leave an event that counts on after its fd is closed, open it again by its id, and end it.
 *
 *	cc -o persist persist.c $(pkg-config --cflags --libs countersink-api)
 */
#include <countersink/persist.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int fail(const char *what, int err)
{
	fprintf(stderr, "%s: %s\n", what, strerror(-err));
	return 1;
}

int main(void)
{
	/* The page faults of this process, in user space. */
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
				       .size = sizeof(attr),
				       .config = PERF_COUNT_SW_PAGE_FAULTS,
				       .exclude_kernel = 1,
				       .exclude_hv = 1};
	struct csink_persist_event event = {.attr = attr, .pid = 0, .cpu = -1, .name = "example"};
	struct csink_persist_value value;
	int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC), err;

	if (fd < 0) {
		perror("perf_event_open");
		return 1;
	}
	err = csink_persist_detach(fd, &event, NULL); /* starts the keeper if it does not run yet */
	if (err)
		return fail("csink_persist_detach", err);
	close(fd);
	err = csink_persist_read(event.id, &value, NULL);
	if (err)
		return fail("csink_persist_read", err);
	fd = csink_persist_open(event.id, -1, NULL, NULL);
	if (fd < 0)
		return fail("csink_persist_open", fd);
	err = csink_persist_attach(fd, NULL); /* it ends with its last fd again */
	if (err)
		return fail("csink_persist_attach", err);
	close(fd);
	printf("page faults: %llu\n", (unsigned long long)value.value);
	return 0;
}
