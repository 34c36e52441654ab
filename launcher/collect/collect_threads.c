/*
 * What the kernel counted of each thread, from its start to its end, beside what samples have of it. In the launcher's
 * one thread.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "launcher/base/search.h"
#include "launcher/collect/collect_impl.h"

CSINK_COMPARE_BY(compare_threads, struct csink_outside_thread, pid, tid)

int csink_collect_threads_prepare(struct collector *c)
{
	uint32_t nr = c->outside ? c->outside->nr_threads : 0, kept = 0;

	if (!nr)
		return 0;
	c->threads = malloc(nr * sizeof(*c->threads));
	if (!c->threads)
		return -ENOMEM;
	memcpy(c->threads, c->outside->threads, nr * sizeof(*c->threads));
	qsort(c->threads, nr, sizeof(*c->threads), compare_threads);
	for (uint32_t i = 1; i < nr; i++) {
		if (compare_threads(&c->threads[i], &c->threads[kept]))
			c->threads[++kept] = c->threads[i];
		else /* its TID was used again */
			c->threads[kept].cpu_ns += c->threads[i].cpu_ns;
	}
	c->nr_threads = kept + 1;
	return 0;
}

uint64_t csink_collect_thread_ns(const struct collector *c, int32_t pid, int32_t tid)
{
	const struct csink_outside_thread key = {.pid = pid, .tid = tid};
	const struct csink_outside_thread *found =
		c->nr_threads ? bsearch(&key, c->threads, c->nr_threads, sizeof(key), compare_threads) : NULL;

	return found ? found->cpu_ns : 0;
}

bool csink_collect_owns_thread_ns(const struct image *image, int32_t tid)
{
	return image->is_last && (tid != image->pid || !image->former);
}

static uint32_t first_of(const struct collector *c, int32_t pid)
{
	return CSINK_LOWER(c->nr_threads, k, c->threads[k].pid < pid);
}

uint32_t csink_collect_nr_threads(const struct collector *c, int32_t pid)
{
	uint32_t first = first_of(c, pid), i = first;

	while (i < c->nr_threads && c->threads[i].pid == pid)
		i++;
	return i - first;
}

/* All threads that a process had. */
static uint64_t process_ns(const struct collector *c, int32_t pid)
{
	uint64_t sum = 0;

	for (uint32_t i = first_of(c, pid); i < c->nr_threads && c->threads[i].pid == pid; i++)
		sum += c->threads[i].cpu_ns;
	return sum;
}

/*
 * The kernel's events do not count while it switches from one thread to the next; CPU clocks do. Where the library sees
 * a thread end, it takes its clock. Else the process's clock has that time, of all threads together.
 */
static double switching_factor(const struct collector *c, const struct image *image)
{
	uint64_t counted = process_ns(c, image->pid), used = image->cpu_end_ns - image->cpu_start_ns;

	return !image->former && image->is_last && counted && used > counted ? (double)used / (double)counted : 1;
}

void csink_collect_tail_scales(const struct collector *c, const struct image *image, const struct csink_recorded *rec,
			       double *scales)
{
	int event = csink_collect_time_event(c, rec);
	double more = switching_factor(c, image);

	if (event < 0 || !c->nr_threads || image->state != CSINK_REC_LIVE || !image->has_engine)
		return;
	for (uint32_t i = 0; i < rec->nr_threads; i++) {
		const struct csink_rec_thread *thread = rec->threads[i];
		uint64_t counted = csink_collect_thread_ns(c, image->pid, thread->tid);
		uint64_t known = csink_recorded_thread_ns(thread, (uint32_t)event);
		uint64_t former = rec->former_ns ? rec->former_ns[i] : 0;

		if (counted)
			counted += CSINK_MIN(thread->former_ns, UINT64_MAX - counted);
		if (thread->nr_samples &&
		    !(thread->flags & (CSINK_THREAD_ENDED | CSINK_THREAD_NOT_SAMPLED | CSINK_THREAD_STOPPED)) &&
		    csink_collect_owns_thread_ns(image, thread->tid) && known && counted > known + former)
			scales[i] = (more * (double)counted - (double)former) / (double)known;
	}
	/* What a program did not want to be profiled stays as long as it was. */
	for (uint32_t i = 0; i < rec->nr_rows; i++)
		if (rec->rows[i].phase == CSINK_PHASE_OFF && rec->rows[i].thread != CSINK_RECORDED_NONE)
			scales[rec->rows[i].thread] = 1;
}
