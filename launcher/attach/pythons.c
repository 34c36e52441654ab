/* See pythons.h. Runs in the attach command's one thread. */
#include "launcher/attach/pythons.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "include/countersink/explain.h"
#include "include/internal/clock.h"
#include "include/internal/grow.h"
#include "launcher/base/format.h"
#include "launcher/session/outside.h"

#define SEARCH_AGAIN_NS 5000000ULL /* after the first search that failed; each one more doubles it */
#define MAX_TRIES 11

/* ---- finding ----------------------------------------------------------------------------------------------------- */

/* A file's CPython, as a process has it whose addresses are higher by that much. */
static struct csink_attach_python moved(struct csink_attach_python python, uint64_t by)
{
	python.bias = by;
	python.data += by;
	python.object.code_type += by;
	python.object.evaluator += by;
	python.object.evaluator_end += by;
	python.object.runtime += by;
	return python;
}

static void copy_roots(struct csink_attach_python *to, const struct csink_attach_python *from)
{
	to->nr_roots = from->nr_roots;
	memcpy(to->roots, from->roots, sizeof(to->roots));
}

/* When a process may be searched; NULL: not now. */
static struct csink_attach_searched *may_search(struct csink_attach_pythons *pythons, int32_t pid)
{
	struct csink_attach_searched *searched = NULL;

	for (uint32_t i = pythons->nr_searched; i-- > 0 && !searched;)
		searched = pythons->searched[i].pid == pid ? &pythons->searched[i] : NULL;
	if (!searched && !CSINK_GROW(pythons->searched, pythons->nr_searched, pythons->cap_searched)) {
		searched = &pythons->searched[pythons->nr_searched++];
		*searched = (struct csink_attach_searched){.pid = pid};
	}
	if (!searched || searched->nr_tries == MAX_TRIES || csink_monotonic_ns() < searched->again_ns)
		return NULL;
	return searched;
}

/* Learn where an interpreter has its lists of thread states, from the first process that runs it. */
static void search(struct csink_attach_pythons *pythons, int32_t pid, struct csink_attach_python *python)
{
	struct csink_attach_searched *searched = python->file->nr_roots ? NULL : may_search(pythons, pid);
	int err;

	if (searched) {
		err = csink_python_find_roots(python, pid);
		searched->again_ns = csink_monotonic_ns() + (SEARCH_AGAIN_NS << searched->nr_tries++);
		if (err == -EPERM)
			pythons->denied_pid = pid;
		copy_roots(python->file, python);
	} else {
		copy_roots(python, python->file);
	}
	if (python->nr_roots && pythons->readers)
		csink_attach_readers_add(pythons->readers, pid, python);
}

void csink_attach_pythons_object(void *arg, int32_t pid, struct csink_attach_object *object, uint64_t bias)
{
	struct csink_attach_pythons *pythons = arg;
	struct csink_attach_python python;

	if (pythons->frames == CSINK_ATTACH_FRAMES_NATIVE || !object->python)
		return;
	python = moved(*object->python, bias);
	pythons->has_any = true;
	if (!pythons->is_started)
		search(pythons, pid, &python);
	else if (pythons->readers)
		csink_attach_readers_add(pythons->readers, pid, &python);
	else
		pythons->late_pid = pid;
}

void csink_attach_pythons_start(struct csink_attach_pythons *pythons, struct csink_attach_counters *counters,
				bool is_expected)
{
	pythons->is_started = true;
	pythons->has_no_copies = counters->stacks != CSINK_ATTACH_COPY || counters->no_rings;
	if (pythons->frames == CSINK_ATTACH_FRAMES_NATIVE || (!pythons->has_any && !is_expected) ||
	    pythons->has_no_copies)
		return;
	pythons->start_err = csink_attach_codes_init(&pythons->codes);
	if (!pythons->start_err)
		pythons->start_err = csink_attach_readers_start(&pythons->readers, counters, &pythons->codes);
	if (!pythons->start_err) {
		csink_attach_counters_wake(counters);
		return;
	}
	csink_attach_readers_free(pythons->readers);
	pythons->readers = NULL;
}

/* ---- records of the kernel ---- */

void csink_attach_pythons_fork(struct csink_attach_pythons *pythons, int32_t pid, int32_t ppid)
{
	struct csink_attach_python python;

	if (!pythons->readers || pid == ppid)
		return;
	/* The readers have done it already, if they saw the record. */
	if (!csink_attach_readers_get(pythons->readers, ppid, &python))
		csink_attach_readers_remove(pythons->readers, pid);
	else if (!csink_attach_readers_get(pythons->readers, pid, &python))
		csink_attach_readers_add(pythons->readers, pid, &python);
}

void csink_attach_pythons_exec(struct csink_attach_pythons *pythons, int32_t pid)
{
	if (pythons->readers)
		csink_attach_readers_remove(pythons->readers, pid);
}

/* ---- samples ----------------------------------------------------------------------------------------------------- */

int32_t csink_attach_pythons_merge(struct csink_attach_pythons *pythons, const struct csink_attach_sample *s,
				   const struct csink_native_stack *native, uint64_t *to, uint32_t max,
				   struct csink_merge_faults *faults)
{
	static struct csink_attach_read read;
	struct csink_attach_python python;

	if (!pythons->readers || !csink_attach_readers_get(pythons->readers, s->pid, &python))
		return -1;
	csink_attach_readers_take(pythons->readers, s->time_ns, s->tid, &read);
	if (!read.nr_groups && !csink_has_evaluator(native, &python.object))
		return -1;
	/* A call of the evaluator that has just begun, or is about to end. */
	if (read.state == CSINK_READ_DONE && !read.nr_groups)
		read.state = CSINK_READ_UNFINISHED;
	pythons->counts[read.state]++;
	if (read.state == CSINK_READ_NO_STATES)
		search(pythons, s->pid, &python);
	if (!read.nr_groups)
		return -1;
	return (int32_t)csink_merge_frames(native, &python.object, &read, pythons->frames == CSINK_ATTACH_FRAMES_AUTO,
					   to, max, faults);
}

/* ---- the end ----------------------------------------------------------------------------------------------------- */

/* Stacks without their functions: how many, why, and what helps. */
static void note_missing(const struct csink_attach_pythons *pythons, const struct csink_attach_counters *counters,
			 struct csink_outside *outside)
{
	static const char *const whys[CSINK_NR_READ_STATES] = {
		[CSINK_READ_LATE] = "read too late",
		[CSINK_READ_RESTED] = "skipped after a read of more than 1 ms",
		[CSINK_READ_UNFINISHED] = "while a call began or ended",
		[CSINK_READ_NO_ROOM] = "with more functions than there is memory for",
		[CSINK_READ_NO_STATES] = "before the interpreter's threads were found",
		[CSINK_READ_NOT] = "not reached by a reading thread in time",
	};
	const uint64_t *counts = pythons->counts;
	struct csink_attach_readers_count count = csink_attach_readers_count(pythons->readers);
	char text[512] = "";
	unsigned long long nr = 0, all;

	for (uint32_t i = CSINK_READ_DONE + 1; i < CSINK_NR_READ_STATES; i++) {
		nr += counts[i];
		if (counts[i])
			csink_append(text, sizeof(text), "%s%llu %s", *text ? ", " : "", (unsigned long long)counts[i],
				     whys[i]);
	}
	all = nr + counts[CSINK_READ_DONE];
	if (nr)
		csink_outside_note(
			outside,
			"Python functions are missing in %llu of %llu stacks (%.2f %%), which show the interpreter's "
			"own instead: %s%s%s",
			nr, all, 100.0 * (double)nr / (double)all, text,
			counts[CSINK_READ_LATE] && count.first < count.all
				? "; fewer as root, or with ulimit -r 1 (real-time priority)"
				: "",
			counters->in_run ? "" : "; start the program with countersink to see them");
	if (count.left)
		csink_outside_note(
			outside,
			"%u of %u threads that read Python frames still wait for a process's memory "
			"(userfaultfd, or a file system that does not answer): samples on their CPUs lack them",
			count.left, count.all);
}

void csink_attach_pythons_note(const struct csink_attach_pythons *pythons, const struct csink_attach_counters *counters,
			       struct csink_outside *outside)
{
	char text[160];

	if (pythons->readers && (pythons->counts[CSINK_READ_DONE] || !pythons->denied_pid))
		note_missing(pythons, counters, outside);
	if (pythons->denied_pid)
		csink_outside_note(outside,
				   "Python frames are not read: EPERM: the process's memory must not be read; Yama's "
				   "kernel.yama.ptrace_scope, seccomp, or another user's process: run countersink as "
				   "root (process %d)",
				   pythons->denied_pid);
	if (pythons->has_no_copies && pythons->has_any)
		csink_outside_note(
			outside,
			"Python frames are not read: they need copies of stacks, which --unwind=fp and none do "
			"not take: use --unwind=auto");
	else if (pythons->start_err)
		csink_outside_note(outside, "Python frames are not read: %s",
				   csink_explain_brief(-pythons->start_err, text, sizeof(text)));
	else if (pythons->late_pid)
		csink_outside_note(
			outside, "Python frames of process %d are not read: %s", pythons->late_pid,
			counters->at_exec ? "attach reads those of a command only where that itself is python; "
					    "start it with countersink to see them"
					  : "nothing ran Python when countersink attached: attach again while it does");
}

bool csink_attach_pythons_free(struct csink_attach_pythons *pythons)
{
	if (!csink_attach_readers_free(pythons->readers))
		return false;
	if (pythons->readers)
		csink_attach_codes_free(&pythons->codes);
	free(pythons->searched);
	memset(pythons, 0, sizeof(*pythons));
	return true;
}
