/* Samples by thread: see thread_names.h. */
#include "launcher/output/thread_names.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "include/internal/grow.h"
#include "launcher/base/search.h"
#include "launcher/profile/facts.h"
#include "launcher/profile/profile.h"

/* The labels that matter. Those before the time make a thread. */
enum { KEY_PID, KEY_TID, KEY_PROCESS, KEY_THREAD, KEY_TIME, NR_KEYS };

/* keys: of the labels; 0 where the profile has no such label. */
static void read_labels(const struct csink_profile *p, const csink_str_t *keys, uint32_t set, uint32_t *thread_key,
			int64_t *time_ns)
{
	const struct csink_profile_label *label = p->labels + p->label_sets[set].first;
	const struct csink_profile_label *last = label + p->label_sets[set].nr;
	uint32_t k;

	for (; label < last; label++) {
		for (k = 0; k < NR_KEYS && label->key != keys[k]; k++)
			;
		if (k < KEY_TIME)
			thread_key[k] = k < KEY_PROCESS ? (uint32_t)label->num : label->str;
		else if (k == KEY_TIME && label->num >= 0) /* others have no thread */
			*time_ns = label->num;
	}
}

/* The thread of a key: [pid, tid, process, name]. Returns its index, or UINT32_MAX without memory. */
static uint32_t find_thread(struct csink_threads *t, const struct csink_profile *p, struct csink_profile *known,
			    const uint32_t *key)
{
	/* Equal ones are equal stacks in a profile of their own. */
	uint32_t id = csink_profile_stack_add(known, key, KEY_TIME);

	if (!id || id <= t->nr_threads)
		return id - 1;
	if (CSINK_GROW(t->threads, t->nr_threads, t->cap_threads))
		return UINT32_MAX;
	t->threads[t->nr_threads++] = (struct csink_thread){
		.pid = key[KEY_PID],
		.tid = key[KEY_TID],
		.process = csink_profile_text(p, key[KEY_PROCESS]),
		.thread = csink_profile_text(p, key[KEY_THREAD]),
	};
	return id - 1;
}

static int compare_rows(const void *left, const void *right)
{
	const struct csink_thread_row *a = left, *b = right;
	int order = CSINK_COMPARE(a->thread, b->thread) ?: CSINK_COMPARE(a->time_ns, b->time_ns);

	return order ?: CSINK_COMPARE(a->sample, b->sample);
}

static int read_samples(struct csink_threads *t, const struct csink_profile *p, struct csink_profile *known)
{
	static const char *const names[NR_KEYS] = {CSINK_LABEL_PID, CSINK_LABEL_TID, CSINK_LABEL_PROCESS,
						   CSINK_LABEL_THREAD, CSINK_LABEL_TIME};
	csink_str_t keys[NR_KEYS];

	for (uint32_t k = 0; k < NR_KEYS; k++)
		keys[k] = csink_profile_str_find(p, names[k]);
	for (uint32_t i = 0; i < p->nr_samples; i++) {
		struct csink_thread_row *row = &t->rows[t->nr_rows++];
		uint32_t key[KEY_TIME] = {0};

		row->sample = i;
		row->time_ns = CSINK_NO_TIME;
		read_labels(p, keys, p->samples[i].labels, key, &row->time_ns);
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
