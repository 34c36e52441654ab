/*
 * What events themselves cost a command: opens some as the launcher does, inherited and on from an exec, and runs the
 * command. Nothing reads the rings: what does not fit is lost.
 *   bare_events EVENTS COMMAND [ARG...]
 * Each letter of EVENTS opens some; see open_some(). EVERY: the period in ns (1003009), COPY: bytes of stack (8192).
 */
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MONOTONIC = 1, CALLERS_REGS = 0xff0fff };

static int open_event(struct perf_event_attr *attr, int cpu)
{
	int fd = (int)syscall(SYS_perf_event_open, attr, 0, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0) {
		perror("perf_event_open");
		exit(1);
	}
	return fd;
}

/* An event of ours that is off owns the ring, as in the launcher. */
static void open_with_ring(struct perf_event_attr *attr, int cpu)
{
	struct perf_event_attr owner = {.type = PERF_TYPE_SOFTWARE, .size = sizeof(owner), .disabled = 1};
	size_t pages = cpu < 0 ? 64 : 4096, bytes = (pages + 1) * (size_t)sysconf(_SC_PAGESIZE);
	int fd;

	owner.config = PERF_COUNT_SW_DUMMY;
	owner.use_clockid = 1;
	owner.clockid = MONOTONIC;
	fd = open_event(&owner, cpu);
	if (mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED ||
	    ioctl(open_event(attr, cpu), PERF_EVENT_IOC_SET_OUTPUT, fd)) {
		perror("a ring");
		exit(1);
	}
}

static long number(const char *name, long otherwise)
{
	const char *value = getenv(name);

	return value ? atol(value) : otherwise;
}

static void ask_for_samples(struct perf_event_attr *attr, bool copies, bool counts)
{
	attr->config = PERF_COUNT_SW_TASK_CLOCK;
	attr->sample_period = (unsigned long)number("EVERY", 1003009);
	attr->task = attr->comm = attr->comm_exec = attr->mmap = attr->mmap2 = 1;
	attr->sample_type |= PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_IDENTIFIER;
	attr->exclude_callchain_kernel = 1;
	if (copies) {
		attr->sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
		attr->sample_regs_user = CALLERS_REGS;
		attr->sample_stack_user = (unsigned int)number("COPY", 8192);
	}
	if (counts) {
		attr->sample_type |= PERF_SAMPLE_READ;
		attr->read_format |= PERF_FORMAT_GROUP;
	}
}

static void open_some(char which)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE, .size = sizeof(attr), .disabled = 1};
	bool for_each_cpu = strchr("LPBR", which);

	attr.config = PERF_COUNT_SW_DUMMY;
	if (which == 'A') { /* an anchor: contexts are not swapped with the command's */
		open_event(&attr, -1);
		return;
	}
	attr.inherit = attr.enable_on_exec = attr.sample_id_all = attr.use_clockid = 1;
	attr.clockid = MONOTONIC;
	attr.sample_type = PERF_SAMPLE_TIME;
	attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	if (which == 'L') /* births, names and ends of tasks */
		attr.task = attr.comm = attr.comm_exec = 1;
	else if (which == 'C' || which == 'c') { /* a count; C: that each task leaves at its end */
		attr.config = PERF_COUNT_SW_TASK_CLOCK;
		attr.inherit_stat = which == 'C';
	} else if (which == 'P' || which == 'B' || which == 'R') /* samples; B: with a copy; R: and with counts */
		ask_for_samples(&attr, which != 'P', which == 'R');
	for (int cpu = 0; cpu < (for_each_cpu ? (int)sysconf(_SC_NPROCESSORS_ONLN) : 1); cpu++)
		open_with_ring(&attr, for_each_cpu ? cpu : -1);
}

int main(int argc, char **argv)
{
	int status = 1;

	if (argc < 3 || strspn(argv[1], "ALCcPBR") != strlen(argv[1])) {
		fputs("usage: bare_events [ALCcPBR...] COMMAND [ARG...]\n", stderr);
		return 2;
	}
	for (const char *at = argv[1]; *at; at++)
		open_some(*at);
	if (fork() == 0) {
		execvp(argv[2], argv + 2);
		_exit(127);
	}
	return wait(&status) < 0 || !WIFEXITED(status) ? 1 : WEXITSTATUS(status);
}
