/* `countersink merge`: many profiles as one, whatever their order. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/base/message.h"
#include "launcher/base/progress.h"
#include "launcher/commands/merge/merge_options.h"
#include "launcher/commands/merge/merge_tree.h"
#include "launcher/commands/merge/say_merged.h"
#include "launcher/commands/registry.h"
#include "launcher/output/pprof.h"
#include "launcher/output/show_progress.h"
#include "launcher/profile/merge.h"
#include "launcher/profile/profile.h"
#include "launcher/session/open_profile.h"

#define DEFAULT_GROUP 32 /* of --tree */

/* One at a time: no more than one is in memory beside the sum. */
static int add_files(struct csink_merge *m, char **files, int nr)
{
	struct csink_profile *p;
	char why[CSINK_WHY_BYTES];
	int err = 0;

	for (int i = 0; i < nr && !err; i++) {
		csink_progress("merging profiles", i, nr);
		err = csink_profile_open(files[i], &p, why, sizeof(why));
		if (err) {
			csink_progress_end();
			return csink_fail(err, "%s; nothing is merged", why);
		}
		err = csink_merge_add(m, p);
		csink_profile_free(p);
	}
	if (err)
		csink_say("not enough memory to merge them");
	return err;
}

static uint32_t flags_of(const struct csink_options *o)
{
	return (csink_options_bool(o, CSINK_MERGE_OPT_KEEP_IDS) ? CSINK_MERGE_IDS : 0) |
	       (csink_options_bool(o, CSINK_MERGE_OPT_KEEP_RANKS) ? CSINK_MERGE_RANKS : 0);
}

static int merge(const struct csink_options *o, char **files, int nr)
{
	struct csink_merge *m = csink_merge_create(flags_of(o));
	const char *output = csink_options_text(o, CSINK_MERGE_OPT_OUTPUT);
	struct csink_profile *p = NULL;
	int err = -ENOMEM;

	if (!m)
		return csink_fail(err, "not enough memory to merge");
	csink_progress_start();
	err = add_files(m, files, nr);
	if (!err) {
		err = csink_merge_finish(m, &p);
		if (!err)
			err = csink_pprof_write(p, output);
		csink_progress_end();
		if (err)
			csink_say_unwritten(output, -err, NULL);
	}
	csink_progress_end();
	if (!err && !csink_options_bool(o, CSINK_MERGE_OPT_QUIET))
		csink_say_merged(p, (uint32_t)nr, output);
	csink_profile_free(p);
	csink_merge_free(m);
	return err;
}

/* Returns how many files a unit merges, or 0: the option is no such number. */
static uint32_t group_of(const struct csink_options *o)
{
	const char *text = csink_options_text(o, CSINK_MERGE_OPT_TREE);
	size_t len = strspn(text, "0123456789");
	unsigned long group = len && len < 6 && !text[len] ? strtoul(text, NULL, 10) : 0;

	if (!strcmp(text, "auto"))
		return DEFAULT_GROUP;
	return group >= 2 ? (uint32_t)group : 0;
}

static int merge_tree(const struct csink_options *o, int nr, char **operands)
{
	const struct csink_merge_tree how = {
		.directory = *operands,
		.output = csink_options_text(o, CSINK_MERGE_OPT_OUTPUT),
		.flags = flags_of(o),
		.group = group_of(o),
		.is_quiet = csink_options_bool(o, CSINK_MERGE_OPT_QUIET),
	};

	if (!how.group)
		return csink_fail(CSINK_EXIT_USAGE, "option --tree: '%s' is no number from 2 to 99999",
				  csink_options_text(o, CSINK_MERGE_OPT_TREE));
	if (nr != 1 || !csink_is_directory(*operands))
		return csink_fail(CSINK_EXIT_USAGE, "merge --tree takes one directory with profiles");
	return csink_merge_tree(&how) ? CSINK_EXIT_FAILED : CSINK_EXIT_OK;
}

static int main_merge(const struct csink_options *o, int nr, char **operands)
{
	if (!nr)
		return csink_fail(CSINK_EXIT_USAGE, "merge takes the profiles to merge (see countersink help merge)");
	if (*csink_options_text(o, CSINK_MERGE_OPT_TREE))
		return merge_tree(o, nr, operands);
	return merge(o, operands, nr) ? CSINK_EXIT_FAILED : CSINK_EXIT_OK;
}

const struct csink_command csink_command_merge = {
	.name = "merge",
	.synopsis = "merge [OPTION]... FILE...",
	.help = "merge profiles into one",
	.main = main_merge,
	CSINK_COMMAND_OPTIONS(CSINK_MERGE_OPTIONS),
};
