/* `countersink diff`: two profiles side by side. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "include/internal/base.h"
#include "launcher/base/json.h"
#include "launcher/base/message.h"
#include "launcher/commands/diff/diff_options.h"
#include "launcher/commands/registry.h"
#include "launcher/output/diff_print.h"
#include "launcher/output/export.h"
#include "launcher/output/pager.h"
#include "launcher/profile/diff.h"
#include "launcher/profile/fold_native.h"
#include "launcher/profile/lock_waits.h"
#include "launcher/profile/profile.h"
#include "launcher/session/open_profile.h"

struct comparison {
	const struct csink_options *options;
	struct csink_profile *p[2];
	uint32_t types[2];
	struct csink_diff_options how;
};

static uint32_t index_of(const char *const *words, const char *word)
{
	uint32_t i = 0;

	while (strcmp(words[i], word))
		i++;
	return i;
}

/* The event of A that is compared, and its place in B. */
static int choose_event(struct comparison *c)
{
	const char *event = csink_options_text(c->options, CSINK_DIFF_OPT_EVENT);
	bool is_of_waits = c->how.report.by >= CSINK_BY_THREAD;
	char hint[256];

	for (uint32_t i = 0; is_of_waits && i < 2; i++) {
		int type = csink_lock_waits_type(c->p[i]);

		if (type < 0)
			return csink_fail(-EINVAL,
					  "option --by: %s has no waits for locks: countersink run -e lock measures "
					  "them",
					  c->how.files[i]);
		c->p[i]->default_type = (uint32_t)type;
	}

	if (!*event)
		event = csink_profile_text(c->p[0], c->p[0]->types[c->p[0]->default_type].name);
	for (uint32_t i = 0; i < 2; i++) {
		int type = csink_profile_event_find(c->p[i], event, hint, sizeof(hint));

		if (type < 0)
			return csink_fail(-EINVAL, "%s has no event '%s'%s: choose one that both have with --event",
					  c->how.files[i], event, hint);
		c->types[i] = (uint32_t)type;
	}
	c->how.event = event;
	c->how.unit = csink_profile_text(c->p[0], c->p[0]->types[c->types[0]].unit);
	return 0;
}

static int build(struct comparison *c, struct csink_diff *diff, bool of_stacks)
{
	const struct csink_profile *const p[2] = {c->p[0], c->p[1]};
	char why[CSINK_WHY_BYTES];
	bool is_of_labels = c->how.report.by >= CSINK_BY_THREAD;
	enum csink_by by = of_stacks && is_of_labels ? CSINK_BY_FUNCTION : c->how.report.by;
	int err = csink_diff_build(diff, p, c->types, by, of_stacks, c->how.per, why, sizeof(why));

	if (err)
		csink_say("%s", why);
	return err;
}

static int print_json(struct comparison *c)
{
	struct csink_diff diff;
	struct csink_json json;
	int err = build(c, &diff, false);

	if (err)
		return err;
	csink_json_init(&json, stdout, '{');
	csink_diff_json_head(&json, &diff, &c->how);
	csink_diff_json(&json, csink_by_words[c->how.report.by], &diff, &c->how);
	csink_diff_free(&diff);
	err = build(c, &diff, true);
	if (err)
		return err;
	csink_diff_json(&json, "stack", &diff, &c->how);
	csink_diff_free(&diff);
	csink_json_close(&json, '}');
	return csink_report_flush(stdout);
}

static int print_text(struct comparison *c)
{
	struct csink_diff diff;
	int err = build(c, &diff, c->how.of_stacks);

	if (err)
		return err;
	if (!csink_options_bool(c->options, CSINK_DIFF_OPT_NO_PAGER))
		csink_pager_start();
	err = csink_diff_print(stdout, &diff, &c->how);
	err = csink_pager_end(err);
	csink_diff_free(&diff);
	return err;
}

/* The page, where one is wanted: before what is printed, so that a pager does not keep it back. */
static int write_page(struct comparison *c)
{
	const char *path = csink_options_text(c->options, CSINK_DIFF_OPT_HTML);
	const struct csink_profile *const p[2] = {c->p[0], c->p[1]};
	int err = *path ? csink_export_diff(path, p, c->how.files, c->how.event) : 0;

	if (err)
		csink_say_unwritten(path, -err, NULL);
	return err;
}

static int compare(struct comparison *c)
{
	const struct csink_options *o = c->options;
	bool json = csink_options_bool(o, CSINK_DIFF_OPT_JSON);
	int err, page_err;

	csink_report_options_init(&c->how.report, stdout);
	c->how.report.limit = (uint32_t)CSINK_MIN(csink_options_number(o, CSINK_DIFF_OPT_LIMIT), UINT32_MAX);
	if (csink_options_bool(o, CSINK_DIFF_OPT_ALL) ||
	    (json && o->values[CSINK_DIFF_OPT_LIMIT].source == CSINK_FROM_DEFAULT))
		c->how.report.limit = 0;
	c->how.report.by = (enum csink_by)index_of(csink_by_words, csink_options_text(o, CSINK_DIFF_OPT_BY));
	c->how.per = (enum csink_diff_per)index_of(csink_per_words, csink_options_text(o, CSINK_DIFF_OPT_PER));
	c->how.of_stacks = csink_options_bool(o, CSINK_DIFF_OPT_STACKS);
	if (c->how.of_stacks && c->how.report.by >= CSINK_BY_THREAD)
		return csink_fail(CSINK_EXIT_USAGE, "options --stacks and --by %s exclude each other: use one",
				  csink_by_words[c->how.report.by]);
	err = choose_event(c);
	if (err)
		return CSINK_EXIT_USAGE;
	page_err = write_page(c);
	err = json ? print_json(c) : print_text(c);
	if (err && ferror(stdout))
		csink_say_unwritten("standard output", -err, NULL);
	else if (err && err != -ENODATA && err != -ENOMEM)
		csink_say("the comparison cannot be printed: %s", strerror(-err));
	return err || page_err ? CSINK_EXIT_FAILED : CSINK_EXIT_OK;
}

static int main_diff(const struct csink_options *o, int nr, char **operands)
{
	struct comparison c = {.options = o};
	char why[CSINK_WHY_BYTES];
	int status;

	if (nr != 2)
		return csink_fail(
			CSINK_EXIT_USAGE,
			"diff takes two profiles, the one before and the one after (see countersink help diff)");
	for (uint32_t i = 0; i < 2; i++) {
		c.how.files[i] = operands[i];
		if (csink_profile_open(c.how.files[i], &c.p[i], why, sizeof(why))) {
			csink_say("%s", why);
			csink_profile_free(c.p[0]);
			return CSINK_EXIT_FAILED;
		}
	}
	if (csink_options_bool(o, CSINK_DIFF_OPT_FOLD_NATIVE) &&
	    (csink_fold_native(c.p[0]) || csink_fold_native(c.p[1])))
		status = csink_fail(CSINK_EXIT_FAILED, "no memory");
	else
		status = compare(&c);
	csink_profile_free(c.p[0]);
	csink_profile_free(c.p[1]);
	return status;
}

const struct csink_command csink_command_diff = {
	.name = "diff",
	.synopsis = "diff [OPTION]... A B",
	.help = "print the differences between two profiles",
	.main = main_diff,
	CSINK_COMMAND_OPTIONS(CSINK_DIFF_OPTIONS),
};
