/* Making and ending timer queues: the part that never runs in a signal handler. */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "include/internal/rawcall.h"
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
int csink_timerq_watch_forks(void)
{
	static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;
	size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
	void *page;
	int ret = 0;

	pthread_mutex_lock(&once);
	if (!csink_timerq_process_watched()) {
		page = (void *)csink_rawcall(SYS_mmap, NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
					     -1, 0);
		if (csink_raw_failed((long)page)) {
			ret = -ENOMEM;
		} else {
			csink_rawcall(SYS_madvise, page, bytes, MADV_WIPEONFORK);
			csink_timerq_process_watch(page);
			if (pthread_atfork(NULL, NULL, csink_timerq_process_forked))
				ret = -ENOMEM;
		}
	}
	pthread_mutex_unlock(&once);
	return ret;
}

/* Copy what was given, NULL for none, with its defaults set, and check it. */
static int settle(const struct csink_timerq_config *given, struct csink_timerq_config *config)
{
	const uint32_t known = CSINK_TIMERQ_ARMED | CSINK_TIMERQ_KEEP_IN_CHILD;

	*config = given ? *given : (struct csink_timerq_config){0};
	config->capacity = config->capacity ? config->capacity : DEFAULT_CAPACITY;
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
static struct csink_timerq *lay_out(void *mem, const struct csink_timerq_config *config,
				    const struct csink_timerq_alarm *alarm)
{
	struct csink_timerq *q = (void *)CSINK_ALIGN_UP((uintptr_t)mem, ALIGNMENT);

	q->events = (void *)(q + 1);
	q->heap = (void *)(q->events + config->capacity);
	q->capacity = config->capacity;
	q->index_bits = 32 - (uint32_t)__builtin_clz(config->capacity);
	q->flags = config->flags;
	q->signal = config->signal;
	q->tid = config->tid;
	q->clock = config->clock;
	q->alarm = config->flags & CSINK_TIMERQ_ARMED ? alarm : NULL;
	q->armed_ns = CSINK_TIMERQ_NEVER;
	atomic_store(&q->next_ns, CSINK_TIMERQ_NEVER);
	atomic_store(&q->timer, CSINK_TIMERQ_NO_TIMER);
	atomic_store(&q->epoch, csink_timerq_process_epoch());
	return q;
}

/* For a queue that is armed, or is to follow forks. */
static int start(void *mem, const struct csink_timerq_config *config, struct csink_timerq **out)
{
	struct csink_timerq *q = lay_out(mem, config, &csink_timerq_alarm);
	int ret;

	if (q->alarm) {
		ret = q->alarm->claim(q);
		if (ret)
			return ret;
		ret = q->alarm->ready(q);
		if (ret) {
			csink_timerq_alarm_release(q);
			return ret;
		}
	}
	*out = q;
	return 0;
}

CSINK_EXPORT int csink_timerq_init(void *mem, size_t bytes, const struct csink_timerq_config *given,
				   struct csink_timerq **q)
{
	struct csink_timerq_config config;
	int ret = settle(given, &config);

	if (!ret && bytes < csink_timerq_bytes(config.capacity))
		ret = -ENOSPC;
	if (!ret)
		ret = csink_timerq_watch_forks();
	if (ret)
		return ret;
	memset(mem, 0, csink_timerq_bytes(config.capacity));
	return start(mem, &config, q);
}

struct csink_timerq *csink_timerq_init_unwatched(void *mem, uint32_t capacity, uint64_t (*clock)(void))
{
	const struct csink_timerq_config polled = {.capacity = capacity, .clock = clock};

	memset(mem, 0, CSINK_TIMERQ_BYTES(capacity));
	return lay_out(mem, &polled, NULL);
}

CSINK_EXPORT int csink_timerq_create(struct csink_timerq **q, const struct csink_timerq_config *given)
{
	struct csink_timerq_config config;
	int ret = settle(given, &config);
	size_t bytes;
	void *map;

	if (ret)
		return ret;
	bytes = csink_timerq_bytes(config.capacity);
	map = (void *)csink_rawcall(SYS_mmap, NULL, bytes, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (csink_raw_failed((long)map))
		return -ENOMEM;
	ret = csink_timerq_watch_forks();
	if (!ret)
		ret = start(map, &config, q);
	if (ret) {
		csink_rawcall(SYS_munmap, map, bytes);
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
		csink_rawcall(SYS_munmap, map, bytes);
	return ret;
}

CSINK_EXPORT int csink_timerq_signal(const struct csink_timerq *q)
{
	return q->signal;
}
