/*
 * The profile in memory: what collect makes from recordings, what the pprof reader and writer translate, and what
 * report, export, diff and gate read. Modelled on pprof's profile.proto, so that nothing is lost between the two.
 *
 * Strings, functions, stacks, label sets and samples are interned: equal ones have equal ids, and adding one again is a
 * look-up. Ids count from 1; 0 is "none" (for a string: the empty string). The arrays are open for reading; add to them
 * with the functions below only. Pointers into the arrays hold until the next addition, texts of strings until it is
 * freed.
 *
 * Running out of memory is sticky: additions then return 0 and csink_profile_error() says -ENOMEM, so that a builder
 * need check once, at its end. Context of all functions here: thread; one thread at a time for a profile.
 */
#ifndef CSINK_PROFILE_H
#define CSINK_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "launcher/base/table.h"

typedef uint32_t csink_str_t;

/* A column of values: what each sample counts. */
struct csink_profile_type {
	csink_str_t name; /* "samples", "task-clock" */
	csink_str_t unit; /* "count", "nanoseconds" */
};

/* A mapped object. Addresses are run-time ones; file address = address - start + offset. */
struct csink_profile_mapping {
	uint64_t start, limit, offset;
	csink_str_t file;
	csink_str_t build_id; /* lower-case hexadecimal */
	uint8_t has_functions, has_filenames, has_lines, has_inlines;
};

struct csink_profile_function {
	csink_str_t name;        /* for people: demangled */
	csink_str_t system_name; /* as the symbol table has it */
	csink_str_t file;
	csink_str_t language; /* "Python": what has read its frame knows it; none: native code, or not known */
	int64_t start_line;   /* 0 unknown */
};

/* One function at a location. */
struct csink_profile_line {
	uint32_t function;
	uint32_t reserved;
	int64_t line; /* 0 unknown */
};

/* An address, and the functions that it is in: lines[first_line] is the innermost inlined one, the last is the function
 * that the symbol table knows. */
struct csink_profile_location {
	uint64_t address;
	uint32_t mapping; /* 0: none */
	uint32_t first_line;
	uint32_t nr_lines;
	uint32_t is_folded;
};

/* A text (str != 0) or a number. */
struct csink_profile_label {
	csink_str_t key;
	csink_str_t str;
	csink_str_t num_unit;
	uint32_t reserved; /* keep 0: labels are compared as bytes */
	int64_t num;
};

/* A run of location ids (innermost first) or of labels in the pools below. */
struct csink_profile_range {
	uint32_t first;
	uint32_t nr;
};

struct csink_profile_sample {
	uint32_t stack;  /* id; 0: no frames */
	uint32_t labels; /* id of a label set; 0: none */
};

/*
 * Strings, mappings, functions, locations, stacks and label sets are indexed by id: entry 0 is "none", the last is
 * nr_ - 1. Types, lines, samples, comments and the two pools are plain arrays from 0.
 */
struct csink_profile {
	struct csink_profile_type *types;
	uint32_t nr_types, cap_types;
	uint32_t default_type; /* index */

	struct csink_profile_string {
		const char *text;
		size_t len;
	} * strings;
	uint32_t nr_strings, cap_strings;

	struct csink_profile_mapping *mappings;
	uint32_t nr_mappings, cap_mappings;
	struct csink_profile_function *functions;
	uint32_t nr_functions, cap_functions;
	struct csink_profile_location *locations;
	uint32_t nr_locations, cap_locations;
	struct csink_profile_line *lines;
	uint32_t nr_lines, cap_lines;

	struct csink_profile_range *stacks; /* of stack_ids */
	uint32_t nr_stacks, cap_stacks;
	uint32_t *stack_ids;
	uint32_t nr_stack_ids, cap_stack_ids;

	struct csink_profile_range *label_sets; /* of labels */
	uint32_t nr_label_sets, cap_label_sets;
	struct csink_profile_label *labels;
	uint32_t nr_labels, cap_labels;

	struct csink_profile_sample *samples;
	uint32_t nr_samples, cap_samples;
	int64_t *values; /* sample i, type t: values[i * nr_types + t] */

	csink_str_t *comments;
	uint32_t nr_comments, cap_comments;

	int64_t time_ns;     /* CLOCK_REALTIME of the start; 0 unknown */
	int64_t duration_ns; /* wall time; 0 unknown */
	int64_t period;      /* of the leader; 0 unknown */
	struct csink_profile_type period_type;
	csink_str_t drop_frames, keep_frames;

	/* The cursor of csink_profile_fact(): where it found number next_nr - 1 of last_key. */
	char last_key[64];
	uint32_t next_nr, next_at;

	int error;
	uint64_t bytes, max_bytes; /* of memory; max_bytes 0: no limit */
	bool is_over;              /* error: max_bytes were not enough */
	struct csink_table string_table, function_table, stack_table, label_table, sample_table;
	struct csink_text_chunk *text; /* where the strings' bytes are */
};

/** Returns an empty profile (csink_profile_free it), or NULL without memory. */
struct csink_profile *csink_profile_create(void);
void csink_profile_free(struct csink_profile *p);

/* A profile that ends with its scope: CSINK_AUTO(csink_profile_done) struct csink_profile *texts = ... */
static inline void csink_profile_done(struct csink_profile **p)
{
	csink_profile_free(*p);
}

/** Limit the profile's memory: what needs more bytes fails with -ENOMEM, and csink_profile_is_over() is true then. */
void csink_profile_limit(struct csink_profile *p, uint64_t max_bytes);
bool csink_profile_is_over(const struct csink_profile *p);

/** Returns 0, or -ENOMEM if any addition so far had no memory (or met the limit of 2^32 - 1 ids). */
int csink_profile_error(const struct csink_profile *p);

/** Intern a string of len bytes, or an ended one (NULL: the empty one). Returns its id. */
csink_str_t csink_profile_strn(struct csink_profile *p, const char *s, size_t len);
csink_str_t csink_profile_str(struct csink_profile *p, const char *s);

/** The id of a text that the profile has, else 0. */
csink_str_t csink_profile_str_find(const struct csink_profile *p, const char *s);

/** The text of a string id; "" if there is no such id. Always ended by NUL, never NULL. */
const char *csink_profile_text(const struct csink_profile *p, csink_str_t id);

/**
 * Add a column. All are added before the first sample.
 * Returns its index, or -ENOMEM, or -EINVAL once there are samples.
 */
int csink_profile_type_add(struct csink_profile *p, const char *name, const char *unit);

/** The same at any time: samples that are there already have 0 of it. Returns its index, or -ENOMEM. */
int csink_profile_type_append(struct csink_profile *p, const char *name, const char *unit);

/** The label of that key in a set, or NULL; also NULL for key 0. */
const struct csink_profile_label *csink_profile_label_find(const struct csink_profile *p, uint32_t set,
							   csink_str_t key);

/** The index of the type of that name, or -ENOENT. */
int csink_profile_type_find(const struct csink_profile *p, const char *name);

/** The sum of a type over all samples, of those in brackets, too; saturates. */
int64_t csink_profile_sum(const struct csink_profile *p, uint32_t type);

/** Append a mapping (copied; equal ones are not folded). Returns its id. */
uint32_t csink_profile_mapping_add(struct csink_profile *p, const struct csink_profile_mapping *m);

/** Intern a function. Returns its id. */
uint32_t csink_profile_function_add(struct csink_profile *p, const struct csink_profile_function *f);

/** Append a location with its lines, innermost first (equal ones are not folded). Returns its id. */
uint32_t csink_profile_location_add(struct csink_profile *p, uint32_t mapping, uint64_t address,
				    const struct csink_profile_line *lines, uint32_t nr_lines);

/** Give a location its lines, innermost first: once, and only to one that was added without any. */
void csink_profile_location_set_lines(struct csink_profile *p, uint32_t location,
				      const struct csink_profile_line *lines, uint32_t nr_lines);

/** Intern a stack of location ids, innermost first. Returns its id; 0 for an empty one. */
uint32_t csink_profile_stack_add(struct csink_profile *p, const uint32_t *locations, uint32_t nr);

/** Intern a label set, order kept; reserved must be 0. Returns its id; 0 for an empty one. */
uint32_t csink_profile_labels_add(struct csink_profile *p, const struct csink_profile_label *labels, uint32_t nr);

/** Add nr_types values to the sample of that stack and label set; it is made if there is none yet. */
void csink_profile_sample_add(struct csink_profile *p, uint32_t stack, uint32_t labels, const int64_t *values);

static inline const int64_t *csink_profile_values(const struct csink_profile *p, uint32_t sample)
{
	return p->values + (uint64_t)sample * p->nr_types;
}

/** Is any value of a sample not 0? Context: any. */
static inline bool csink_profile_sample_counts(const struct csink_profile *p, uint32_t sample)
{
	const int64_t *values = csink_profile_values(p, sample);
	uint32_t i = 0;

	while (i < p->nr_types && !values[i])
		i++;
	return i < p->nr_types;
}

/** The lines of the location that has most, and the locations of the longest stack. Context: any. */
uint32_t csink_profile_most_lines(const struct csink_profile *p);
uint32_t csink_profile_longest_stack(const struct csink_profile *p);

/** Two mappings become one: what is not so of both is not so of @known. Context: thread. */
void csink_profile_mapping_join(struct csink_profile_mapping *known, const struct csink_profile_mapping *m);

/** Say that so many samples are about to be added, each with a stack of its own: room for them is made at once. */
void csink_profile_expect(struct csink_profile *p, uint32_t nr_samples);

/** Take out the samples whose keep[index] is false; ids stay as they are. */
void csink_profile_keep(struct csink_profile *p, const bool *keep);

/** Append a comment as it is. */
void csink_profile_comment_add(struct csink_profile *p, csink_str_t text);

/** Append the comment "key: text" (control characters become blanks; cut at 2047 bytes). A key may come several times.
 */
__attribute__((format(printf, 3, 4))) void csink_profile_fact_add(struct csink_profile *p, const char *key,
								  const char *fmt, ...);

/**
 * The text after "key: " of the nr-th (from 0) comment of that key; NULL if there is none.
 */
const char *csink_profile_fact(const struct csink_profile *p, const char *key, uint32_t nr);

/** The label of a label set that is a rank: a number. Other programs' label of that name may be a text. Context: any.
 */
const struct csink_profile_label *csink_profile_rank_find(const struct csink_profile *p, uint32_t labels);

/** Has any sample the rank of a parallel job? Context: any. */
bool csink_profile_has_ranks(const struct csink_profile *p);

/** How many runs were merged into it; 1 where that is not known. */
int64_t csink_profile_runs(const struct csink_profile *p);

#endif
