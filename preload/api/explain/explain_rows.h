/*
 * The table of attributes that explanations go through. A row names the bytes and bits that are taken over from the
 * caller's attr together; those that are sets of flags are taken over bit by bit when the whole set fails. What a
 * refusal means is in the row's verdicts, by errno. Constant at run time; read by explain_take.c.
 */
#ifndef CSINK_EXPLAIN_ROWS_H
#define CSINK_EXPLAIN_ROWS_H

#include "preload/api/explain/explain_probe.h"

/* Where the one-bit fields of an attr are: 64 bits, which have no name together. */
#define CSINK_ATTR_FLAGS (offsetof(struct perf_event_attr, read_format) + 8)

/* What a refusal means. err 0: whatever the errno. The first that fits is used. */
struct csink_verdict {
	int err;
	enum csink_cause cause;
	const char *text, *remedy;
	void (*detail)(const struct csink_probe *probe,
		       struct csink_explanation *out); /* text and remedy need figures */
};

struct csink_part {
	uint16_t offset, bytes;
	uint64_t mask; /* of bytes <= 8; 0: all */
};

struct csink_row {
	const char *field;
	struct csink_part parts[3];
	const char *const *bits;              /* of parts[0]: taken over bit by bit when the whole fails */
	bool by_pmu;                          /* the event's PMU decides: the dummy's answer would prove nothing */
	const struct csink_verdict *verdicts; /* ends with a NULL text and detail */
};

/* Names of the one-bit fields, from the least significant bit. */
extern const char *const csink_flag_names[64];

/* Checked as the attr is copied, or at least before the event is looked at; in the kernel's order. */
extern const struct csink_row csink_rows_before[];
extern const uint32_t csink_nr_rows_before;
/* Then one of these, by attr.freq. */
extern const struct csink_row csink_row_freq, csink_row_period;
/* The event's PMU has a say in these. */
extern const struct csink_row csink_rows_after[];
extern const uint32_t csink_nr_rows_after;

/** What it means that this bit of the row is refused. */
const struct csink_verdict *csink_row_verdicts(const struct csink_row *row, int bit);

#endif
