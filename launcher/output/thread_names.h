/* A profile's samples by thread, in order of time: what formats need that know threads. Context of all: thread. */
#ifndef CSINK_THREAD_NAMES_H
#define CSINK_THREAD_NAMES_H

#include <stddef.h>
#include <stdint.h>

struct csink_profile;

#define CSINK_NO_TIME INT64_MIN

struct csink_thread {
	int32_t pid, tid;             /* 0: not known */
	const char *process, *thread; /* names; "": not known. They are the profile's */
	uint32_t first_row, nr_rows;  /* in rows */
};

struct csink_threads {
	struct csink_thread *threads; /* as the samples name them first */
	uint32_t nr_threads, cap_threads;
	struct csink_thread_row {
		uint32_t sample; /* of the profile */
		uint32_t thread;
		int64_t time_ns; /* since 1970; CSINK_NO_TIME: not known, which comes first */
	} * rows;                /* one for each sample: by thread, then by time */
	uint32_t nr_rows;
	int64_t first_ns, last_ns; /* of those that are known; CSINK_NO_TIME if none is */
};

/** Returns 0 (csink_threads_free it) or -ENOMEM. */
int csink_threads_build(struct csink_threads *t, const struct csink_profile *p);
void csink_threads_free(struct csink_threads *t);

/** "worker 123 of redis-server 120", or what is known of it. */
void csink_thread_describe(const struct csink_thread *thread, char *out, size_t size);

#endif
