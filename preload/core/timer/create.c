/* Making and ending timer queues: the part that never runs in a signal handler. */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "preload/core/timer/queue.h"

#define DEFAULT_CAPACITY 256
#define ALIGNMENT 64

/* The header's formula: the queue, its events and heap, and what alignment takes. */
_Static_assert(sizeof(struct csink_timerq) + ALIGNMENT <= CSINK_TIMERQ_BYTES(0),
	       "the queue outgrew CSINK_TIMERQ_BYTES");
_Static_assert(sizeof(struct csink_timerq_event) + sizeof(struct csink_timerq_node) ==
		       CSINK_TIMERQ_BYTES(1) - CSINK_TIMERQ_BYTES(0),
	       "an event outgrew CSINK_TIMERQ_BYTES");

CSINK_EXPORT size_t csink_timerq_bytes(uint32_t capacity)
{
	return CSINK_TIMERQ_BYTES(capacity ? capacity : DEFAULT_CAPACITY);
}

/*
 * Once in a process, and inherited by its children: the page stays mapped for good. fork's hook is for children that
 * make no call on their queues, in which events have to go on and the handler has to be taken away all the same.
 */
static int watch_forks(void)
{
	static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;
	size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
	void *page;
	int ret = 0;

	pthread_mutex_lock(&once);
	if (!csink_timerq_process_watched()) {
		page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (page == MAP_FAILED) {
			ret = -ENOMEM;
		} else {
			madvise(page, bytes, MADV_WIPEONFORK);
			csink_timerq_process_watch(page);
			if (pthread_atfork(NULL, NULL, csink_timerq_process_forked))
				ret = -ENOMEM;
		}
	}
	pthread_mutex_unlock(&once);
	return ret;
}

static int check(const struct csink_timerq_config *config)
{
	const uint32_t known = CSINK_TIMERQ_ARMED | CSINK_TIMERQ_KEEP_IN_CHILD;

	if ((config->flags & ~known) || config->capacity > CSINK_TIMERQ_MAX_EVENTS)
		return -EINVAL;
	if (!(config->flags & CSINK_TIMERQ_ARMED))
		return config->signal || config->tid ? -EINVAL : 0;
	if (config->clock || config->tid < 0)
		return -EINVAL;
	if (config->signal && (config->signal < SIGRTMIN || config->signal > SIGRTMAX))
		return -EINVAL;
	return 0;
}

/* Lay a queue out in zeroed memory. */
static struct csink_timerq *lay_out(void *mem, const struct csink_timerq_config *config, uint32_t capacity)
{
	struct csink_timerq *q = (void *)CSINK_ALIGN_UP((uintptr_t)mem, ALIGNMENT);

	q->events = (void *)(q + 1);
	q->heap = (void *)(q->events + capacity);
	q->capacity = capacity;
	q->index_bits = 32 - (uint32_t)__builtin_clz(capacity);
	q->flags = config->flags;
	q->signal = config->signal;
	q->tid = config->tid;
	q->clock = config->clock;
	q->armed_ns = CSINK_TIMERQ_NEVER;
	atomic_store(&q->next_ns, CSINK_TIMERQ_NEVER);
	atomic_store(&q->timer, CSINK_TIMERQ_NO_TIMER);
	atomic_store(&q->epoch, csink_timerq_process_epoch());
	return q;
}

static int start(void *mem, const struct csink_timerq_config *config, uint32_t capacity, struct csink_timerq **out)
{
	struct csink_timerq *q;
	int ret;

	q = lay_out(mem, config, capacity);
	if (config->flags & CSINK_TIMERQ_ARMED) {
		ret = csink_timerq_alarm_claim(q);
		if (ret)
			return ret;
		ret = csink_timerq_alarm_ready(q);
		if (ret) {
			csink_timerq_alarm_release(q);
			return ret;
		}
	}
	*out = q;
	return 0;
}

static int init(void *mem, size_t bytes, const struct csink_timerq_config *config, bool watched,
		struct csink_timerq **q)
{
	static const struct csink_timerq_config defaults;
	uint32_t capacity;
	int ret;

	if (!config)
		config = &defaults;
	ret = check(config);
	if (ret)
		return ret;
	capacity = config->capacity ? config->capacity : DEFAULT_CAPACITY;
	if (bytes < csink_timerq_bytes(capacity))
		return -ENOSPC;
	ret = watched ? watch_forks() : 0;
	if (ret)
		return ret;
	memset(mem, 0, csink_timerq_bytes(capacity));
	return start(mem, config, capacity, q);
}

CSINK_EXPORT int csink_timerq_init(void *mem, size_t bytes, const struct csink_timerq_config *config,
				   struct csink_timerq **q)
{
	return init(mem, bytes, config, true, q);
}

int csink_timerq_init_unwatched(void *mem, size_t bytes, const struct csink_timerq_config *config,
				struct csink_timerq **q)
{
	return init(mem, bytes, config, false, q);
}

CSINK_EXPORT int csink_timerq_create(struct csink_timerq **q, const struct csink_timerq_config *config)
{
	static const struct csink_timerq_config defaults;
	uint32_t capacity;
	size_t bytes;
	void *map;
	int ret;

	if (!config)
		config = &defaults;
	ret = check(config);
	if (ret)
		return ret;
	capacity = config->capacity ? config->capacity : DEFAULT_CAPACITY;
	bytes = csink_timerq_bytes(capacity);
	map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (map == MAP_FAILED)
		return -ENOMEM;
	ret = watch_forks();
	if (!ret)
		ret = start(map, config, capacity, q);
	if (ret) {
		munmap(map, bytes);
		return ret;
	}
	(*q)->map = map;
	(*q)->map_bytes = bytes;
	return 0;
}

CSINK_EXPORT int csink_timerq_fini(struct csink_timerq *q)
{
	int ret = csink_timerq_seize(q);

	if (ret)
		return ret;
	csink_timerq_alarm_release(q);
	return 0;
}

CSINK_EXPORT int csink_timerq_destroy(struct csink_timerq *q)
{
	size_t bytes;
	void *map;
	int ret;

	if (!q)
		return 0;
	map = q->map;
	bytes = q->map_bytes;
	ret = csink_timerq_fini(q);
	if (!ret && map)
		munmap(map, bytes);
	return ret;
}

CSINK_EXPORT int csink_timerq_signal(const struct csink_timerq *q)
{
	return q->signal;
}
