/*
 * Slices of what attach samples: see attach_slices.h. The recordings of a slice are written into a directory of its
 * own, of which a forked child makes the profile, so that rings are read meanwhile.
 */
#include "launcher/commands/attach/attach_slices.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/clock.h"
#include "launcher/base/message.h"
#include "launcher/collect/collect.h"
#include "launcher/commands/attach/attach_gap.h"
#include "launcher/profile/profile.h"

int csink_attach_slices_init(struct csink_attach_slices *a)
{
	struct shared {
		struct csink_slices slices;
		struct csink_attach_given given;
	} *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (shared == MAP_FAILED)
		return -ENOMEM;
	a->s = &shared->slices;
	a->given = &shared->given;
	a->directory.fd = -1;
	return 0;
}

void csink_attach_slices_begin(struct csink_attach_slices *a, struct csink_attach_follow *follow)
{
	a->follow = follow;
	csink_slices_start(a->s);
}

/* The totals of a slice that is not the last one are not known: outside has no counts, and what no sample has of them
 * is in the last one. But each has its part of the gap. @given  set to what it has. */
static int make(const struct csink_attach_slices *a, const struct csink_outside *outside, uint64_t end_ns, bool is_last,
		struct csink_attach_given *given, struct csink_profile **out)
{
	struct csink_slice slice = csink_slices_describe(a->s, end_ns, is_last);
	struct csink_outside own = *outside;
	int err;

	own.attached_cpu_ns =
		is_last ? own.attached_cpu_ns - CSINK_MIN((uint64_t)a->given->cpu_ns, own.attached_cpu_ns) : 0;
	own.attached_gap_ns = (is_last ? outside->attached_gap_ns : a->next_gap_ns) - a->given->gap_ns;
	own.attached_processes = (uint32_t)a->follow->images.nr_processes;
	own.attached_threads = (uint32_t)a->follow->images.nr_threads;
	slice.outside = &own;
	slice.former_processes = a->nr_processes;
	slice.former_threads = a->nr_threads;
	slice.former_sums = a->given->sums;
	err = csink_collect_slice_directory(a->directory.path, &slice, out);
	if (err)
		return err;
	given->gap_ns = CSINK_MAX(own.attached_gap_ns, (int64_t)0);
	given->cpu_ns = csink_attach_gap_sum(*out) - given->gap_ns;
	given->gap_ns += csink_attach_gap_take_off(*out, own.attached_gap_ns);
	for (uint32_t i = 0; i < CSINK_ARRAY_SIZE(given->sums); i++)
		given->sums[i] = i < (*out)->nr_types ? csink_profile_sum(*out, i) : 0;
	return 0;
}

/* In the child. */
static int write_slice(struct csink_attach_slices *a, const struct csink_outside *outside)
{
	struct csink_attach_given given;
	struct csink_profile *profile;
	int err = make(a, outside, a->next_monotonic_ns, false, &given, &profile);

	if (!err)
		err = csink_slices_write(a->s, profile);
	if (err) {
		csink_slices_miss(a->s, err);
		return err;
	}
	a->given->cpu_ns += given.cpu_ns;
	a->given->gap_ns += given.gap_ns;
	for (uint32_t i = 0; i < CSINK_ARRAY_SIZE(given.sums); i++)
		a->given->sums[i] = csink_add(a->given->sums[i], given.sums[i]);
	return 0;
}

/* The writer has ended. What it could not write is in the next slice. */
static void take(struct csink_attach_slices *a, int status)
{
	a->writer = 0;
	csink_run_directory_remove(&a->directory);
	if (status) {
		free(a->next.rows);
		return;
	}
	free(a->base.rows);
	a->base = a->next;
	a->nr_processes = a->next_nr_processes;
	a->nr_threads = a->next_nr_threads;
	a->s->start_monotonic_ns = a->next_monotonic_ns;
	a->s->start_realtime_ns = a->next_realtime_ns;
	a->s->named_ns = a->next_named_ns;
}

static int prepare(struct csink_attach_slices *a)
{
	int err = csink_run_directory_create(&a->directory);

	if (err)
		return err;
	err = csink_attach_follow_since(a->follow, a->directory.path, &a->base, &a->next);
	if (err)
		csink_run_directory_remove(&a->directory);
	return err;
}

static void cut(struct csink_attach_slices *a, const struct csink_outside *outside)
{
	uint64_t former_ns = a->s->clock.due_ns;
	int err;

	a->next_monotonic_ns = csink_monotonic_ns();
	a->next_realtime_ns = csink_clock_ns(CLOCK_REALTIME);
	a->next_named_ns = csink_slice_clock_next(&a->s->clock, a->next_realtime_ns, a->next_monotonic_ns);
	csink_slices_count_missed(a->s, former_ns);
	csink_attach_clock_read(&a->follow->clock);
	a->next_gap_ns = csink_attach_gap(a->follow, csink_attach_counters_cpu_ns(&a->follow->counters));
	err = prepare(a);
	if (!err) {
		a->next_nr_processes = (uint32_t)a->follow->images.nr_processes;
		a->next_nr_threads = (uint32_t)a->follow->images.nr_threads;
		a->writer = fork();
		err = a->writer < 0 ? -errno : 0;
		if (!a->writer)
			_exit(write_slice(a, outside) != 0);
	}
	if (!err)
		return;
	if (a->writer < 0)
		take(a, 1);
	csink_slices_miss(a->s, err);
}

void csink_attach_slices_poll(struct csink_attach_slices *a, const struct csink_outside *outside)
{
	int status;

	if (a->writer && waitpid(a->writer, &status, WNOHANG) == a->writer)
		take(a, status);
	if (!a->writer && csink_monotonic_ns() >= a->s->clock.due_ns)
		cut(a, outside);
}

int csink_attach_slices_finish(struct csink_attach_slices *a, const struct csink_outside *outside)
{
	struct csink_profile *profile = NULL;
	struct csink_attach_given given;
	int status, err;

	if (a->writer) {
		while (waitpid(a->writer, &status, 0) < 0 && errno == EINTR)
			;
		take(a, status);
	}
	if (csink_monotonic_ns() >= a->s->clock.due_ns)
		a->s->nr_missed++;
	err = prepare(a);
	if (!err) {
		err = make(a, outside, csink_monotonic_ns(), true, &given, &profile);
		csink_run_directory_remove(&a->directory);
		free(a->next.rows);
	}
	free(a->base.rows);
	if (err)
		return csink_fail(err, "no last slice: %s", strerror(-err));
	err = csink_slices_write_last(a->s, profile);
	csink_profile_free(profile);
	return err;
}
