/* The comments of a profile (facts.h): everything that report prints beside its table. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "launcher/collect/collect_impl.h"
#include "launcher/collect/moment.h"

static void add_machine(struct csink_profile *p)
{
	CSINK_AUTO_FCLOSE FILE *info = fopen("/proc/cpuinfo", "re");
	struct utsname name;
	char line[512], *value;

	if (!uname(&name)) {
		csink_profile_fact_add(p, CSINK_FACT_HOST, "%s", name.nodename);
		csink_profile_fact_add(p, CSINK_FACT_KERNEL, "%s %s %s", name.sysname, name.release, name.machine);
	}
	while (info && fgets(line, sizeof(line), info)) {
		value = strchr(line, ':');
		if (strncmp(line, "model name", 10) || !value)
			continue;
		value[strcspn(value, "\n")] = 0;
		csink_profile_fact_add(p, CSINK_FACT_CPU, "%s", value + 1 + strspn(value + 1, " "));
		break;
	}
	csink_profile_fact_add(p, CSINK_FACT_CPUS, "%ld online of %ld", CSINK_MAX(sysconf(_SC_NPROCESSORS_ONLN), 1L),
			       CSINK_MAX(sysconf(_SC_NPROCESSORS_CONF), 1L));
}

static void add_exit(struct csink_profile *p, int status)
{
	int sig = WIFSIGNALED(status) ? WTERMSIG(status) : 0;

	if (sig)
		csink_profile_fact_add(p, CSINK_FACT_EXIT, "signal %d (%s)", sig, strsignal(sig));
	else if (WIFEXITED(status))
		csink_profile_fact_add(p, CSINK_FACT_EXIT, "status %d", WEXITSTATUS(status));
}

static void add_outside(struct collector *c, const struct csink_outside *outside)
{
	struct csink_profile *p = c->p;

	if (!outside->is_attached)
		add_exit(p, outside->command_status);
	if (c->slice) /* totals are of all slices */
		return;
	if (outside->wall_ns)
		csink_profile_fact_add(p, CSINK_FACT_WALL, "%" PRIu64, outside->wall_ns);
	if (outside->has_rusage) {
		csink_profile_fact_add(p, CSINK_FACT_USER, "%" PRIu64, outside->user_ns);
		csink_profile_fact_add(p, CSINK_FACT_SYS, "%" PRIu64, outside->sys_ns);
		csink_profile_fact_add(p, CSINK_FACT_MAXRSS, "%" PRIu64, outside->max_rss_bytes);
	}
	if (!outside->has_counts && *outside->counts_reason)
		csink_profile_fact_add(p, CSINK_FACT_UNCOUNTED, "%s", outside->counts_reason);
	for (uint32_t i = 0; outside->has_counts && i < outside->nr_counts && i < CSINK_MAX_EVENTS; i++) {
		csink_profile_fact_add(p, CSINK_FACT_COUNTER,
				       "%s %" PRIu64 " %s enabled %" PRIu64 " ns, running %" PRIu64 " ns",
				       outside->counts[i].name, outside->counts[i].value, outside->counts[i].unit,
				       outside->counts[i].time_enabled_ns, outside->counts[i].time_running_ns);
	}
}

static void add_outside_notes(struct csink_profile *p, const struct csink_outside *outside)
{
	for (uint32_t i = 0; i < outside->nr_notes; i++)
		csink_profile_fact_add(p, CSINK_FACT_NOTE, "%s", outside->notes[i]);
}

/* Processes with samples of CPUs are among the unrecorded, or have a recording of the library, too. */
static bool is_counted(const struct collector *c, const struct image *image)
{
	return image->is_read && !image->is_left_out && !image->is_past && !(image->is_by_cpu && c->is_shared);
}

static bool has_counted_former(const struct collector *c, const struct image *image)
{
	while (image->former) {
		image = &c->images[image->former - 1];
		if (is_counted(c, image))
			return true;
	}
	return false;
}

static bool has_past_former(const struct collector *c, const struct image *image)
{
	while (image->former) {
		image = &c->images[image->former - 1];
		if (image->is_past)
			return true;
	}
	return false;
}

/* Of a slice, how much of its processes and threads slices before have: a merge counts these once. */
static void add_continued_fact(struct collector *c, uint64_t processes, uint64_t threads)
{
	struct utsname name;

	if (!uname(&name))
		csink_profile_fact_add(c->p, CSINK_FACT_CONTINUED, "%s/%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64,
				       name.nodename, c->slice->run_start_realtime_ns, c->slice->number, processes,
				       threads);
}

static void add_continued(struct collector *c)
{
	uint64_t processes = 0, threads = 0;

	for (uint32_t i = 0; i < c->nr_images; i++) {
		const struct image *image = &c->images[i];
		bool goes_on = has_counted_former(c, image);
		bool was_before = image->is_continued || has_past_former(c, image);

		if (!is_counted(c, image))
			continue;
		processes += was_before && !goes_on;
		if (image->is_continued)
			threads += CSINK_MAX(image->nr_former_threads, 1) - goes_on;
		else
			threads += was_before && !goes_on;
	}
	add_continued_fact(c, processes, threads);
}

/* Processes: pids that are in the profile. Threads: main threads that went on through exec count once. */
static void add_counts(struct collector *c)
{
	uint64_t processes = c->nr_unrecorded, threads = c->nr_unrecorded_threads;

	for (uint32_t i = 0; i < c->nr_images; i++) {
		bool goes_on = has_counted_former(c, &c->images[i]);

		if (!is_counted(c, &c->images[i]))
			continue;
		processes += !goes_on;
		threads += CSINK_MAX(c->images[i].nr_threads, 1) - goes_on;
	}
	if (c->outside && c->outside->attached_processes) {
		processes = c->outside->attached_processes;
		threads = c->outside->attached_threads;
	}
	csink_profile_fact_add(c->p, CSINK_FACT_PROCESSES, "%" PRIu64, processes);
	csink_profile_fact_add(c->p, CSINK_FACT_THREADS, "%" PRIu64, threads);
	if (c->slice && c->now)
		add_continued(c);
	else if (c->slice)
		add_continued_fact(c, c->slice->former_processes, c->slice->former_threads);
}

/* The run's own description, which each slice has. */
static const struct csink_outside *description(const struct collector *c)
{
	return c->slice ? c->slice->outside : c->outside;
}

static void add_columns(struct collector *c)
{
	const struct csink_outside *outside = description(c);
	struct csink_profile *p = c->p;

	for (uint32_t i = 0; i < c->nr_events; i++) {
		const struct csink_rec_event *event = &c->events[i];

		if (!(event->flags & CSINK_EVENT_LEADER))
			continue;
		csink_profile_fact_add(p, CSINK_FACT_LEADER, "%s", event->name);
		if (event->period)
			csink_profile_fact_add(p, CSINK_FACT_EVERY, "%s %" PRIu64 " %s", event->name, event->period,
					       *event->unit ? event->unit : "count");
	}
	if (outside && *outside->event_reason)
		csink_profile_fact_add(p, CSINK_FACT_EVENT_REASON, "%s", outside->event_reason);
	if (c->cpu_event >= 0)
		csink_profile_fact_add(p, CSINK_FACT_CPU_TYPE, "%s", c->events[c->cpu_event].name);
	for (uint32_t i = 0; i < c->nr_events; i++) {
		if (c->events[i].flags & CSINK_EVENT_OFF_CPU)
			csink_profile_fact_add(p, CSINK_FACT_OFF_CPU, "%s", c->events[i].name);
		if (c->events[i].flags & CSINK_EVENT_WAITED)
			csink_profile_fact_add(p, CSINK_FACT_LOCKS, "%s", c->events[i].name);
		if (c->events[i].flags & (CSINK_EVENT_ALLOCATED | CSINK_EVENT_IN_USE))
			csink_profile_fact_add(p, CSINK_FACT_ALLOCATIONS, "%s %" PRIu64, c->events[i].name,
					       c->events[i].period);
	}
}

/* What each loss is called in CSINK_FACT_LOSS. */
static const char *const loss_words[CSINK_NR_LOSSES] = {
	[CSINK_LOSS_RECORDING_FULL] = "samples with no room left in the recording",
	[CSINK_LOSS_RING] = "samples dropped by the kernel",
	[CSINK_LOSS_THROTTLED] = "times throttled by the kernel",
	[CSINK_LOSS_DEPTH] = "stacks cut at the depth limit",
	[CSINK_LOSS_NO_CFI] = "stacks that end in code without unwind tables or frame pointers",
	[CSINK_LOSS_BAD_STACK] = "stacks that end where memory holds no frame",
	[CSINK_LOSS_RULES] = "stacks that end at unwind rules that are not followed",
	[CSINK_LOSS_SWITCHED] =
		("stacks that end where their thread had gone to another one, which alone was copied (a "
		 "signal handler on an alternate stack, or Go's runtime.morestack)"),
	[CSINK_LOSS_THREADS] = "threads that could not be sampled",
	[CSINK_LOSS_MOMENTS] = "samples with no room left in the timeline",
	[CSINK_LOSS_STUCK] = ("times that a thread was sampled no further, as the event happens in each sample again "
			      "(choose a longer period)"),
};

static void add_losses(struct collector *c)
{
	for (uint32_t i = 0; i < CSINK_NR_LOSSES; i++) {
		if (c->losses[i])
			csink_profile_fact_add(c->p, CSINK_FACT_LOSS, "%" PRIu64 " %s", c->losses[i], loss_words[i]);
	}
}

static void add_alloc_losses(struct collector *c)
{
	static const char *const words[CSINK_NR_ALLOC_LOSSES] = {
		[CSINK_ALLOC_LOSS_FULL] =
			"sampled allocations are not in what is in use, whose table was full (choose a longer period)",
		[CSINK_ALLOC_LOSS_THREAD] =
			"allocations were not sampled, at the end of threads or in those that are not known"};

	for (uint32_t i = 0; i < CSINK_NR_ALLOC_LOSSES; i++)
		if (c->alloc_losses[i])
			csink_profile_fact_add(c->p, CSINK_FACT_LOSS, "%" PRIu64 " %s", c->alloc_losses[i], words[i]);
	if (c->nr_without_in_use)
		csink_profile_fact_add(
			c->p, CSINK_FACT_WARNING,
			"what is in use at the end is not known of %u of the processes: they were killed, "
			"or go on",
			c->nr_without_in_use);
}

static void add_tallies(struct collector *c)
{
	const struct tally *tally;
	const char *text, *sep;

	for (uint32_t i = 0; i < c->nr_tallies; i++) {
		tally = &c->tallies[i];
		text = csink_profile_text(c->p, tally->text);
		sep = strchr(text, ':');
		/* Of a few, how many; what all of them say needs no number. */
		if (tally->nr == 1 || tally->nr == c->nr_images)
			csink_profile_fact_add(c->p, tally->key, "%s", text);
		else if (sep && !strcmp(tally->key, CSINK_FACT_ENGINE))
			csink_profile_fact_add(c->p, tally->key, "%.*s (%u processes)%s", (int)(sep - text), text,
					       tally->nr, sep);
		else
			csink_profile_fact_add(c->p, tally->key, "%s (%u times)", text, tally->nr);
	}
}

static void add_unseen(struct collector *c, const struct csink_outside *outside)
{
	if (outside->has_alloc)
		csink_profile_fact_add(c->p, CSINK_FACT_WARNING,
				       "allocations of programs that cannot be injected are not seen");
	if (outside->has_lock)
		csink_profile_fact_add(c->p, CSINK_FACT_WARNING,
				       "waits for locks in programs that cannot be injected are not seen");
}

void csink_collect_facts(struct collector *c)
{
	const struct csink_outside *outside = description(c);
	struct csink_profile *p = c->p;

	if (c->unwaited_ns > 0 && !c->slice)
		csink_profile_fact_add(p, CSINK_FACT_UNWAITED, "%" PRId64, c->unwaited_ns);
	csink_profile_fact_add(p, CSINK_FACT_VERSION, "%s", CSINK_VERSION);
	if (c->slice)
		csink_collect_slice_facts(c);
	if (outside && *outside->command)
		csink_profile_fact_add(p, CSINK_FACT_COMMAND, "%s", outside->command);
	else if (c->command)
		csink_profile_fact_add(p, CSINK_FACT_COMMAND, "%s", csink_profile_text(p, c->command));
	if (c->outside)
		add_outside(c, c->outside);
	if (outside)
		add_outside_notes(p, outside);
	add_counts(c);
	csink_collect_rank_facts(c);
	add_columns(c);
	add_losses(c);
	add_alloc_losses(c);
	add_tallies(c);
	if (outside &&
	    (csink_profile_fact(p, CSINK_FACT_OUTSIDE, 0) || csink_profile_fact(p, CSINK_FACT_UNPROFILED, 0)))
		add_unseen(c, outside);
	add_machine(p);
}
