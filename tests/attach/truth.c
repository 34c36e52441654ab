/*
 * How exactly does attach count? One target, counted in three ways at once:
 *   group    events of the control group in which it runs alone, on every CPU
 *   control  events that its parent opened before its exec, inherited by all that it starts: nothing can be missed
 *   attach   what `countersink attach` says, which came when all of it was running already
 * Control and attach count a task in the same way: what attach misses, or counts twice, is the ratio of these two. A
 * group's CPU time runs from the switch to its first task to the switch from its last one; that of tasks also stops
 * between them, and begins and ends a little later and earlier than they. This difference of the two events is the
 * ratio of control and group, in which attach has no part.
 *
 * Attach says when it began: while everything stood still. The others are read every few milliseconds, so that it does
 * not matter when exactly. The end is that of the target.
 *
 * usage: truth COUNTERSINK EVENTS RUNS LOW HIGH COMMAND...
 * EVENTS: names out of kinds[], with commas. TAP on standard output; needs root.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_CPUS 256
#define MAX_POINTS 20000
#define POINT_NS 4000000
#define SYS_ENTER "/sys/kernel/tracing/events/raw_syscalls/sys_enter/id"

/* What can be compared. in_group: the group's event means the same thing, so that attach is held to it, too. */
static struct kind {
	const char *name;
	uint32_t type;
	uint64_t config, group_config;
	int in_group, user_only;
} kinds[] = {
	/* A CPU's task-clock would count everybody's. */
	{"task-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, PERF_COUNT_SW_CPU_CLOCK, 0, 0},
	{"page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, PERF_COUNT_SW_PAGE_FAULTS, 1, 0},
	/* A task's last switch, out of its exit, is the group's only. */
	{"context-switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES, PERF_COUNT_SW_CONTEXT_SWITCHES, 0, 0},
	{"raw_syscalls:sys_enter", PERF_TYPE_TRACEPOINT, 0, 0, 1, 0},
	{"instructions:u", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, PERF_COUNT_HW_INSTRUCTIONS, 1, 1},
	{"cycles:u", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, PERF_COUNT_HW_CPU_CYCLES, 1, 1},
};

enum { MAX_KINDS = sizeof(kinds) / sizeof(kinds[0]) };

static struct kind *chosen[MAX_KINDS];
static int nr_chosen;
static char list[512]; /* for attach: the first one samples, the others are counted with it */

static char top[PATH_MAX], group[PATH_MAX + 32];
static int group_fds[MAX_KINDS][MAX_CPUS], control_fds[MAX_KINDS], nr_cpus, nr_points;

struct values {
	double group[MAX_KINDS], control[MAX_KINDS];
};

static struct point {
	uint64_t ns;
	struct values values;
} points[MAX_POINTS];
static _Atomic int is_over;

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* ---- making ready ---- */

/* Mounts of our own, which go with us. A hierarchy that perf knows: perf_event of version 1, else version 2. */
static int mount_all(void)
{
	snprintf(top, sizeof(top), "%s/countersink-groups.XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) || !mkdtemp(top))
		return -1;
	if (access(SYS_ENTER, R_OK))
		mount("tracefs", "/sys/kernel/tracing", "tracefs", 0, NULL);
	if (!mount("cgroup", top, "cgroup", 0, "perf_event") || !mount("cgroup2", top, "cgroup2", 0, NULL))
		return 0;
	rmdir(top);
	return -1;
}

static int choose(const char *names)
{
	char text[512], *rest = text, *name;

	snprintf(text, sizeof(text), "%s", names);
	while ((name = strsep(&rest, ","))) {
		struct kind *kind = kinds;

		while (kind < kinds + MAX_KINDS && strcmp(kind->name, name))
			kind++;
		if (kind == kinds + MAX_KINDS || nr_chosen == MAX_KINDS)
			return -1;
		if (kind->type == PERF_TYPE_TRACEPOINT) {
			FILE *file = fopen(SYS_ENTER, "r");
			unsigned long long id;

			if (!file || fscanf(file, "%llu", &id) != 1) {
				printf("# no %s here: it takes tracefs\n", name);
				continue;
			}
			fclose(file);
			kind->config = kind->group_config = id;
		}
		chosen[nr_chosen++] = kind;
	}
	strcat(list, "{");
	for (int i = 0; i < nr_chosen; i++)
		sprintf(list + strlen(list), "%s%s", i ? "," : "", chosen[i]->name);
	strcat(list, "}");
	return nr_chosen ? 0 : -1;
}

static int open_group(void)
{
	int fd = open(group, O_RDONLY | O_DIRECTORY | O_CLOEXEC), ok = fd >= 0;

	nr_cpus = (int)sysconf(_SC_NPROCESSORS_CONF);
	for (int i = 0; i < nr_chosen; i++) {
		struct perf_event_attr attr = {.size = sizeof(attr),
					       .type = chosen[i]->type,
					       .config = chosen[i]->group_config,
					       .exclude_kernel = chosen[i]->user_only,
					       .exclude_hv = chosen[i]->user_only};

		for (int cpu = 0; cpu < nr_cpus && cpu < MAX_CPUS; cpu++) {
			group_fds[i][cpu] = (int)syscall(SYS_perf_event_open, &attr, fd, cpu, -1,
							 PERF_FLAG_PID_CGROUP | PERF_FLAG_FD_CLOEXEC);
			ok &= group_fds[i][cpu] >= 0 || errno == ENODEV;
		}
	}
	close(fd);
	return ok ? 0 : -1;
}

static int open_control(pid_t pid)
{
	int ok = 1;

	for (int i = 0; i < nr_chosen; i++) {
		struct perf_event_attr attr = {.size = sizeof(attr),
					       .type = chosen[i]->type,
					       .config = chosen[i]->config,
					       .disabled = 1,
					       .enable_on_exec = 1,
					       .inherit = 1,
					       .exclude_kernel = chosen[i]->user_only,
					       .exclude_hv = chosen[i]->user_only};

		control_fds[i] = (int)syscall(SYS_perf_event_open, &attr, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);
		ok &= control_fds[i] >= 0;
	}
	return ok ? 0 : -1;
}

static void close_all(void)
{
	for (int i = 0; i < nr_chosen; i++) {
		close(control_fds[i]);
		for (int cpu = 0; cpu < nr_cpus; cpu++)
			close(group_fds[i][cpu]);
	}
}

/* ---- reading ---- */

static double read_fd(int fd)
{
	uint64_t value;

	return fd >= 0 && read(fd, &value, sizeof(value)) == sizeof(value) ? (double)value : 0;
}

static double read_group(int i)
{
	double sum = 0;

	for (int cpu = 0; cpu < nr_cpus; cpu++)
		sum += read_fd(group_fds[i][cpu]);
	return sum;
}

static void read_all(struct values *values)
{
	for (int i = 0; i < nr_chosen; i++) {
		values->group[i] = read_group(i);
		values->control[i] = read_fd(control_fds[i]);
	}
}

/* Before everything else that runs here: a point that comes late lies behind the time that it is needed for. */
static void *keep_points(void *arg)
{
	const struct sched_param param = {.sched_priority = 1};

	(void)arg;
	pthread_setschedparam(pthread_self(), SCHED_FIFO, &param);
	while (!is_over && nr_points < MAX_POINTS) {
		struct point *point = &points[nr_points];
		uint64_t before = now_ns();

		read_all(&point->values);
		point->ns = before / 2 + now_ns() / 2;
		nr_points++;
		nanosleep(&(struct timespec){0, POINT_NS}, NULL);
	}
	return NULL;
}

/* Returns false where it is not known. */
static int values_at(uint64_t ns, struct values *values)
{
	for (int k = 1; k < nr_points; k++) {
		const struct point *a = &points[k - 1], *b = &points[k];
		double part = (double)(ns - a->ns) / (double)(b->ns - a->ns);

		if (b->ns < ns)
			continue;
		for (int i = 0; i < nr_chosen; i++) {
			values->group[i] = a->values.group[i] + part * (b->values.group[i] - a->values.group[i]);
			values->control[i] =
				a->values.control[i] + part * (b->values.control[i] - a->values.control[i]);
		}
		return a->ns <= ns;
	}
	return 0;
}

/* ---- the target, and attach ---- */

/* In the group, and stopped before its exec until everything is open. Returns it when it says that it is ready. */
static pid_t start_target(char **argv)
{
	int ready[2], go[2];
	char path[PATH_MAX + 64], byte;
	pid_t pid;
	FILE *procs;

	if (pipe(ready) || pipe(go))
		return -1;
	pid = fork();
	if (!pid) {
		setpriority(PRIO_PROCESS, 0, 0);
		dup2(ready[1], 1);
		close(ready[0]);
		close(ready[1]);
		close(go[1]);
		if (read(go[0], &byte, 1) == 1)
			execv(argv[0], argv);
		_exit(127);
	}
	close(ready[1]);
	close(go[0]);
	snprintf(path, sizeof(path), "%s/cgroup.procs", group);
	procs = fopen(path, "w");
	if (!procs || fprintf(procs, "%d", (int)pid) < 0 || fclose(procs) || open_control(pid) ||
	    write(go[1], "g", 1) != 1 || read(ready[0], &byte, 1) != 1) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		pid = -1;
	}
	close(go[1]);
	close(ready[0]);
	return pid;
}

/* So that what is looked for needs no care for blanks; none of the names has one. */
static void drop_blanks(char *text)
{
	char *to = text;

	for (; *text; text++)
		if (*text != ' ' && *text != '\n')
			*to++ = *text;
	*to = 0;
}

static double number_after(const char *text, const char *key)
{
	const char *at = text ? strstr(text, key) : NULL;

	return at ? strtod(at + strlen(key), NULL) : -1;
}

static double value_of(const char *text, const struct kind *kind)
{
	char key[128];

	snprintf(key, sizeof(key), "\"name\":\"%s\"", kind->name);
	return number_after(strstr(text, key), "\"value\":");
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
		setpriority(PRIO_PROCESS, 0, 0);
		dup2(out[1], 1);
		close(out[0]);
		close(out[1]);
		execl(countersink, countersink, "attach", "-q", "-j", "-e", list, "-o", "/dev/null", "-p", pid_text,
		      (char *)NULL);
		_exit(127);
	}
	close(out[1]);
	while (len < size - 1 && (n = read(out[0], text + len, size - 1 - len)) > 0)
		len += (size_t)n;
	text[len] = 0;
	drop_blanks(text);
	close(out[0]);
	return waitpid(pid, &status, 0) == pid && !status;
}

/* ---- comparing ---- */

struct ratios {
	double of_control[MAX_KINDS], of_group[MAX_KINDS], control_of_group[MAX_KINDS];
};

/* Returns NULL, or what went wrong. */
static const char *run_once(const char *countersink, char **argv, struct ratios *ratios, double *stop_ms)
{
	static char text[65536];
	struct values from, to;
	pthread_t thread;
	pid_t target;
	int done;

	snprintf(group, sizeof(group), "%s/target.%d", top, (int)getpid());
	if (mkdir(group, 0755) || open_group())
		return "the group's events cannot be opened";
	nr_points = 0;
	is_over = 0;
	target = start_target(argv);
	if (target < 0)
		return "the target, or the control, cannot be started";
	pthread_create(&thread, NULL, keep_points, NULL);
	done = attach(countersink, target, text, sizeof(text));
	waitpid(target, NULL, 0);
	is_over = 1;
	pthread_join(thread, NULL);
	read_all(&to);
	close_all();
	for (int i = 0; i < 100 && rmdir(group) && errno == EBUSY; i++) /* the dead leave a moment later */
		nanosleep(&(struct timespec){0, 10000000}, NULL);
	if (!done)
		return "attach failed";
	*stop_ms = number_after(text, "\"stop_ms\":");
	if (!strstr(text, "\"stopped\":true"))
		return "attach could not stop the target";
	if (!values_at((uint64_t)number_after(text, "\"from_monotonic_ns\":"), &from))
		return "attach began when nothing was read";
	for (int i = 0; i < nr_chosen; i++) {
		double value = value_of(text, chosen[i]);

		ratios->of_control[i] = value / (to.control[i] - from.control[i]);
		ratios->of_group[i] = value / (to.group[i] - from.group[i]);
		ratios->control_of_group[i] = (to.control[i] - from.control[i]) / (to.group[i] - from.group[i]);
	}
	return NULL;
}

static void widen(double *min, double *max, double value)
{
	*min = value < *min || !*max ? value : *min;
	*max = value > *max ? value : *max;
}

int main(int argc, char **argv)
{
	double low, high, stop_min = 0, stop_max = 0;
	struct ratios min = {0}, max = {0}, r;
	int runs, failed = 0;

	if (argc < 7)
		return 2;
	setpriority(PRIO_PROCESS, 0, -20); /* so that the readings come in time */
	if (mount_all()) {
		printf("1..0 # SKIP no control groups of perf_event's can be mounted here (%s)\n", strerror(errno));
		return 0;
	}
	if (choose(argv[2]))
		return 2;
	runs = atoi(argv[3]);
	low = atof(argv[4]);
	high = atof(argv[5]);
	printf("1..%d\n", runs);
	for (int run = 1; run <= runs; run++) {
		double stop_ms = 0;
		const char *why = run_once(argv[1], argv + 6, &r, &stop_ms);
		int good = !why;

		for (int i = 0; !why && i < nr_chosen; i++) {
			good &= r.of_control[i] >= low && r.of_control[i] <= high;
			good &= !chosen[i]->in_group || (r.of_group[i] >= low && r.of_group[i] <= high);
		}
		printf("%sok %d - %s: stood still for %.1f ms\n", good ? "" : "not ", run,
		       why ? why : "attach counts what the control counts", stop_ms);
		for (int i = 0; !why && i < nr_chosen; i++) {
			printf("#   %-24s attach / control %.4f   attach / group %.4f   control / group %.4f\n",
			       chosen[i]->name, r.of_control[i], r.of_group[i], r.control_of_group[i]);
			widen(&min.of_control[i], &max.of_control[i], r.of_control[i]);
			widen(&min.of_group[i], &max.of_group[i], r.of_group[i]);
			widen(&min.control_of_group[i], &max.control_of_group[i], r.control_of_group[i]);
		}
		fflush(stdout);
		widen(&stop_min, &stop_max, stop_ms);
		failed += !good;
	}
	printf("# %d runs, stood still for %.1f to %.1f ms; min to max:\n", runs, stop_min, stop_max);
	printf("# %-24s %-18s %-18s %s\n", "", "attach / control", "attach / group", "control / group");
	for (int i = 0; i < nr_chosen; i++)
		printf("# %-24s %.4f to %.4f   %.4f to %.4f%s   %.4f to %.4f\n", chosen[i]->name, min.of_control[i],
		       max.of_control[i], min.of_group[i], max.of_group[i], chosen[i]->in_group ? "" : "*",
		       min.control_of_group[i], max.control_of_group[i]);
	printf("# *: the two events differ, as control / group says; held to %.3f to %.3f are the others\n", low, high);
	umount(top);
	rmdir(top);
	return failed > 0;
}
