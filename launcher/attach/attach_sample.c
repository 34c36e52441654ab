/* See attach_sample.h. */
#include "launcher/attach/attach_sample.h"

#include <string.h>

#include "launcher/attach/walk_copied.h"

/* A cursor over a sample's fields, which cannot leave it. */
struct fields {
	const uint64_t *at, *end;
	bool failed;
};

static uint64_t next(struct fields *f)
{
	if (f->at >= f->end) {
		f->failed = true;
		return 0;
	}
	return *f->at++;
}

static const uint64_t *next_run(struct fields *f, uint64_t nr)
{
	const uint64_t *run = f->at;

	if (f->failed || nr > (uint64_t)(f->end - f->at)) {
		f->failed = true;
		return NULL;
	}
	f->at += nr;
	return run;
}

/* The order is perf_event_open(2)'s. */
bool csink_attach_sample_read(const struct csink_attach_counters *c, const struct perf_event_header *record,
			      struct csink_attach_sample *s)
{
	struct fields fields = {(const uint64_t *)(record + 1),
				(const uint64_t *)record + record->size / sizeof(uint64_t), false};
	uint64_t ids, size, abi;

	memset(s, 0, sizeof(*s));
	s->in_kernel = (record->misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL;
	s->id = next(&fields);
	s->ip = next(&fields);
	ids = next(&fields);
	memcpy(&s->pid, &ids, sizeof(s->pid));
	memcpy(&s->tid, (char *)&ids + sizeof(s->pid), sizeof(s->tid));
	s->time_ns = next(&fields);
	s->period = c->has_period ? next(&fields) : 0;
	if (c->has_read) {
		s->nr_values = next(&fields);
		next_run(&fields, 2); /* time enabled, running */
		s->values = next_run(&fields, s->nr_values);
	}
	if (c->stacks != CSINK_ATTACH_LEAF) {
		s->nr_callchain = next(&fields);
		s->callchain = next_run(&fields, s->nr_callchain);
	}
	abi = next(&fields); /* of the registers; 0: there are none */
	s->is_32 = abi == PERF_SAMPLE_REGS_ABI_32;
	if (abi)
		s->regs = next_run(&fields,
				   c->stacks == CSINK_ATTACH_COPY ? __builtin_popcountll(csink_walk_regs_mask) : 1);
	if (c->stacks == CSINK_ATTACH_COPY) {
		size = next(&fields);
		s->stack = (const char *)next_run(&fields, size / sizeof(uint64_t));
		s->stack_bytes = size ? next(&fields) : 0;
		if (s->stack_bytes > size)
			fields.failed = true;
	}
	return !fields.failed;
}
