/* See filter.h. Patterns are tried once for each text that there is, not for each sample. */
#include "launcher/profile/filter.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "launcher/base/format.h"
#include "launcher/base/message.h"
#include "launcher/profile/facts.h"
#include "launcher/profile/rows.h"

/* Whether a stack has such a frame; of modules, whether its innermost one is such. */
static bool stack_matches(const struct csink_profile *p, const struct csink_rows *rows, const bool *matches,
			  uint32_t stack)
{
	struct csink_profile_range range = p->stacks[stack];

	if (rows->by == CSINK_BY_MODULE)
		range.nr = CSINK_MIN(range.nr, 1);
	CSINK_EACH_ROW(rows, p, &range, at)
	{
		if (matches[*at])
			return true;
	}
	return false;
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

/* Clear keep[] of the samples that an option takes out. */
static int apply(const struct csink_profile *p, const struct option *option, const char *pattern, bool *keep, char *why,
		 size_t why_len)
{
	CSINK_AUTO(csink_rows_free) struct csink_rows rows;
	CSINK_AUTO_FREE bool *matches = NULL;
	char text[128];
	int64_t nr = csink_rows_build(&rows, p, option->by)
			     ?: csink_rows_match(&rows, pattern, &matches, text, sizeof(text));

	if (nr == -EINVAL)
		return csink_why(-EINVAL, why, why_len, "option --%s: '%s' is no regular expression: %s", option->name,
				 pattern, text);
	for (uint32_t i = 0; nr >= 0 && i < p->nr_samples; i++) {
		const struct csink_profile_sample *sample = &p->samples[i];
		bool found = rows.of_labels ? matches[rows.of_labels[sample->labels]]
					    : stack_matches(p, &rows, matches, sample->stack);

		keep[i] &= found == option->wanted;
	}
	return (int)CSINK_MIN(nr, 0);
}

int csink_filter_apply(struct csink_profile *p, const struct csink_filter *f, char *why, size_t why_len)
{
	CSINK_AUTO_FREE bool *keep = malloc(p->nr_samples + 1UL);
	int64_t before, after;
	char text[512] = ""; /* the options that were given, as they would be given again */
	int err = keep ? 0 : -ENOMEM;

	if (!err)
		memset(keep, 1, p->nr_samples + 1UL);
	for (uint32_t i = 0; i < CSINK_ARRAY_SIZE(options) && !err; i++) {
		const char *pattern = pattern_of(f, &options[i]);

		if (!*pattern)
			continue;
		csink_append(text, sizeof(text), "%s--%s %s", *text ? " " : "", options[i].name, pattern);
		err = apply(p, &options[i], pattern, keep, why, why_len);
	}
	if (!err && *text && p->default_type < p->nr_types) {
		before = csink_profile_sum(p, p->default_type);
		csink_profile_keep(p, keep);
		after = csink_profile_sum(p, p->default_type);
		csink_profile_fact_add(p, CSINK_FACT_FILTER, "%s: %.2f %% of all", text,
				       before ? 100.0 * (double)after / (double)before : 0);
		err = csink_profile_error(p);
		if (!err && !p->nr_samples)
			return csink_why(-ENODATA, why, why_len, "no sample passes %s", text);
	}
	return err == -ENOMEM ? csink_why(err, why, why_len, "no memory") : err;
}
