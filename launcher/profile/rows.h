/*
 * What samples are added up by: functions (a name in a module; overloads, and interpreted functions of one name in one
 * file, are distinguished), modules, lines, threads, processes, phases, ranks. Each is a row; every location, or every
 * label set, leads to those it stands for, so that a sample costs a look-up for each of its frames. Report, tree and
 * diff are built on this.
 */
#ifndef CSINK_ROWS_H
#define CSINK_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "launcher/profile/interpreted.h"
#include "launcher/profile/profile.h"

enum csink_by {
	CSINK_BY_FUNCTION,
	CSINK_BY_MODULE,
	CSINK_BY_LINE,
	CSINK_BY_THREAD,
	CSINK_BY_PROCESS,
	CSINK_BY_PHASE,
	CSINK_BY_RANK,
	CSINK_BY_LOCK,
	CSINK_BY_HOLDER,
	CSINK_NR_BYS
};

struct csink_row_key {
	const char *name;               /* for people; of a line "file:line function" */
	const char *module;             /* path of the object; of a thread its process; "": none */
	const char *short_module;       /* for people: as much of its end as no other row has */
	const char *file;               /* source file of the line, or of an interpreted function; "": not known */
	int64_t line;                   /* there: the line, or the function's first; 0: not known */
	bool seen_inlined;              /* at some location inlined into another function */
	bool seen_plain;                /* at some location not */
	bool is_interpreted;            /* the module is a source file */
	csink_str_t name_id, module_id; /* equal texts have equal ids */
};

struct csink_rows {
	enum csink_by by;
	struct csink_row_key *keys;
	uint32_t nr_keys, cap_keys;
	struct csink_profile_range *spans; /* by location: its rows in ids, innermost first; NULL where labels decide */
	uint32_t *ids;
	uint32_t nr_ids;
	uint32_t *of_labels;         /* by label set; NULL where locations decide */
	struct csink_profile *names; /* where the texts are */
};

/* Go over the rows of a stack, innermost first: `at` points to each, in rows->ids. Of two loops: not to be left by
 * break. */
#define CSINK_EACH_ROW(rows, p, stack, at)                                                                             \
	for (const uint32_t *id_ = (p)->stack_ids + (stack)->first, *end_ = id_ + (stack)->nr; id_ < end_; id_++)      \
		for (const uint32_t *at = (rows)->ids + (rows)->spans[*id_].first,                                     \
				    *last_ = at + (rows)->spans[*id_].nr;                                              \
		     at < last_; at++)

/** The words of --by, by enum csink_by. */
extern const char *const csink_by_words[CSINK_NR_BYS];

/** Make the rows of a profile. Returns 0 (csink_rows_free it) or -ENOMEM. Context: thread. */
int csink_rows_build(struct csink_rows *rows, const struct csink_profile *p, enum csink_by by);

/** The same of a profile whose interpreted functions were found together with another's: @side is its number there.
 * @found is read for rows by function alone. */
int csink_rows_build_found(struct csink_rows *rows, const struct csink_profile *p, enum csink_by by,
			   const struct csink_interpreted *found, uint32_t side);
void csink_rows_free(struct csink_rows *rows);

/**
 * Find an extended regular expression (regex(7)) in the rows' names.
 * @matches  malloc'ed, by row.
 * @why      receives the reason why it is none.
 * Returns how many match, -EINVAL (no regular expression) or -ENOMEM.
 */
int64_t csink_rows_match(const struct csink_rows *rows, const char *pattern, bool **matches, char *why, size_t why_len);

#endif
