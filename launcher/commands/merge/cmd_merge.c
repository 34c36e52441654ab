/* `countersink merge`: many profiles as one, whatever their order. */
#include <errno.h>

#include "launcher/base/format.h"
#include "launcher/base/message.h"
#include "launcher/base/progress.h"
#include "launcher/commands/merge/merge_options.h"
#include "launcher/commands/registry.h"
#include "launcher/output/pprof.h"
#include "launcher/output/show_progress.h"
#include "launcher/profile/merge.h"
#include "launcher/profile/profile.h"
#include "launcher/session/open_profile.h"

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

static void say_done(const struct csink_profile *p, int nr, const char *output)
{
	char profiles[32], stacks[32];

	csink_format_count(profiles, sizeof(profiles), nr);
	csink_format_count(stacks, sizeof(stacks), p->nr_samples);
	csink_say("%s: %s %s, %s distinct samples in %u modules", output, profiles, nr == 1 ? "profile" : "profiles",
		  stacks, p->nr_mappings - 1);
}

static int merge(const struct csink_options *o, char **files, int nr)
{
	struct csink_merge *m =
		csink_merge_create((csink_options_bool(o, CSINK_MERGE_OPT_KEEP_IDS) ? CSINK_MERGE_IDS : 0) |
				   (csink_options_bool(o, CSINK_MERGE_OPT_KEEP_RANKS) ? CSINK_MERGE_RANKS : 0));
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
		say_done(p, nr, output);
	csink_profile_free(p);
	csink_merge_free(m);
	return err;
}

static int main_merge(const struct csink_options *o, int nr, char **operands)
{
	if (!nr)
		return csink_fail(CSINK_EXIT_USAGE, "merge takes the profiles to merge (see countersink help merge)");
	return merge(o, operands, nr) ? CSINK_EXIT_FAILED : CSINK_EXIT_OK;
}

const struct csink_command csink_command_merge = {
	.name = "merge",
	.synopsis = "merge [OPTION]... FILE...",
	.help = "merge profiles into one",
	.main = main_merge,
	CSINK_COMMAND_OPTIONS(CSINK_MERGE_OPTIONS),
};
