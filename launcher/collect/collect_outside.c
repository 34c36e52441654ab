/*
 * Samples from outside beside recordings of the library: which of them count, and what they weigh. In the launcher's
 * one thread.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "include/internal/grow.h"
#include "launcher/base/search.h"
#include "launcher/collect/collect_impl.h"

struct image *csink_collect_counterpart(struct collector *c, const struct image *outside, int32_t tid)
{
	/* By start: of the same exec are those that follow, to its end. */
	for (struct image *image = (struct image *)outside + 1; image < c->images + c->nr_images; image++) {
		if (image->start_ns > outside->end_ns)
			break;
		if (image->pid != outside->pid || image->is_outside || !image->has_engine || !image->is_read)
			continue;
		if (image->lacks_tids)
			return image;
		for (uint32_t i = 0; i < image->nr_tids; i++)
			if (image->tids[i] == tid)
				return image;
	}
	return NULL;
}

bool csink_collect_is_outside_too(const struct collector *c, const struct image *image)
{
	const struct image *former;

	if (c->is_early)
		return c->outside && c->outside->samples_outside;
	former = image->former ? &c->images[image->former - 1] : NULL;
	return former && former->is_outside && former->end_ns >= image->start_ns;
}

/* ---- CPU time that no sample from outside has ---- */

struct process_time {
	int32_t pid;
	uint64_t cpu_ns; /* 0: not known, or of several processes that had this PID */
};

/* Sorted by PID. Returns how many; 0 without memory. */
static uint32_t list_times(const struct csink_outside *outside, struct process_time **out)
{
	struct process_time *all = calloc((size_t)outside->nr_processes + 1, sizeof(*all));
	uint32_t kept = 0;

	*out = all;
	if (!all || !outside->nr_processes)
		return 0;
	for (uint32_t i = 0; i < outside->nr_processes; i++)
		all[i] = (struct process_time){outside->processes[i].pid,
					       outside->processes[i].has_cpu ? outside->processes[i].cpu_ns : 0};
	qsort(all, outside->nr_processes, sizeof(*all), csink_compare_i32);
	for (uint32_t i = 1; i < outside->nr_processes; i++) {
		if (all[i].pid == all[kept].pid)
			all[kept].cpu_ns = 0;
		else
			all[++kept] = all[i];
	}
	return kept + 1;
}

/* What the samples of an image weigh, by its header. */
static uint64_t sampled_ns(const struct image *image)
{
	return image->cpu_end_ns - image->cpu_start_ns;
}

/*
 * A run of images from outside in one process, between images of the library: give each its share of the CPU time that
 * their samples lack.
 * @from_ns  of the process's CPU clock: where the library's image before it ended
 * @to_ns    where the next one began, or the process ended
 */
static void share(struct collector *c, const struct csink_collect_part *parts, uint32_t nr, uint64_t from_ns,
		  uint64_t to_ns)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < nr; i++)
		sum += sampled_ns(&c->images[parts[i].image]);
	for (uint32_t i = 0; i < nr && sum && to_ns > from_ns; i++) {
		struct image *image = &c->images[parts[i].image];

		image->unsampled_ns =
			((double)(to_ns - from_ns) - (double)sum) * ((double)sampled_ns(image) / (double)sum);
	}
}

static void share_process(struct collector *c, const struct csink_collect_part *parts, uint32_t nr, uint64_t cpu_ns)
{
	uint64_t from_ns = 0;
	uint32_t first = 0;

	for (uint32_t i = 0; i < nr; i++) {
		struct image *image = &c->images[parts[i].image];

		if (image->is_outside)
			continue;
		for (uint32_t k = first; k < i; k++)
			c->images[parts[k].image].becomes_inside = true;
		share(c, parts + first, i - first, from_ns, image->cpu_start_ns);
		from_ns = image->cpu_end_ns;
		first = i + 1;
	}
	/* After an exec, what no sample has is of the program that came then. */
	if (first < nr && c->images[parts[nr - 1].image].state != CSINK_REC_EXECED)
		share(c, parts + first, nr - first, from_ns, cpu_ns);
}

/* ---- processes without samples of their own ---- */

/*
 * Such a process is shorter than a period. What a CPU's samples have of it at random is not its CPU time, but over all
 * processes of a program they are in proportion to it: so together they have what the kernel counted of all of these.
 */
struct process_number {
	int32_t pid;
	uint32_t number; /* in c->outside's processes */
};

static struct unseen *unseen_of(struct collector *c, const char *comm)
{
	for (uint32_t i = 0; i < c->nr_unseen; i++)
		if (!strncmp(c->unseen[i].comm, comm, sizeof(c->unseen[i].comm)))
			return &c->unseen[i];
	if (CSINK_GROW(c->unseen, c->nr_unseen, c->cap_unseen))
		return NULL;
	c->unseen[c->nr_unseen] = (struct unseen){0};
	memcpy(c->unseen[c->nr_unseen].comm, comm, sizeof(c->unseen[0].comm));
	return &c->unseen[c->nr_unseen++];
}

/* What the library's images before it have of its CPU time; UINT64_MAX: the last of them did not exec. */
static uint64_t recorded_ns(const struct collector *c, const struct csink_collect_part *parts, int32_t pid)
{
	uint32_t at = CSINK_LOWER(c->nr_images, i, parts[i].pid < pid);
	uint64_t ns = 0;

	for (; at < c->nr_images && parts[at].pid == pid; at++) {
		const struct image *image = &c->images[parts[at].image];

		if (image->is_outside)
			continue;
		ns = image->state == CSINK_REC_EXECED ? image->cpu_end_ns : UINT64_MAX;
	}
	return ns;
}

/* Give the images of samples of CPUs their programs. A program is what its process was last: the samples may be of a
 * fork of another one, before its exec. */
static int find_unseen(struct collector *c)
{
	CSINK_AUTO_FREE struct process_number *numbers = calloc(c->outside->nr_processes + 1UL, sizeof(*numbers));
	const struct process_number *found;
	uint32_t nr = 0;

	if (!numbers)
		return -ENOMEM;
	for (uint32_t i = 0; i < c->outside->nr_processes; i++)
		if (c->outside->processes[i].is_unseen)
			numbers[nr++] = (struct process_number){c->outside->processes[i].pid, i};
	qsort(numbers, nr, sizeof(*numbers), csink_compare_i32);
	for (uint32_t i = 0; i < c->nr_images && nr; i++) {
		struct image *image = &c->images[i];
		struct unseen *unseen;

		found = image->is_by_cpu ? bsearch(&(struct process_number){.pid = image->pid}, numbers, nr,
						   sizeof(*numbers), csink_compare_i32)
					 : NULL;
		unseen = found ? unseen_of(c, c->outside->processes[found->number].comm) : NULL;
		if (!unseen)
			continue;
		unseen->sampled_ns += (double)sampled_ns(image);
		image->unseen = (uint32_t)(unseen - c->unseen) + 1;
	}
	return 0;
}

static int share_unseen(struct collector *c, const struct csink_collect_part *parts)
{
	const struct csink_outside *outside = c->outside;
	struct unseen *unseen;

	c->is_shared = calloc(outside->nr_processes + 1UL, sizeof(*c->is_shared));
	if (!c->is_shared || find_unseen(c))
		return -ENOMEM;
	for (uint32_t i = 0; i < outside->nr_processes && c->nr_unseen; i++) {
		const struct csink_outside_process *process = &outside->processes[i];
		uint64_t from_ns = process->is_unseen ? recorded_ns(c, parts, process->pid) : UINT64_MAX;

		unseen = from_ns < process->cpu_ns ? unseen_of(c, process->comm) : NULL;
		if (!unseen || unseen->sampled_ns <= 0)
			continue;
		unseen->ns += (double)(process->cpu_ns - from_ns);
		c->is_shared[i] = true;
	}
	return 0;
}

static double unseen_scale(const struct collector *c, const struct image *image)
{
	const struct unseen *unseen = image->unseen ? &c->unseen[image->unseen - 1] : NULL;

	if (!c->is_shared) /* what the kernel counted is not known: a run whose launcher was killed at its end */
		return 1;
	return unseen && unseen->sampled_ns > 0 ? c->most * unseen->ns / unseen->sampled_ns : 0;
}

/* ---- all together ---- */

/* Does wait4(2) have the time of all processes? */
static bool has_all_times(const struct csink_outside *outside)
{
	for (uint32_t i = 0; i < outside->nr_processes; i++)
		if (outside->processes[i].is_unwaited || outside->processes[i].still_running)
			return false;
	return outside->has_rusage && outside->nr_processes;
}

/*
 * The kernel's task-clock event goes on while the hypervisor runs another guest; what wait4(2) reports does not. Of one
 * process from outside it is not known how much that was, but all together have no more than the library left of the
 * sum.
 */
static void limit_all(struct collector *c)
{
	double left = (double)(c->outside->user_ns + c->outside->sys_ns), sum = 0;

	for (uint32_t i = 0; i < c->nr_images; i++) {
		const struct image *image = &c->images[i];

		if (!image->is_outside)
			left -= (double)image->covered_cpu_ns;
		else if (!image->is_by_cpu)
			sum += (double)sampled_ns(image) + image->unsampled_ns;
	}
	for (uint32_t i = 0; i < c->nr_unseen; i++)
		sum += c->unseen[i].sampled_ns > 0 ? c->unseen[i].ns : 0;
	/* Where the library has more, no parent waited for some of its processes. */
	if (sum > left && left >= 0 && has_all_times(c->outside))
		c->most = left / sum;
}

/*
 * Does each process have an image, or events from outside? What others used (programs with more rights, those that
 * --follow leaves out, recordings that were lost) is not known, and is not given to these.
 */
static bool has_all_processes(const struct collector *c, const struct csink_collect_part *parts)
{
	for (uint32_t i = 0; i < c->outside->nr_processes; i++) {
		const struct csink_outside_process *process = &c->outside->processes[i];
		uint32_t at = CSINK_LOWER(c->nr_images, k, parts[k].pid < process->pid);
		bool has_image = at < c->nr_images && parts[at].pid == process->pid;

		if (process->has_cpu || process->reason || !(has_image || process->is_sampled))
			return false;
	}
	for (uint32_t i = 0; i < c->nr_images; i++) {
		const struct image *image = &c->images[i];

		if (image->is_left_out || (!image->is_outside && (!image->is_read || image->state == CSINK_REC_LIVE)))
			return false;
	}
	return !c->slice && !c->outside->is_filtered && has_all_times(c->outside);
}

/*
 * From Linux 5.13 on, before some version until 6.18, a process's events end without a record of what they have
 * counted: 6.12 lacks it, 6.18 writes it. What all processes from outside used is known all the same: of the tree's CPU
 * time, what is not the library's. That has all of a process to the end of its last image, its start and its samples
 * from outside before included.
 */
static void find_uncounted(struct collector *c, const struct csink_collect_part *parts)
{
	double left = (double)(c->outside->user_ns + c->outside->sys_ns), sum = 0;
	uint32_t end, first;

	for (uint32_t i = 0; i < c->nr_images; i = end) {
		int64_t covered = 0;
		double inside = 0;

		first = i;
		for (end = i; end < c->nr_images && parts[end].pid == parts[i].pid; end++) {
			const struct image *image = &c->images[parts[end].image];

			if (image->is_outside)
				continue;
			covered = csink_add(covered, image->covered_cpu_ns);
			inside = (double)image->cpu_end_ns;
			first = end + 1;
		}
		left -= CSINK_MAX(inside, (double)covered);
		for (uint32_t k = first; k < end; k++) {
			struct image *image = &c->images[parts[k].image];

			image->is_uncounted = !image->is_by_cpu;
			sum += image->is_by_cpu ? 0 : (double)sampled_ns(image);
		}
	}
	for (uint32_t i = 0; i < c->outside->nr_processes; i++)
		c->uncounted.nr += c->outside->processes[i].is_sampled;
	c->uncounted.sampled_ns = sum;
	c->uncounted.missing_ns = left - sum;
}

/*
 * What samples lack where the kernel counted no process: timers that were late, or the kernel's time, which they do not
 * see. What may be the end of a process after its last sample, or a process without one, is not given to others: a
 * period each. Samples whose weight was read lack no more than that.
 */
static double uncounted_ns(const struct collector *c, double sum, double sample_ns)
{
	double period = (double)c->events[c->cpu_event].period;
	double missing = c->uncounted.missing_ns - (period > 0 ? period : sample_ns) * c->uncounted.nr;

	return c->uncounted.sampled_ns > 0 && missing > 0 ? missing * sum / c->uncounted.sampled_ns : 0;
}

int csink_collect_outside_prepare(struct collector *c)
{
	CSINK_AUTO_FREE struct csink_collect_part *parts = csink_collect_parts(c);
	CSINK_AUTO_FREE struct process_time *times = NULL;
	const struct process_time *found;
	uint32_t nr_times, end;

	if (!parts)
		return -ENOMEM;
	c->most = 1;
	if (!c->outside || c->outside->is_attached)
		return 0;
	nr_times = list_times(c->outside, &times);
	for (uint32_t i = 0; i < c->nr_images; i = end) {
		for (end = i; end < c->nr_images && parts[end].pid == parts[i].pid; end++)
			;
		found = nr_times ? bsearch(&(struct process_time){.pid = parts[i].pid}, times, nr_times, sizeof(*times),
					   csink_compare_i32)
				 : NULL;
		if (found && found->cpu_ns)
			share_process(c, parts + i, end - i, found->cpu_ns);
	}
	if (share_unseen(c, parts))
		return -ENOMEM;
	limit_all(c);
	if (has_all_processes(c, parts))
		find_uncounted(c, parts);
	return 0;
}

int csink_collect_time_event(const struct collector *c, const struct csink_recorded *rec)
{
	for (uint32_t i = 0; i < rec->header.nr_events; i++)
		if (c->cpu_event >= 0 && !strcmp(rec->header.events[i].name, c->events[c->cpu_event].name))
			return (int)i;
	return -1;
}

/* Of a thread: CPU time, and how many samples that was. */
struct used {
	double ns, nr_samples;
	bool is_inside; /* the library may have sampled it, too: that is not in ns */
};

static struct used *list_used(const struct csink_recorded *rec, int event)
{
	struct used *used = calloc(rec->nr_threads + 1UL, sizeof(*used));

	for (uint32_t i = 0; i < rec->nr_rows && used; i++) {
		const struct csink_recorded_row *row = &rec->rows[i];
		struct used *of = &used[row->thread == CSINK_RECORDED_NONE ? rec->nr_threads : row->thread];

		of->is_inside |= row->phase == CSINK_PHASE_INJECTED;
		if (row->phase == CSINK_PHASE_INJECTED)
			continue;
		of->ns += (double)rec->weights[(size_t)i * rec->header.nr_events + (uint32_t)event];
		of->nr_samples += (double)row->nr_samples;
	}
	return used;
}

/*
 * What a thread used after its last sample, and what was lost or fell into the kernel before, is known where the kernel
 * counted the thread, and the image has all of it. Else, and of a thread without samples, it is a sample's weight at
 * most.
 */
static double missing_ns(const struct collector *c, const struct image *image, int32_t tid, const struct used *used,
			 double sample_ns)
{
	double counted = (double)csink_collect_thread_ns(c, image->pid, tid);

	if (csink_collect_owns_thread_ns(image, tid) && !used->is_inside && counted > 0)
		return used->nr_samples ? CSINK_MAX(counted - used->ns, 0.0) : CSINK_MIN(counted, sample_ns);
	return image->becomes_inside ? 0 : sample_ns;
}

/*
 * What the kernel counted of a process, and no sample has, goes to what was sampled of it: at most as much as its
 * threads lack. Where these swap their events they have samples of each other, so that the process's sum decides, and
 * may also be too large. Samples that weigh a period while the kernel cannot be sampled lack its time: they are scaled
 * by whatever that is. In front of an image of the library, what is missing is also its loader's.
 */
int csink_collect_outside_scales(const struct collector *c, const struct image *image, const struct csink_recorded *rec,
				 double *scales)
{
	int event = csink_collect_time_event(c, rec);
	double sum = 0, nr_samples = 0, missing = 0, given = image->unsampled_ns, factor;
	CSINK_AUTO_FREE struct used *used = event < 0 || image->is_by_cpu ? NULL : list_used(rec, event);

	if (image->is_by_cpu) {
		factor = unseen_scale(c, image);
		for (uint32_t i = 0; i < rec->nr_threads; i++)
			scales[i] = factor;
		return 0;
	}
	if (!used)
		return event < 0 ? 0 : -ENOMEM;
	for (uint32_t i = 0; i < rec->nr_threads; i++) {
		sum += used[i].ns;
		nr_samples += used[i].nr_samples;
	}
	if (sum <= 0 || nr_samples <= 0 || sum + given <= 0)
		return 0;
	for (uint32_t i = 0; i < rec->nr_threads; i++)
		missing += missing_ns(c, image, rec->threads[i]->tid, &used[i], sum / nr_samples);
	if (!(rec->header.events[event].flags & CSINK_EVENT_BY_PERIOD))
		given = CSINK_MIN(given, missing);
	if (image->is_uncounted)
		given += uncounted_ns(c, sum, sum / nr_samples);
	factor = c->most * (sum + given) / sum;
	for (uint32_t i = 0; i < rec->nr_threads; i++)
		scales[i] = factor;
	return 0;
}
