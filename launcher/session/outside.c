/* Exact totals from outside: see outside.h. */
#include "launcher/session/outside.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include "include/countersink/explain.h"
#include "include/internal/base.h"
#include "include/internal/clock.h"
#include "include/internal/grow.h"
#include "launcher/base/message.h"
#include "launcher/session/process_tree.h"

int csink_outside_open_event(struct csink_event_spec *spec, const struct csink_outside_how *how,
			     struct perf_event_attr *attr)
{
	int fd;

	for (;;) {
		*attr = spec->attr;
		attr->size = sizeof(*attr);
		attr->freq = 0;
		attr->sample_period = 0;
		attr->precise_ip = 0; /* says where a sample is; some PMUs refuse it to what does not sample */
		attr->inherit = 1;
		/* Members follow their leader; each is switched on by itself all the same where it leads nothing. */
		attr->disabled = how->group_fd < 0;
		attr->enable_on_exec = how->group_fd < 0;
		attr->read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
		if (how->add)
			how->add(attr, how->arg);
		fd = csink_perf_open(attr, 0, how->cpu, how->group_fd, PERF_FLAG_FD_CLOEXEC);
		if ((fd != -EACCES && fd != -EPERM) || spec->attr.exclude_kernel || csink_event_is_kernels_own(spec))
			return fd;
		csink_event_set_user_only(spec);
	}
}

int csink_outside_open_dummy(const struct csink_outside_how *how)
{
	struct perf_event_attr attr = csink_perf_least();

	if (how->add)
		how->add(&attr, how->arg);
	return csink_perf_open(&attr, 0, how->cpu, how->group_fd, PERF_FLAG_FD_CLOEXEC);
}

/*
 * While parent and child have the same events, the kernel may let them swap contexts at a switch between them. Were
 * that to happen between launcher and command, the command would exit with the originals, which leave no
 * PERF_RECORD_READ. One event that is not inherited makes their contexts different for good.
 */
int csink_outside_open_anchor(void)
{
	const struct csink_outside_how how = {.cpu = -1, .group_fd = -1};

	return csink_outside_open_dummy(&how);
}

/* Each event that is inherited costs every fork, exec and switch between threads: the tree's own task-clock serves for
 * the one that was asked for, too, unless that is in a group. */
static bool is_tree_clock(const struct csink_outside_watch *watch, const struct csink_event_spec *specs, uint32_t i)
{
	bool is_alone = (!i || specs[i - 1].group != specs[i].group) &&
			(i + 1 >= watch->nr_events || specs[i + 1].group != specs[i].group);

	return watch->tree && is_alone && specs[i].attr.type == PERF_TYPE_SOFTWARE &&
	       specs[i].attr.config == PERF_COUNT_SW_TASK_CLOCK;
}

static bool is_trees_own(const struct csink_outside_watch *watch, int fd)
{
	return watch->tree && fd == csink_process_tree_clock_fd(watch->tree);
}

static void counts_open(struct csink_outside_watch *watch, const struct csink_event_spec *specs, uint32_t nr)
{
	const struct csink_clocks_how tree = {.inherit = true, .at_exec = true};
	struct csink_outside_how how = {.cpu = -1, .group_fd = -1};
	struct perf_event_attr attr;
	int leader = -1;

	watch->nr_events = CSINK_MIN(nr, (uint32_t)CSINK_MAX_EVENTS);
	for (uint32_t i = 0; i < watch->nr_events; i++) {
		bool leads = !i || specs[i].group != specs[i - 1].group;
		int fd;

		watch->events[i].spec = specs[i];
		how.group_fd = leads ? -1 : leader;
		if (specs[i].cpu_wide)
			fd = -EOPNOTSUPP;
		else if (is_tree_clock(watch, specs, i))
			fd = csink_process_tree_clock_fd(watch->tree);
		else
			fd = csink_outside_open_event(&watch->events[i].spec, &how, &attr);
		watch->events[i].fd = fd < 0 ? -1 : fd;
		watch->events[i].err = fd < 0 ? fd : 0;
		if (leads)
			leader = watch->events[i].fd;
	}
	csink_clocks_init(&watch->clocks, specs, watch->nr_events);
	csink_clocks_open(&watch->clocks, &tree);
}

void csink_outside_open(struct csink_outside_watch *watch, const struct csink_event_spec *specs, uint32_t nr)
{
	struct csink_event_spec shared[CSINK_MAX_EVENTS];
	int err;

	nr = CSINK_MIN(nr, (uint32_t)CSINK_MAX_EVENTS);
	memcpy(shared, specs, nr * sizeof(*specs));
	for (uint32_t i = 0; i < nr; i++)
		shared[i].attr.pinned = shared[i].attr.exclusive = 0;
	memset(watch, 0, sizeof(*watch));
	err = csink_process_tree_open(&watch->tree);
	if (err)
		csink_explain_brief(-err, watch->tree_reason, sizeof(watch->tree_reason));
	counts_open(watch, shared, nr);
}

int csink_outside_fd(const struct csink_outside_watch *watch)
{
	return watch->tree ? csink_process_tree_fd(watch->tree) : -1;
}

void csink_outside_drain(struct csink_outside_watch *watch)
{
	if (watch->tree)
		csink_process_tree_drain(watch->tree);
}

static uint64_t scaled(uint64_t value, uint64_t enabled_ns, uint64_t running_ns)
{
	if (!running_ns || running_ns >= enabled_ns)
		return value;
	return (uint64_t)((double)value * (double)enabled_ns / (double)running_ns + 0.5);
}

void csink_outside_add_count(struct csink_outside *out, const struct csink_event_spec *spec, uint64_t value,
			     uint64_t could_ns, uint64_t running_ns)
{
	if (spec->scale != 1 && spec->scale > 0)
		value = (uint64_t)((double)value * spec->scale + 0.5);
	/* A clock counts the kernel's time whatever is excluded; other events then mean user space alone. */
	snprintf(out->counts[out->nr_counts].name, sizeof(out->counts[0].name), "%.60s%s", spec->rec.name,
		 spec->rec.flags & CSINK_EVENT_USER_ONLY && !(spec->rec.flags & CSINK_EVENT_CPU_NS) &&
				 !strchr(spec->rec.name, ':')
			 ? ":u"
			 : "");
	snprintf(out->counts[out->nr_counts].unit, sizeof(out->counts[0].unit), "%s", spec->rec.unit);
	out->counts[out->nr_counts].value = value;
	out->counts[out->nr_counts].time_enabled_ns = could_ns;
	out->counts[out->nr_counts].time_running_ns = running_ns;
	out->counts[out->nr_counts].column = -1;
	out->nr_counts++;
	out->has_counts = 1;
}

/* What one event counted: value, and how long it could have and did. */
static void add_count(const struct csink_event_spec *spec, uint64_t value, uint64_t could_ns, uint64_t running_ns,
		      struct csink_outside *out)
{
	char why[CSINK_WHY_BYTES];

	if (!running_ns && (could_ns || spec->cpus[0])) {
		csink_outside_note(out, "%s was not counted from outside: %s", spec->rec.name,
				   could_ns ? "the kernel never had a counter free for it"
					    : "nothing ran on its kind of CPU");
		return;
	}
	if (!value && running_ns && csink_event_doubt_zero(spec, why, sizeof(why)))
		csink_outside_note(out, "%s %s", spec->rec.name, why);
	csink_outside_add_count(out, spec, scaled(value, could_ns, running_ns), could_ns, running_ns);
}

/* @got  value, time enabled, time running. The tree's event has its value alone, which is both. */
static bool read_count(const struct csink_outside_watch *watch, int fd, uint64_t got[3])
{
	if (fd < 0 || !is_trees_own(watch, fd))
		return fd >= 0 && read(fd, got, 3 * sizeof(*got)) == 3 * sizeof(*got);
	if (read(fd, got, sizeof(*got)) != sizeof(*got))
		return false;
	got[1] = got[2] = got[0];
	return true;
}

/* All are read before any is scaled: some are scaled by the times of others. */
static void counts_read(struct csink_outside_watch *watch, struct csink_outside *out)
{
	struct csink_event_times times[CSINK_MAX_EVENTS + CSINK_MAX_CLOCKS];
	uint64_t got[3], values[CSINK_MAX_EVENTS];
	bool was_read[CSINK_MAX_EVENTS];
	uint32_t nr = watch->nr_events;

	for (uint32_t i = 0; i < watch->nr_events; i++) {
		times[i] = (struct csink_event_times){.spec = &watch->events[i].spec};
		was_read[i] = read_count(watch, watch->events[i].fd, got);
		if (!was_read[i])
			continue;
		values[i] = got[0];
		times[i].enabled_ns = got[1];
		times[i].running_ns = got[2];
	}
	nr += csink_clocks_read(&watch->clocks, times + nr);
	for (uint32_t i = 0; i < watch->nr_events; i++)
		if (was_read[i])
			add_count(times[i].spec, values[i], csink_event_could_run_ns(times, nr, i), times[i].running_ns,
				  out);
}

/* Why not, for those that were refused: once for all where nothing was counted, else a note for each. */
static void explain_refused(struct csink_outside_watch *watch, struct csink_outside *out)
{
	char why[CSINK_WHY_BYTES];

	for (uint32_t i = 0; i < watch->nr_events; i++) {
		if (watch->events[i].fd >= 0)
			continue;
		if (watch->events[i].spec.cpu_wide)
			snprintf(why, sizeof(why), "it counts whole CPUs, not processes");
		else
			csink_explain_brief(-watch->events[i].err, why, sizeof(why));
		if (out->has_counts)
			csink_outside_note(out, "%s was not counted from outside: %s", watch->events[i].spec.rec.name,
					   why);
		else if (!out->counts_reason[0])
			snprintf(out->counts_reason, sizeof(out->counts_reason), "%s", why);
	}
}

static void tree_read(struct csink_outside_watch *watch, int32_t command_pid, enum csink_spawn_reason reason,
		      struct csink_outside *out)
{
	struct csink_process_tree_result result;

	if (!watch->tree) {
		if (strcmp(out->counts_reason, watch->tree_reason))
			csink_outside_note(out, "processes are not known from outside: %s", watch->tree_reason);
		return;
	}
	if (csink_process_tree_finish(watch->tree, &result)) {
		free(result.processes);
		csink_outside_note(out, "processes are not known from outside: no memory for them");
		return;
	}
	out->processes = result.processes;
	out->nr_processes = result.nr_processes;
	out->threads = result.threads;
	out->nr_threads = result.nr_threads;
	if (result.nr_lost)
		csink_outside_note(
			out,
			"%llu of the kernel's records of processes were lost: some are missing or without CPU time",
			(unsigned long long)result.nr_lost);
	for (uint32_t i = 0; i < out->nr_processes; i++) {
		struct csink_outside_process *process = &out->processes[i];

		if (process->pid != command_pid)
			continue;
		process->reason = (uint8_t)reason;
		break;
	}
}

void csink_outside_finish(struct csink_outside_watch *watch, const struct rusage *usage, int32_t command_pid,
			  enum csink_spawn_reason reason, struct csink_outside *out)
{
	if (usage) {
		out->user_ns = csink_timeval_ns(&usage->ru_utime);
		out->sys_ns = csink_timeval_ns(&usage->ru_stime);
		out->max_rss_bytes = (uint64_t)usage->ru_maxrss * 1024;
		out->has_rusage = 1;
	}
	if (watch->tree)
		csink_process_tree_settle(watch->tree);
	counts_read(watch, out);
	explain_refused(watch, out);
	tree_read(watch, command_pid, reason, out);
}

void csink_outside_close(struct csink_outside_watch *watch)
{
	for (uint32_t i = 0; i < watch->nr_events; i++) {
		if (watch->events[i].fd >= 0 && !is_trees_own(watch, watch->events[i].fd))
			close(watch->events[i].fd);
	}
	csink_clocks_close(&watch->clocks);
	csink_process_tree_close(watch->tree);
	memset(watch, 0, sizeof(*watch));
}

void csink_outside_note(struct csink_outside *out, const char *fmt, ...)
{
	va_list ap;
	int len;

	if (CSINK_GROW_UNCAPPED(out->notes, out->nr_notes))
		return;
	va_start(ap, fmt);
	len = vasprintf(&out->notes[out->nr_notes], fmt, ap);
	va_end(ap);
	if (len >= 0)
		out->nr_notes++;
}

void csink_outside_free(struct csink_outside *out)
{
	for (uint32_t i = 0; i < out->nr_notes; i++)
		free(out->notes[i]);
	free(out->notes);
	free(out->processes);
	free(out->threads);
	out->notes = NULL;
	out->processes = NULL;
	out->threads = NULL;
	out->nr_notes = out->nr_processes = out->nr_threads = 0;
}
