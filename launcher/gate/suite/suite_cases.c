/* The cases of a suite: which harness it is, what both sides list, and the command of each case. See suite.h. */
#include <errno.h>
#include <regex.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "include/internal/grow.h"
#include "launcher/base/format.h"
#include "launcher/base/hash.h"
#include "launcher/gate/suite/harness.h"

#define MAX_NAMED 3 /* cases of one side alone, in the note */
#define SHOWN 60    /* characters of a name */
#define FRAME "countersink_case_%u"

#define X(name) &csink_suite_##name,
static const struct csink_suite_harness *const harnesses[] = {CSINK_SUITE_HARNESSES(X)};
#undef X

const char *const csink_suite_sides[] = {"the old side", "the new side"};

static int find_by_asking(struct csink_suite *suite)
{
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(harnesses); i++) {
		int is = harnesses[i]->is_kind ? harnesses[i]->is_kind(suite) : 0;

		if (is < 0)
			return is;
		if (!is)
			continue;
		suite->harness = harnesses[i];
		return 0;
	}
	return CSINK_SUITE_WHY(
		suite, -EINVAL,
		"option --suite: %.200s answers like no harness that is known: name it (--suite=KIND), or list its "
		"cases by a command (--suite=lines --list=COMMAND)",
		suite->argv[CSINK_GATE_NEW][0]);
}

int csink_suite_find_kind(struct csink_suite *suite, const char *name)
{
	if (!strcmp(name, "auto"))
		return find_by_asking(suite);
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(harnesses); i++) {
		if (!strcmp(harnesses[i]->name, name))
			suite->harness = harnesses[i];
	}
	return suite->harness ? 0 : -EINVAL;
}

int csink_suite_ask_job(struct csink_suite *suite, int side, struct csink_suite_job *job,
			struct csink_suite_answer *answer)
{
	struct csink_suite_job asked = *job;
	int err;

	asked.dir = job->dir ?: (char *)suite->dirs[side];
	err = csink_suite_ask(suite, &asked, CSINK_SUITE_ASK_SECONDS, answer);
	if (err && err != -EINTR && err != -ENOMEM)
		CSINK_SUITE_WHY(suite, err, "%s (%.200s) cannot be run: %s", csink_suite_sides[side], asked.argv.all[0],
				strerror(-err));
	csink_suite_job_free(job);
	return err;
}

int csink_suite_ask_side(struct csink_suite *suite, int side, const char *const *more,
			 struct csink_suite_answer *answer)
{
	struct csink_suite_job job = {0};

	csink_suite_put_all(&job.argv, suite->argv[side]);
	csink_suite_put_all(&job.argv, (char *const *)more);
	return csink_suite_ask_job(suite, side, &job, answer);
}

int csink_suite_ask_list(struct csink_suite *suite, int side, const char *const *more,
			 struct csink_suite_answer *answer)
{
	char why[1024];
	int err = csink_suite_ask_side(suite, side, more, answer);

	if (err)
		return err;
	if (!csink_suite_answer_error(answer, why, sizeof(why)))
		return 0;
	csink_suite_answer_free(answer);
	return CSINK_SUITE_WHY(suite, -EINVAL, "the cases of %s (%.200s) cannot be listed: %s", csink_suite_sides[side],
			       suite->argv[side][0], why);
}

static bool is_named(const struct csink_suite_case *c, const char *name, size_t len)
{
	return !strncmp(c->name, name, len) && !c->name[len];
}

static uint32_t new_case(struct csink_suite *suite, const char *name, size_t len)
{
	char *copy = strndup(name, len);

	if (copy && CSINK_APPEND(suite->cases, suite->nr, suite->cap, (struct csink_suite_case){.name = copy}))
		return suite->nr;
	free(copy);
	return 0;
}

struct csink_suite_case *csink_suite_case_add(struct csink_suite *suite, int side, const char *name, size_t len)
{
	uint32_t found = CSINK_TABLE_INTERN(suite->known, (uint32_t)csink_hash_bytes(name, len),
					    is_named(&suite->cases[id - 1], name, len), new_case(suite, name, len));

	if (!found)
		return NULL;
	suite->cases[found - 1].has[side] = true;
	return &suite->cases[found - 1];
}

int csink_suite_add_lines(struct csink_suite *suite, int side, const char *text,
			  size_t (*name_of)(const char *line, size_t len))
{
	const char *line;
	size_t len;

	while ((line = csink_suite_line(&text, &len))) {
		len = name_of ? name_of(line, len) : len;
		if (len && !csink_suite_case_add(suite, side, line, len))
			return -ENOMEM;
	}
	return 0;
}

int csink_suite_list_lines(struct csink_suite *suite, int side, const char *const *more,
			   size_t (*name_of)(const char *line, size_t len))
{
	struct csink_suite_answer answer;
	int err = csink_suite_ask_list(suite, side, more, &answer);

	if (err)
		return err;
	err = csink_suite_add_lines(suite, side, answer.out, name_of);
	csink_suite_answer_free(&answer);
	return err;
}

static void free_case(struct csink_suite_case *c)
{
	for (int side = 0; side < CSINK_GATE_NR_SIDES; side++) {
		csink_suite_job_free(&c->given[side]);
		csink_suite_job_free(&c->jobs[side]);
		free(c->place[side]);
	}
	csink_gate_verdicts_free(&c->verdicts);
	csink_gate_data_free(&c->data);
	csink_gate_verdicts_free(&c->screening.verdicts);
	csink_gate_data_free(&c->screening.data);
	free(c->error);
	free(c->name);
	free(c->own);
	free(c->counting);
}

/* Remove the cases for which is_out() is true; the others keep their order. */
static void drop_cases(struct csink_suite *suite, bool (*is_out)(const struct csink_suite_case *c, const regex_t *re),
		       const regex_t *re)
{
	uint32_t left = 0;

	for (uint32_t i = 0; i < suite->nr; i++) {
		if (is_out(&suite->cases[i], re))
			free_case(&suite->cases[i]);
		else
			suite->cases[left++] = suite->cases[i];
	}
	suite->nr = left;
	csink_table_free(&suite->known);
}

static bool is_not_chosen(const struct csink_suite_case *c, const regex_t *re)
{
	return regexec(re, c->name, 0, NULL, 0);
}

static bool is_one_sided(const struct csink_suite_case *c, const regex_t *re)
{
	(void)re;
	return !c->has[CSINK_GATE_OLD] || !c->has[CSINK_GATE_NEW];
}

static void note_one_sided(struct csink_suite *suite, int side)
{
	char names[1024] = "", name[4 * SHOWN + 4];
	uint32_t nr = 0;

	for (uint32_t i = 0; i < suite->nr; i++) {
		if (!is_one_sided(&suite->cases[i], NULL) || !suite->cases[i].has[side] || nr++ >= MAX_NAMED)
			continue;
		csink_format_text(name, sizeof(name), suite->cases[i].name, SHOWN);
		csink_append(names, sizeof(names), "%s%s", nr > 1 ? ", " : "", name);
	}
	suite->nr_only[side] = nr;
	if (!nr)
		return;
	if (nr > MAX_NAMED)
		csink_append(names, sizeof(names), " and %u more", nr - MAX_NAMED);
	csink_gate_note(suite->series, "only the %s side has %u case%s, which %s not judged: %s",
			side == CSINK_GATE_OLD ? "old" : "new", nr, nr > 1 ? "s" : "", nr > 1 ? "are" : "is", names);
}

static int choose_cases(struct csink_suite *suite)
{
	regex_t re;
	char why[256];
	int err = regcomp(&re, suite->chosen, REG_EXTENDED | REG_NOSUB);

	if (err) {
		regerror(err, &re, why, sizeof(why));
		return CSINK_SUITE_WHY(suite, -EINVAL, "option --cases: '%.200s': %s", suite->chosen, why);
	}
	drop_cases(suite, is_not_chosen, &re);
	regfree(&re);
	return 0;
}

int csink_suite_list(struct csink_suite *suite)
{
	uint32_t nr_listed;
	int err = 0;

	for (int side = 0; side < CSINK_GATE_NR_SIDES && !err; side++)
		err = suite->harness->list(suite, side);
	nr_listed = suite->nr;
	if (!err && suite->chosen)
		err = choose_cases(suite);
	if (err)
		return err;
	for (int side = 0; side < CSINK_GATE_NR_SIDES; side++)
		note_one_sided(suite, side);
	drop_cases(suite, is_one_sided, NULL);
	for (uint32_t i = 0; i < suite->nr; i++)
		snprintf(suite->cases[i].frame, sizeof(suite->cases[i].frame), FRAME, i);
	if (suite->nr)
		return 0;
	if (!nr_listed)
		return CSINK_SUITE_WHY(suite, -ENODATA, "the suite lists no case (--suite=%s)", suite->harness->name);
	if (suite->nr_only[CSINK_GATE_OLD] + suite->nr_only[CSINK_GATE_NEW])
		return CSINK_SUITE_WHY(
			suite, -ENODATA,
			"the two sides have no case in common: the old one has %u, the new one %u others",
			suite->nr_only[CSINK_GATE_OLD], suite->nr_only[CSINK_GATE_NEW]);
	return CSINK_SUITE_WHY(suite, -ENODATA, "option --cases: none of the %u cases that are listed matches '%.200s'",
			       nr_listed, suite->chosen);
}

/* A copy; NULL stays NULL. */
static char *copy(const char *text, struct csink_suite_job *job)
{
	char *made = text ? strdup(text) : NULL;

	job->argv.lacked_memory |= text && !made;
	return made;
}

void csink_suite_begin_job(struct csink_suite *suite, int side, const struct csink_suite_job *given,
			   struct csink_suite_job *job)
{
	csink_suite_job_free(job);
	csink_suite_put_all(&job->argv, given->argv.nr ? given->argv.all : suite->argv[side]);
	csink_suite_put_all(&job->env, given->env.all);
	job->dir = copy(given->dir ? given->dir : suite->dirs[side], job);
	job->prepare = copy(given->prepare, job);
}

int csink_suite_check_job(const struct csink_suite_job *job)
{
	return job->argv.lacked_memory || job->env.lacked_memory ? -ENOMEM : 0;
}

int csink_suite_command(struct csink_suite *suite, struct csink_suite_case *c, int side, uint64_t n,
			struct csink_suite_job *job)
{
	csink_suite_begin_job(suite, side, &c->given[side], job);
	if (suite->harness->choose)
		suite->harness->choose(suite, c, side, n, job);
	return csink_suite_check_job(job);
}

void csink_suite_case_fail(struct csink_suite_case *c, const char *fmt, ...)
{
	va_list ap;

	free(c->error);
	va_start(ap, fmt);
	if (vasprintf(&c->error, fmt, ap) < 0)
		c->error = NULL;
	va_end(ap);
	c->state = CSINK_SUITE_FAILED;
}

void csink_suite_make_directory(struct csink_suite *suite)
{
	if (!csink_run_directory_create(&suite->directory))
		snprintf(suite->report, sizeof(suite->report), "%s/report", suite->directory.path);
}

void csink_suite_free(struct csink_suite *suite)
{
	for (uint32_t i = 0; i < suite->nr; i++)
		free_case(&suite->cases[i]);
	free(suite->cases);
	csink_table_free(&suite->known);
	csink_suite_share_free(suite);
	if (*suite->report)
		csink_run_directory_remove(&suite->directory);
	memset(suite, 0, sizeof(*suite));
}
