/* See filter.h. Patterns are tried once for each text that there is, not for each sample. */
#include "launcher/profile/filter.h"

#include <errno.h>
#include <regex.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "launcher/base/format.h"
#include "launcher/base/message.h"
#include "launcher/profile/facts.h"
#include "launcher/profile/rows.h"

struct work {
	struct csink_profile *p;
	bool *keep; /* by sample */
	char *why;
	size_t why_len;
};

static int compile(struct work *w, const char *option, const char *pattern, regex_t *regex)
{
	int err = regcomp(regex, pattern, REG_EXTENDED | REG_NOSUB);
	char text[128];

	if (!err)
		return 0;
	regerror(err, regex, text, sizeof(text));
	return csink_why(-EINVAL, w->why, w->why_len, "option --%s: '%s' is no regular expression: %s", option, pattern,
			 text);
}

/* Which rows have a name (of modules: a path) that the pattern is found in. */
static bool *match_rows(const struct csink_rows *rows, const regex_t *regex)
{
	bool *matches = calloc(rows->nr_keys + 1, sizeof(*matches));
	uint32_t i;

	for (i = 0; matches && i < rows->nr_keys; i++)
		matches[i] = !regexec(regex, rows->keys[i].name, 0, NULL, 0);
	return matches;
}

/* Whether a stack has such a frame; of modules, whether its innermost one is such. */
static bool stack_matches(const struct work *w, const struct csink_rows *rows, const bool *matches, uint32_t stack)
{
	struct csink_profile_range range = w->p->stacks[stack];

	if (rows->by == CSINK_BY_MODULE)
		range.nr = CSINK_MIN(range.nr, 1);
	CSINK_EACH_ROW(rows, w->p, &range, at)
	{
		if (matches[*at])
			return true;
	}
	return false;
}

static void judge(struct work *w, const struct csink_rows *rows, const bool *matches, bool wanted)
{
	const struct csink_profile_sample *sample;
	uint32_t i;
	bool found;

	for (i = 0; i < w->p->nr_samples; i++) {
		sample = &w->p->samples[i];
		if (!w->keep[i])
			continue;
		found = rows->of_labels ? matches[rows->of_labels[sample->labels]]
					: stack_matches(w, rows, matches, sample->stack);
		w->keep[i] = found == wanted;
	}
}

/* Each option: where its pattern is, what it is searched in, and whether samples with it or without it pass. */
static const struct option {
	const char *name;
	size_t pattern;
	enum csink_by by;
	bool wanted;
} options[] = {
	{"thread", offsetof(struct csink_filter, thread), CSINK_BY_THREAD, true},
	{"comm", offsetof(struct csink_filter, comm), CSINK_BY_PROCESS, true},
	{"module", offsetof(struct csink_filter, module), CSINK_BY_MODULE, true},
	{"focus", offsetof(struct csink_filter, focus), CSINK_BY_FUNCTION, true},
	{"ignore", offsetof(struct csink_filter, ignore), CSINK_BY_FUNCTION, false},
};

/* "": it was not given. */
static const char *pattern_of(const struct csink_filter *f, const struct option *option)
{
	const char *pattern = *(const char *const *)((const char *)f + option->pattern);

	return pattern ? pattern : "";
}

static int apply(struct work *w, const struct option *option, const char *pattern)
{
	struct csink_rows rows;
	bool *matches = NULL;
	regex_t regex;
	int err = compile(w, option->name, pattern, &regex);

	if (err)
		return err;
	err = csink_rows_build(&rows, w->p, option->by);
	if (!err) {
		matches = match_rows(&rows, &regex);
		err = matches ? 0 : -ENOMEM;
	}
	if (!err)
		judge(w, &rows, matches, option->wanted);
	csink_rows_free(&rows);
	free(matches);
	regfree(&regex);
	return err;
}

static int64_t sum_of(const struct csink_profile *p)
{
	int64_t sum = 0;
	uint32_t i;

	for (i = 0; i < p->nr_samples; i++)
		sum = csink_add(sum, csink_profile_values(p, i)[p->default_type]);
	return sum;
}

int csink_filter_apply(struct csink_profile *p, const struct csink_filter *f, char *why, size_t why_len)
{
	struct work w = {.p = p, .keep = malloc(p->nr_samples + 1), .why = why, .why_len = why_len};
	int64_t before, after;
	char text[512] = ""; /* the options that were given, as they would be given again */
	int err = w.keep ? 0 : -ENOMEM;

	if (!err)
		memset(w.keep, 1, p->nr_samples + 1);
	for (uint32_t i = 0; i < CSINK_ARRAY_SIZE(options) && !err; i++) {
		const char *pattern = pattern_of(f, &options[i]);

		if (!*pattern)
			continue;
		csink_append(text, sizeof(text), "%s--%s %s", *text ? " " : "", options[i].name, pattern);
		err = apply(&w, &options[i], pattern);
	}
	if (!err && *text && p->default_type < p->nr_types) {
		before = sum_of(p);
		csink_profile_keep(p, w.keep);
		after = sum_of(p);
		csink_profile_fact_add(p, CSINK_FACT_FILTER, "%s: %.2f %% of all", text,
				       before ? 100.0 * (double)after / (double)before : 0);
		err = csink_profile_error(p);
		if (!err && !p->nr_samples) {
			snprintf(why, why_len, "no sample passes %s", text);
			err = -ENODATA;
		}
	}
	if (err == -ENOMEM)
		snprintf(why, why_len, "no memory");
	free(w.keep);
	return err;
}
