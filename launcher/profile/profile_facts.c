/* Comments of a profile, and those of them that are facts: "key: text" (facts.h). */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/profile/facts.h"
#include "launcher/profile/profile_impl.h"

void csink_profile_fact_add(struct csink_profile *p, const char *key, const char *fmt, ...)
{
	char line[2048];
	int used = snprintf(line, sizeof(line), "%s: ", key);
	va_list ap;
	char *c;

	va_start(ap, fmt);
	vsnprintf(line + used, sizeof(line) - used, fmt, ap);
	va_end(ap);
	for (c = line; *c; c++) { /* a comment is one line, and harmless on a terminal */
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = ' ';
	}
	csink_profile_comment_add(p, csink_profile_str(p, line));
}

void csink_profile_comment_add(struct csink_profile *p, csink_str_t text)
{
	if (!RESERVE(p, comments, 1))
		p->comments[p->nr_comments++] = text;
}

const char *csink_profile_fact(const struct csink_profile *p, const char *key, uint32_t nr)
{
	struct csink_profile *own = (struct csink_profile *)p; /* only its cursor is changed, which no caller sees */
	bool is_next = nr && nr == p->next_nr && !strcmp(key, p->last_key);
	uint32_t i, seen = is_next ? nr : 0;
	size_t len = strlen(key);
	const char *text;

	for (i = is_next ? p->next_at : 0; i < p->nr_comments; i++) {
		text = csink_profile_text(p, p->comments[i]);
		if (strncmp(text, key, len) || text[len] != ':' || text[len + 1] != ' ' || seen++ != nr)
			continue;
		own->next_nr = nr + 1; /* callers ask for one after the other */
		own->next_at = i + 1;
		snprintf(own->last_key, sizeof(own->last_key), "%s", key);
		return text + len + 2;
	}
	return NULL;
}

const struct csink_profile_label *csink_profile_rank_find(const struct csink_profile *p, uint32_t labels)
{
	csink_str_t key = csink_profile_str_find(p, CSINK_LABEL_RANK);
	const struct csink_profile_label *label = key ? csink_profile_label_find(p, labels, key) : NULL;

	return label && !label->str ? label : NULL;
}

bool csink_profile_has_ranks(const struct csink_profile *p)
{
	uint32_t i = 0;

	while (i < p->nr_samples && !csink_profile_rank_find(p, p->samples[i].labels))
		i++;
	return i < p->nr_samples;
}

int64_t csink_profile_runs(const struct csink_profile *p)
{
	const char *runs = csink_profile_fact(p, CSINK_FACT_RUNS, 0);
	int64_t nr = runs ? strtoll(runs, NULL, 10) : 1;

	return nr > 0 ? nr : 1;
}
