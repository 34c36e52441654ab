/*
 * Comments of merged profiles. Numbers add up; of texts each is kept once, and of too many the first in their order: so
 * here too the order of the profiles does not matter.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "launcher/profile/facts.h"
#include "launcher/profile/merge_impl.h"

#define MAX_TEXTS 24 /* of one key, of those that do not add up */
#define MAX_LINE 2048

enum how {
	HOW_KEEP, /* each text once */
	HOW_SUM,  /* each word that is a number adds up, where the others are the same */
	HOW_MAX,
	HOW_FIRST, /* of the slices of a run, the first one's */
	HOW_DROP,  /* of one of those that are merged, and not of all */
};

static enum how how_of(const char *line, size_t key_len)
{
	static const struct {
		const char *key;
		enum how how;
	} rules[] = {
		{CSINK_FACT_UNWAITED, HOW_SUM},   {CSINK_FACT_WALL, HOW_SUM},       {CSINK_FACT_USER, HOW_SUM},
		{CSINK_FACT_SYS, HOW_SUM},        {CSINK_FACT_MAXRSS, HOW_MAX},     {CSINK_FACT_PROCESSES, HOW_SUM},
		{CSINK_FACT_THREADS, HOW_SUM},    {CSINK_FACT_COUNTER, HOW_SUM},    {CSINK_FACT_LOSS, HOW_SUM},
		{CSINK_FACT_RUNS, HOW_SUM},       {CSINK_FACT_CPUS, HOW_MAX},       {CSINK_FACT_RANK, HOW_DROP},
		{CSINK_FACT_RANKS, HOW_MAX},      {CSINK_FACT_SLICE, HOW_DROP},     {CSINK_FACT_SLICE_START, HOW_DROP},
		{CSINK_FACT_RUN_STATE, HOW_DROP}, {CSINK_FACT_CONTINUED, HOW_FIRST}};
	uint32_t i;

	for (i = 0; i < CSINK_ARRAY_SIZE(rules); i++) {
		if (strlen(rules[i].key) == key_len && !strncmp(line, rules[i].key, key_len))
			return rules[i].how;
	}
	return HOW_KEEP;
}

/* The length of a line's key; 0: a comment of another program. */
static size_t key_of(const char *line)
{
	size_t len = 0;

	while (islower((unsigned char)line[len]) || line[len] == '_')
		len++;
	return line[len] == ':' && line[len + 1] == ' ' ? len : 0;
}

/* The number at a word's beginning, if it is the whole word. */
static bool number_at(const char *word, int64_t *value, size_t *len)
{
	*len = strspn(word, "0123456789");
	if (!*len || *len > 18 || (word[*len] && word[*len] != ' ' && word[*len] != ','))
		return false;
	*value = strtoll(word, NULL, 10);
	return true;
}

/* Put a and b together, if they differ in numbers alone. Returns whether they do. */
static bool combine(const char *a, const char *b, enum how how, char *out, size_t size)
{
	bool is_start = true;
	int64_t left, right;
	size_t used = 0, left_len, right_len;

	while (*a || *b) {
		if (is_start && number_at(a, &left, &left_len) && number_at(b, &right, &right_len)) {
			used += snprintf(out + used, size - used, "%" PRId64,
					 how == HOW_SUM ? csink_add(left, right) : CSINK_MAX(left, right));
			a += left_len;
			b += right_len;
		} else if (*a != *b) {
			return false;
		} else {
			out[used++] = *a++;
			b++;
		}
		is_start = used && out[used - 1] == ' ';
		if (used + 32 > size)
			return false;
	}
	out[used] = 0;
	return true;
}

static int add_line(struct csink_profile *facts, const char *line)
{
	size_t key = key_of(line);
	enum how how = how_of(line, key);
	char sum[MAX_LINE];
	const char *known;
	uint32_t i;

	if (how == HOW_DROP)
		return 0;
	for (i = 0; i < facts->nr_comments; i++) {
		known = csink_profile_text(facts, facts->comments[i]);
		if (!strcmp(known, line) && how != HOW_SUM)
			return 0;
		if (how != HOW_KEEP && !strncmp(known, line, key + 1) && combine(known, line, how, sum, sizeof(sum))) {
			facts->comments[i] = csink_profile_str(facts, sum);
			return csink_profile_error(facts);
		}
	}
	csink_profile_comment_add(facts, csink_profile_str(facts, line));
	return csink_profile_error(facts);
}

/* Take from a number what two slices both have. */
static void take_off(struct csink_profile *facts, const char *key, int64_t value)
{
	size_t length = strlen(key);
	char line[64];
	int64_t left;

	for (uint32_t i = 0; i < facts->nr_comments; i++) {
		const char *known = csink_profile_text(facts, facts->comments[i]);

		if (strncmp(known, key, length) || known[length] != ':')
			continue;
		left = strtoll(known + length + 1, NULL, 10);
		snprintf(line, sizeof(line), "%s: %" PRId64, key, CSINK_MAX(csink_add(left, -value), 0L));
		facts->comments[i] = csink_profile_str(facts, line);
		return;
	}
}

/*
 * Of two slices of a run, the later one's processes and threads that slices before have were added twice. The earlier
 * one's line is kept: so in any order, and any tree of merges, those of all but the first are taken off.
 */
static int add_continued(struct csink_profile *facts, const char *line)
{
	char run[MAX_LINE], known_run[MAX_LINE];
	uint64_t number, known_number;
	int64_t values[2], known_values[2];
	const char *known;

	if (strlen(line) >= sizeof(run) ||
	    sscanf(line, CSINK_FACT_CONTINUED ": %s %" SCNu64 " %" SCNd64 " %" SCNd64, run, &number, &values[0],
		   &values[1]) != 4 ||
	    values[0] < 0 || values[1] < 0)
		return 0;
	for (uint32_t i = 0; i < facts->nr_comments; i++) {
		known = csink_profile_text(facts, facts->comments[i]);
		if (strlen(known) >= sizeof(known_run) ||
		    sscanf(known, CSINK_FACT_CONTINUED ": %s %" SCNu64 " %" SCNd64 " %" SCNd64, known_run,
			   &known_number, &known_values[0], &known_values[1]) != 4 ||
		    known_values[0] < 0 || known_values[1] < 0 || strcmp(run, known_run) != 0)
			continue;
		if (number < known_number) {
			facts->comments[i] = csink_profile_str(facts, line);
			memcpy(values, known_values, sizeof(values));
		}
		take_off(facts, CSINK_FACT_PROCESSES, values[0]);
		take_off(facts, CSINK_FACT_THREADS, values[1]);
		return csink_profile_error(facts);
	}
	csink_profile_comment_add(facts, csink_profile_str(facts, line));
	return csink_profile_error(facts);
}

static bool is_continued_line(const char *line)
{
	return how_of(line, key_of(line)) == HOW_FIRST;
}

static int compare_lines(const void *a, const void *b, void *context)
{
	return csink_merge_compare_texts(context, *(const csink_str_t *)a, *(const csink_str_t *)b);
}

/* Sort, and of each key keep the first ones. Strings that fell out are forgotten now and then. */
static int tidy(struct csink_merge *m)
{
	struct csink_profile *old = m->facts, *facts = csink_profile_create();
	uint32_t i, of_key = 0;
	size_t key = SIZE_MAX, last_key;
	const char *line, *last = "";

	if (!facts)
		return -ENOMEM;
	if (old->nr_comments)
		qsort_r(old->comments, old->nr_comments, sizeof(*old->comments), compare_lines, old);
	for (i = 0; i < old->nr_comments; i++) {
		line = csink_profile_text(old, old->comments[i]);
		last_key = key;
		key = key_of(line);
		of_key = key == last_key && !strncmp(line, last, key) ? of_key + 1 : 1;
		last = line;
		if (of_key <= MAX_TEXTS || how_of(line, key) != HOW_KEEP)
			csink_profile_comment_add(facts, csink_profile_str(facts, line));
	}
	m->facts = facts;
	i = csink_profile_error(facts) ? 1 : 0;
	csink_profile_free(old);
	return i ? -ENOMEM : 0;
}

int csink_merge_facts(struct csink_merge *m, const struct csink_profile *p)
{
	bool has_runs = csink_profile_fact(p, CSINK_FACT_RUNS, 0) != NULL;
	const char *line;
	int err = has_runs ? 0 : add_line(m->facts, CSINK_FACT_RUNS ": 1");

	for (uint32_t i = 0; i < p->nr_comments && !err; i++) {
		line = csink_profile_text(p, p->comments[i]);
		if (!is_continued_line(line))
			err = add_line(m->facts, line);
	}
	/* Its numbers are added by then. */
	for (uint32_t i = 0; i < p->nr_comments && !err; i++) {
		line = csink_profile_text(p, p->comments[i]);
		if (is_continued_line(line))
			err = add_continued(m->facts, line);
	}
	return err ? err : tidy(m);
}
