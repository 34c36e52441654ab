/* See python_states.h. */
#include "launcher/attach/python_states.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "include/internal/clock.h"
#include "launcher/attach/remote.h"
#include "launcher/base/proc.h"
#include "preload/core/sysfs.h"

enum {
	MAX_STATES = 1024,     /* of one list */
	MAX_RUNTIME = 1 << 20, /* bytes of the interpreter's variables that are searched */
	FIRST_WORDS = 8,       /* of an interpreter: the list's first state is one of them, to 3.10 */
	HEAD_WORDS = 3,        /* of a state: previous, next, interpreter */
	SELF_BYTES = 2048,     /* of libc's own struct of a thread, in which its TID is searched */
	MAX_THREADS = 1024,    /* of a process, with which states are compared */
	SOME = 256
};

/* ---- a thread's number ---- */

int32_t csink_tid_inside(int32_t tid)
{
	int32_t inside = csink_proc_own_number(tid);

	return inside > 0 ? inside : tid;
}

/*
 * Where libc's struct of a thread, whose address is the thread's pthread_self(), has its TID: glibc's is at one offset
 * in all its versions on a machine, so that it is the same in ours. 0: not found.
 */
static uint32_t tid_offset(void)
{
	static _Atomic uint32_t found;
	char self[SELF_BYTES];
	int32_t tid = gettid(), word;
	uint32_t at = found;

	if (at)
		return at;
	if (csink_remote_copy(getpid(), self, (uint64_t)pthread_self(), sizeof(self)))
		return 0;
	for (at = 64; at < sizeof(self); at += sizeof(word)) {
		memcpy(&word, self + at, sizeof(word));
		if (word == tid) {
			found = at;
			return at;
		}
	}
	return 0;
}

uint64_t csink_python_tid_at(uint64_t self)
{
	uint32_t offset = tid_offset();

	return offset ? self + offset : 0;
}

/* The TID of the thread that has a state. 0: it is none, or the thread is gone. */
static int32_t tid_of(const struct csink_python_layout *layout, int32_t pid, uint64_t state)
{
	uint64_t self;
	int32_t tid;

	if (csink_remote_copy(pid, &self, state + layout->thread_id, sizeof(self)) ||
	    csink_remote_copy(pid, &tid, csink_python_tid_at(self), sizeof(tid)))
		return 0;
	return tid;
}

static uint32_t list_threads(int32_t pid, int32_t *tids, uint32_t max)
{
	const char *name;
	uint32_t nr = 0;

	CSINK_SYSFS_EACH(name, "/proc/%d/task", pid) {
		if (nr < max)
			tids[nr++] = csink_tid_inside(atoi(name));
	}
	return nr;
}

/* ---- searching ---- */

#define SEARCH_NS 200000000 /* at most: the variables may be made up so that each must be looked at */

struct search {
	struct csink_attach_python *python;
	uint64_t end_ns;
	int32_t pid, tids[MAX_THREADS];
	uint32_t nr_tids;
	int err;
};

static bool is_over(const struct search *s)
{
	return s->python->nr_roots == CSINK_PYTHON_ROOTS || csink_monotonic_ns() > s->end_ns;
}

static bool is_address(uint64_t word)
{
	return word >= CSINK_REMOTE_PAGE && !(word >> 47) && word % 8 == 0;
}

/* The first state of a list, of a thread that the process has. */
static bool is_first(const struct search *s, uint64_t state)
{
	uint64_t head[HEAD_WORDS], back = state;
	int32_t tid;

	if (csink_remote_copy(s->pid, head, state, sizeof(head)) || head[0] || !is_address(head[2]) ||
	    (head[1] && (!is_address(head[1]) ||
			 csink_remote_copy(s->pid, &back, head[1] + CSINK_PYTHON_STATE_PREVIOUS, sizeof(back)))) ||
	    back != state)
		return false;
	tid = tid_of(s->python->object.layout, s->pid, state);
	for (uint32_t i = 0; tid > 0 && i < s->nr_tids; i++) {
		if (s->tids[i] == tid)
			return true;
	}
	return false;
}

static void try_word(struct search *s, struct csink_python_root root, uint64_t word)
{
	struct csink_attach_python *python = s->python;

	if (!is_over(s) && is_address(word) && is_first(s, word))
		python->roots[python->nr_roots++] = root;
}

/* From 3.11: the main interpreter is one of the variables, and states refer to it. */
static void search_variables(struct search *s, const uint64_t *words, uint32_t nr)
{
	const struct csink_python *object = &s->python->object;
	struct csink_remote_piece pieces[SOME];
	uint32_t index[SOME], i = 0;
	uint64_t interpreters[SOME];

	while (i < nr && !is_over(s)) {
		uint32_t some = 0, done = 0;

		for (; i < nr && some < SOME; i++) {
			if (!is_address(words[i]))
				continue;
			pieces[some] = (struct csink_remote_piece){words[i] + CSINK_PYTHON_STATE_INTERPRETER,
								   &interpreters[some], sizeof(interpreters[0])};
			index[some++] = i;
		}
		while (done < some) {
			uint32_t n = csink_remote_copy_each(s->pid, pieces + done, some - done);

			for (uint32_t k = done; k < done + n; k++) {
				if (interpreters[k] - object->runtime < object->runtime_bytes)
					try_word(s, (struct csink_python_root){index[k] * 8, -1}, words[index[k]]);
			}
			done += n + 1; /* one that cannot be read is no state */
		}
	}
}

/* To 3.10: a variable refers to the interpreter, which has the list among its first words. */
static void search_interpreters(struct search *s, const uint64_t *words, uint32_t nr)
{
	uint64_t first[FIRST_WORDS];

	for (uint32_t i = 0; i < nr && !is_over(s); i++) {
		if (!is_address(words[i]) || csink_remote_copy(s->pid, first, words[i], sizeof(first)))
			continue;
		for (uint32_t k = 0; k < FIRST_WORDS; k++)
			try_word(s, (struct csink_python_root){i * 8, (int32_t)k * 8}, first[k]);
	}
}

int csink_python_find_roots(struct csink_attach_python *python, int32_t pid)
{
	size_t bytes = CSINK_MIN(python->object.runtime_bytes, (uintptr_t)MAX_RUNTIME) & ~(size_t)7;
	CSINK_AUTO_FREE struct search *s = calloc(1, sizeof(*s));
	CSINK_AUTO_FREE uint64_t *words = malloc(bytes + 8);
	int err = s && words ? csink_remote_copy(pid, words, python->object.runtime, bytes) : -ENOMEM;

	python->nr_roots = 0;
	if (!err) {
		s->python = python;
		s->pid = pid;
		s->end_ns = csink_monotonic_ns() + SEARCH_NS;
		s->nr_tids = list_threads(pid, s->tids, MAX_THREADS);
		if (python->object.layout->minor >= 11)
			search_variables(s, words, (uint32_t)(bytes / 8));
		else
			search_interpreters(s, words, (uint32_t)(bytes / 8));
		err = python->nr_roots ? 0 : -ENOENT;
	}
	return err;
}

uint64_t csink_python_first_state(const struct csink_attach_python *python, int32_t pid, uint32_t root)
{
	uint64_t at = python->object.runtime + python->roots[root].variable, word;

	if (csink_remote_copy(pid, &word, at, sizeof(word)))
		return 0;
	if (python->roots[root].within >= 0 &&
	    csink_remote_copy(pid, &word, word + (uint64_t)python->roots[root].within, sizeof(word)))
		return 0;
	return word;
}

uint64_t csink_python_state_of(const struct csink_attach_python *python, int32_t pid, int32_t tid)
{
	uint64_t state, next;

	for (uint32_t i = 0; i < python->nr_roots; i++) {
		state = csink_python_first_state(python, pid, i);
		for (uint32_t nr = 0; is_address(state) && nr < MAX_STATES; nr++, state = next) {
			if (tid_of(python->object.layout, pid, state) == tid)
				return state;
			if (csink_remote_copy(pid, &next, state + CSINK_PYTHON_STATE_NEXT, sizeof(next)))
				break;
		}
	}
	return 0;
}
