/*
 * How exactly does attach count? The target runs in a control group of its own, whose CPU time an event of the kernel's
 * measures on every CPU: the truth, with which what `countersink attach` says of the same time is compared. The group's
 * event is read every millisecond, and attach says when it began: while everything stood still, so that it does not
 * matter when exactly. The end is that of the target.
 *
 * usage: truth COUNTERSINK EVENT RUNS LOW HIGH COMMAND...
 * EVENT: task-clock or page-faults. TAP on standard output; needs root.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_CPUS 1024
#define MAX_POINTS 200000

static const char *event;
static char top[PATH_MAX], group[PATH_MAX + 32];
static int fds[MAX_CPUS], nr_fds, nr_points, mounted;
static struct point {
	uint64_t ns, value;
} points[MAX_POINTS];
static _Atomic int is_over;

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* A hierarchy that perf knows: perf_event of version 1, else version 2. */
static int mount_groups(void)
{
	snprintf(top, sizeof(top), "%s/countersink-groups.XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	if (!mkdtemp(top))
		return -1;
	mounted = 1;
	if (!mount("cgroup", top, "cgroup", 0, "perf_event") || !mount("cgroup2", top, "cgroup2", 0, NULL))
		return 0;
	mounted = 0;
	rmdir(top);
	return -1;
}

static int open_truth(void)
{
	struct perf_event_attr attr = {.size = sizeof(attr), .type = PERF_TYPE_SOFTWARE};
	int fd = open(group, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	/* A CPU's task-clock would count everybody's. */
	attr.config = strcmp(event, "page-faults") ? PERF_COUNT_SW_CPU_CLOCK : PERF_COUNT_SW_PAGE_FAULTS;
	nr_fds = 0;
	for (int cpu = 0; cpu < (int)sysconf(_SC_NPROCESSORS_CONF) && cpu < MAX_CPUS; cpu++) {
		fds[nr_fds] = (int)syscall(SYS_perf_event_open, &attr, fd, cpu, -1,
					   PERF_FLAG_PID_CGROUP | PERF_FLAG_FD_CLOEXEC);
		if (fds[nr_fds] >= 0)
			nr_fds++;
	}
	close(fd);
	return nr_fds ? 0 : -1;
}

static uint64_t read_truth(void)
{
	uint64_t sum = 0, value;

	for (int i = 0; i < nr_fds; i++)
		if (read(fds[i], &value, sizeof(value)) == sizeof(value))
			sum += value;
	return sum;
}

static void *keep_truth(void *arg)
{
	(void)arg;
	while (!is_over && nr_points < MAX_POINTS) {
		uint64_t before = now_ns(), value = read_truth();

		points[nr_points++] = (struct point){before / 2 + now_ns() / 2, value};
		nanosleep(&(struct timespec){0, 1000000}, NULL);
	}
	return NULL;
}

static double truth_at(uint64_t ns)
{
	for (int i = 1; i < nr_points; i++) {
		double part;

		if (points[i].ns < ns)
			continue;
		part = (double)(ns - points[i - 1].ns) / (double)(points[i].ns - points[i - 1].ns);
		return (double)points[i - 1].value + part * (double)(points[i].value - points[i - 1].value);
	}
	return 0;
}

static pid_t start_target(char **argv)
{
	int ready[2];
	char path[PATH_MAX + 64], byte;
	pid_t pid;

	if (pipe(ready))
		return -1;
	pid = fork();
	if (!pid) {
		int fd;

		snprintf(path, sizeof(path), "%s/cgroup.procs", group);
		fd = open(path, O_WRONLY);
		if (fd < 0 || write(fd, "0", 1) != 1)
			_exit(126);
		dup2(ready[1], 1);
		close(ready[0]);
		close(ready[1]);
		execv(argv[0], argv);
		_exit(127);
	}
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1)
		pid = -1;
	close(ready[0]);
	return pid;
}

static double number_after(const char *text, const char *key)
{
	const char *at = strstr(text, key);

	return at ? strtod(at + strlen(key), NULL) : -1;
}

/* What attach says. Returns whether it did. */
static int attach(const char *countersink, pid_t target, char *text, size_t size)
{
	char pid_text[16];
	int out[2], status;
	size_t len = 0;
	ssize_t n;
	pid_t pid;

	snprintf(pid_text, sizeof(pid_text), "%d", (int)target);
	if (pipe(out))
		return 0;
	pid = fork();
	if (!pid) {
		dup2(out[1], 1);
		close(out[0]);
		close(out[1]);
		execl(countersink, countersink, "attach", "-q", "-j", "-e", event, "-o", "/dev/null", "-p", pid_text,
		      (char *)NULL);
		_exit(127);
	}
	close(out[1]);
	while (len < size - 1 && (n = read(out[0], text + len, size - 1 - len)) > 0)
		len += (size_t)n;
	text[len] = 0;
	close(out[0]);
	return waitpid(pid, &status, 0) == pid && !status;
}

/* Returns the ratio; below 0: it could not be had. */
static double run_once(const char *countersink, char **target_argv, double *stop_ms, int *stopped)
{
	char text[65536];
	pthread_t thread;
	double from, value, end;
	pid_t target;
	int done;

	snprintf(group, sizeof(group), "%s/target.%d", top, (int)getpid());
	if (mkdir(group, 0755) || open_truth())
		return -1;
	nr_points = 0;
	is_over = 0;
	target = start_target(target_argv);
	pthread_create(&thread, NULL, keep_truth, NULL);
	done = target > 0 && attach(countersink, target, text, sizeof(text));
	if (target > 0)
		waitpid(target, NULL, 0);
	is_over = 1;
	pthread_join(thread, NULL);
	end = (double)read_truth();
	for (int i = 0; i < nr_fds; i++)
		close(fds[i]);
	for (int i = 0; i < 100 && rmdir(group) && errno == EBUSY; i++) /* the dead leave a moment later */
		nanosleep(&(struct timespec){0, 10000000}, NULL);
	if (!done)
		return -2;
	from = truth_at((uint64_t)number_after(text, "\"from_monotonic_ns\":"));
	value = number_after(text, "\"value\":");
	*stop_ms = number_after(text, "\"stop_ms\":");
	*stopped = strstr(text, "\"stopped\":true") || strstr(text, "\"stopped\": true");
	return from > 0 && end > from ? value / (end - from) : -3;
}

int main(int argc, char **argv)
{
	double low, high, min = 1e9, max = 0, stop_ms = -1, longest = 0;
	int runs, stopped = 0;

	if (argc < 7)
		return 2;
	if (mount_groups()) {
		printf("1..0 # SKIP no control groups of perf_event's can be mounted here (%s)\n", strerror(errno));
		return 0;
	}
	event = argv[2];
	runs = atoi(argv[3]);
	low = atof(argv[4]);
	high = atof(argv[5]);
	printf("1..%d\n", runs);
	for (int i = 1; i <= runs; i++) {
		double ratio = run_once(argv[1], argv + 6, &stop_ms, &stopped);

		printf("%sok %d - counted / truth = %.4f, stood still for %.1f ms\n",
		       ratio >= low && ratio <= high && stopped ? "" : "not ", i, ratio, stop_ms);
		fflush(stdout);
		min = ratio < min ? ratio : min;
		max = ratio > max ? ratio : max;
		longest = stop_ms > longest ? stop_ms : longest;
	}
	printf("# %d runs: min %.4f, max %.4f; the longest stop %.1f ms\n", runs, min, max, longest);
	if (mounted) {
		umount(top);
		rmdir(top);
	}
	return min >= low && max <= high ? 0 : 1;
}
