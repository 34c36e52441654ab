/* Which processes the readers read, and where their threads' states are: see readers_impl.h. */
#include <stdlib.h>
#include <string.h>

#include "include/internal/grow.h"
#include "launcher/attach/readers_impl.h"
#include "launcher/base/hash.h"

enum { MAX_THREADS = 1 << 16 }; /* whose states are remembered */

/* A thread without a state may get one: it is looked for again after this time, and each time after twice as long. */
#define AGAIN_NS 1000000ULL
#define MAX_DOUBLED 7

/* ---- the tables; the lock is held ---- */

static struct csink_slot *process_slot(struct csink_attach_readers *r, int32_t pid)
{
	struct csink_slot *slot;

	if (csink_table_room(&r->process_index))
		return NULL;
	CSINK_TABLE_PROBE(r->process_index, csink_hash_number((uint32_t)pid), slot, r->processes[id - 1].pid == pid);
	return slot;
}

static struct csink_reader_process *process_of(struct csink_attach_readers *r, int32_t pid)
{
	struct csink_slot *slot = process_slot(r, pid);

	return slot && slot->id && r->processes[slot->id - 1].serial ? &r->processes[slot->id - 1] : NULL;
}

/* python: NULL: it has none any more. */
static void set_process(struct csink_attach_readers *r, int32_t pid, const struct csink_attach_python *python)
{
	struct csink_reader_process process = {.pid = pid};
	struct csink_slot *slot = process_slot(r, pid);
	uint32_t id = slot ? slot->id : 0;

	if (!slot || (!id && CSINK_GROW(r->processes, r->nr_processes, r->cap_processes)))
		return;
	if (!id) {
		id = ++r->nr_processes;
		csink_table_set(&r->process_index, slot, csink_hash_number((uint32_t)pid), id);
	}
	if (python) {
		process.serial = ++r->nr_serials;
		process.python = *python;
	}
	r->processes[id - 1] = process;
}

static struct csink_reader_thread *known_of(struct csink_attach_readers *r, int32_t tid)
{
	uint32_t number;

	if (r->nr_known == MAX_THREADS) {
		csink_table_free(&r->known_index);
		r->nr_known = 0;
	}
	number = CSINK_TABLE_INTERN(
		r->known_index, csink_hash_number((uint32_t)tid), r->known[id - 1].tid == tid,
		CSINK_APPEND(r->known, r->nr_known, r->cap_known, (struct csink_reader_thread){.tid = tid}));
	return number ? &r->known[number - 1] : NULL;
}

/* ---- processes ---- */

void csink_attach_readers_add(struct csink_attach_readers *r, int32_t pid, const struct csink_attach_python *python)
{
	pthread_mutex_lock(&r->lock);
	set_process(r, pid, python);
	pthread_mutex_unlock(&r->lock);
}

void csink_attach_readers_remove(struct csink_attach_readers *r, int32_t pid)
{
	pthread_mutex_lock(&r->lock);
	if (process_of(r, pid))
		set_process(r, pid, NULL);
	pthread_mutex_unlock(&r->lock);
}

bool csink_readers_find(struct csink_attach_readers *r, int32_t pid, struct csink_reader_process *to)
{
	struct csink_reader_process *process;

	pthread_mutex_lock(&r->lock);
	process = process_of(r, pid);
	if (process)
		*to = *process;
	pthread_mutex_unlock(&r->lock);
	return process != NULL;
}

bool csink_attach_readers_get(struct csink_attach_readers *r, int32_t pid, struct csink_attach_python *python)
{
	struct csink_reader_process process;

	if (!csink_readers_find(r, pid, &process))
		return false;
	*python = process.python;
	return true;
}

void csink_readers_fork(struct csink_attach_readers *r, const char *record)
{
	int32_t ids[4]; /* pid, ppid, tid, ptid */
	struct csink_reader_process *parent;
	struct csink_reader_thread *known;

	memcpy(ids, record + sizeof(struct perf_event_header), sizeof(ids));
	if (ids[0] == ids[1])
		return;
	pthread_mutex_lock(&r->lock);
	parent = process_of(r, ids[1]);
	if (parent) {
		struct csink_attach_python python = parent->python;

		set_process(r, ids[0], &python);
		known = known_of(r, ids[2]);
		if (known)
			*known = (struct csink_reader_thread){.tid = ids[2], .creator = ids[3]};
	}
	pthread_mutex_unlock(&r->lock);
}

/* ---- threads ---- */

/* A new state becomes the first of its list. */
static uint64_t firsts_of(const struct csink_reader_process *process)
{
	uint64_t first, sum = 0;

	for (uint32_t i = 0; i < process->python.nr_roots; i++) {
		first = csink_python_first_state(&process->python, process->pid, i);
		sum = csink_hash_pair(sum, first);
	}
	return sum;
}

/* Look for the state of a thread in the interpreter's list. */
static void look_for_state(const struct csink_reader_process *process, struct csink_reader_thread *thread)
{
	int32_t inside = csink_tid_inside(thread->tid);

	thread->inside = inside;
	thread->state = csink_python_state_of(&process->python, process->pid, inside);
	if (thread->state || !thread->creator)
		return;
	/* After vfork(2) the child runs in the state of its creator, which waits. */
	thread->inside = csink_tid_inside(thread->creator);
	thread->state = csink_python_state_of(&process->python, process->pid, thread->inside);
}

bool csink_readers_state(struct csink_attach_readers *r, const struct csink_reader_process *process, int32_t tid,
			 uint64_t now_ns, struct csink_reader_thread *thread)
{
	uint64_t firsts;
	struct csink_reader_thread *known;

	*thread = (struct csink_reader_thread){.tid = tid};
	pthread_mutex_lock(&r->lock);
	known = known_of(r, tid);
	if (known)
		*thread = *known;
	pthread_mutex_unlock(&r->lock);
	if (thread->serial == process->serial && thread->state)
		return true;
	firsts = firsts_of(process);
	if (thread->serial == process->serial && now_ns < thread->again_ns && thread->firsts == firsts)
		return false;
	if (thread->serial != process->serial)
		*thread =
			(struct csink_reader_thread){.tid = tid, .creator = thread->creator, .serial = process->serial};
	look_for_state(process, thread);
	thread->firsts = firsts;
	thread->again_ns = now_ns + (AGAIN_NS << thread->nr_looked);
	thread->nr_looked += thread->nr_looked < MAX_DOUBLED;
	pthread_mutex_lock(&r->lock);
	known = known_of(r, tid);
	if (known)
		*known = *thread;
	pthread_mutex_unlock(&r->lock);
	return thread->state != 0;
}

void csink_readers_forget(struct csink_attach_readers *r, int32_t tid)
{
	struct csink_reader_thread *known;

	pthread_mutex_lock(&r->lock);
	known = known_of(r, tid);
	if (known)
		known->serial = 0;
	pthread_mutex_unlock(&r->lock);
}

void csink_readers_free_known(struct csink_attach_readers *r)
{
	free(r->processes);
	free(r->known);
	csink_table_free(&r->process_index);
	csink_table_free(&r->known_index);
	pthread_mutex_destroy(&r->lock);
}
