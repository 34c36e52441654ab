/* Samples by thread: see thread_names.h. */
#include "launcher/output/thread_names.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "include/internal/grow.h"
#include "launcher/profile/facts.h"
#include "launcher/profile/profile.h"

/* The keys of the labels that matter; 0 where the profile has no such label. */
struct keys {
	csink_str_t pid, tid, process, thread, time;
};

static void find_keys(const struct csink_profile *p, struct keys *keys)
{
	*keys = (struct keys){
		.pid = csink_profile_str_find(p, CSINK_LABEL_PID),
		.tid = csink_profile_str_find(p, CSINK_LABEL_TID),
		.process = csink_profile_str_find(p, CSINK_LABEL_PROCESS),
		.thread = csink_profile_str_find(p, CSINK_LABEL_THREAD),
		.time = csink_profile_str_find(p, CSINK_LABEL_TIME),
	};
}

static void read_labels(const struct csink_profile *p, const struct keys *keys, uint32_t set, uint32_t *thread_key,
			int64_t *time_ns)
{
	const struct csink_profile_label *label = p->labels + p->label_sets[set].first;
	const struct csink_profile_label *last = label + p->label_sets[set].nr;

	for (; label < last; label++) {
		if (label->key == keys->pid)
			thread_key[0] = label->num;
		else if (label->key == keys->tid)
			thread_key[1] = label->num;
		else if (label->key == keys->process)
			thread_key[2] = label->str;
		else if (label->key == keys->thread)
			thread_key[3] = label->str;
		else if (label->key == keys->time && label->num >= 0) /* others have no thread */
			*time_ns = label->num;
	}
}

/* The thread of a key: [pid, tid, process, name]. Returns its index, or UINT32_MAX without memory. */
static uint32_t find_thread(struct csink_threads *t, const struct csink_profile *p, struct csink_profile *known,
			    const uint32_t *key)
{
	/* Equal ones are equal stacks in a profile of their own. */
	uint32_t id = csink_profile_stack_add(known, key, 4);

	if (!id || id <= t->nr_threads)
		return id - 1;
	if (CSINK_GROW(t->threads, t->nr_threads, t->cap_threads))
		return UINT32_MAX;
	t->threads[t->nr_threads++] = (struct csink_thread){
		.pid = key[0],
		.tid = key[1],
		.process = csink_profile_text(p, key[2]),
		.thread = csink_profile_text(p, key[3]),
	};
	return id - 1;
}

static int compare_rows(const void *left, const void *right)
{
	const struct csink_thread_row *a = left, *b = right;

	if (a->thread != b->thread)
		return a->thread < b->thread ? -1 : 1;
	if (a->time_ns != b->time_ns)
		return a->time_ns < b->time_ns ? -1 : 1;
	return a->sample < b->sample ? -1 : a->sample > b->sample;
}

static int read_samples(struct csink_threads *t, const struct csink_profile *p, struct csink_profile *known)
{
	struct keys keys;

	find_keys(p, &keys);
	for (uint32_t i = 0; i < p->nr_samples; i++) {
		struct csink_thread_row *row = &t->rows[t->nr_rows++];
		uint32_t key[4] = {0};

		row->sample = i;
		row->time_ns = CSINK_NO_TIME;
		read_labels(p, &keys, p->samples[i].labels, key, &row->time_ns);
		row->thread = find_thread(t, p, known, key);
		if (row->thread == UINT32_MAX)
			return -ENOMEM;
		if (row->time_ns == CSINK_NO_TIME)
			continue;
		if (t->first_ns == CSINK_NO_TIME || row->time_ns < t->first_ns)
			t->first_ns = row->time_ns;
		t->last_ns = CSINK_MAX(t->last_ns, row->time_ns);
	}
	return 0;
}

int csink_threads_build(struct csink_threads *t, const struct csink_profile *p)
{
	struct csink_profile *known = csink_profile_create();
	struct csink_thread *thread;
	int err;

	*t = (struct csink_threads){.first_ns = CSINK_NO_TIME, .last_ns = CSINK_NO_TIME};
	t->rows = calloc(CSINK_MAX(p->nr_samples, 1), sizeof(*t->rows));
	err = known && t->rows ? read_samples(t, p, known) : -ENOMEM;
	csink_profile_free(known);
	if (err) {
		csink_threads_free(t);
		return err;
	}
	qsort(t->rows, t->nr_rows, sizeof(*t->rows), compare_rows);
	for (uint32_t i = 0; i < t->nr_rows; i++) {
		thread = &t->threads[t->rows[i].thread];
		if (!thread->nr_rows++)
			thread->first_row = i;
	}
	return 0;
}

void csink_threads_free(struct csink_threads *t)
{
	free(t->threads);
	free(t->rows);
	memset(t, 0, sizeof(*t));
}

void csink_thread_describe(const struct csink_thread *thread, char *out, size_t size)
{
	char tid[16] = "", pid[16] = "";

	if (thread->tid)
		snprintf(tid, sizeof(tid), " %d", thread->tid);
	if (thread->pid)
		snprintf(pid, sizeof(pid), " %d", thread->pid);
	if (!thread->tid && !*thread->thread)
		snprintf(out, size, "%s%s", *thread->process ? thread->process : "all threads", pid);
	else
		snprintf(out, size, "%s%s of %s%s", *thread->thread ? thread->thread : "thread", tid,
			 *thread->process ? thread->process : "process", pid);
}
