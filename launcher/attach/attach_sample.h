/* The fields of a sample, as the kernel wrote it. Any thread. */
#ifndef CSINK_ATTACH_SAMPLE_H
#define CSINK_ATTACH_SAMPLE_H

#include "launcher/attach/attach_counters.h"

struct csink_attach_sample {
	uint64_t id, ip, time_ns, period; /* period: 0 without c->has_period */
	const uint64_t *values;           /* of the event, and of the others of its group that opened */
	uint64_t nr_values;
	int32_t pid, tid;
	const uint64_t *callchain, *regs;
	uint64_t nr_callchain, stack_bytes;
	bool is_32;     /* of a program in 32-bit mode */
	bool in_kernel; /* regs are then those before the system call, fault or interrupt */
	const char *stack;
};

/** Read a record. False: it has not the fields that c->events ask for. */
bool csink_attach_sample_read(const struct csink_attach_counters *c, const struct perf_event_header *record,
			      struct csink_attach_sample *s);

#endif
