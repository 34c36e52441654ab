/*
 * Writing the profile to its file or, if that fails, to another place; then the export and the report: see save.h.
 * Runs in the launcher's one thread.
 */
#include "launcher/commands/save.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "include/internal/cleanup.h"
#include "include/internal/clock.h"
#include "launcher/base/message.h"
#include "launcher/base/outfile.h"
#include "launcher/output/pprof.h"
#include "launcher/output/report.h"
#include "launcher/profile/fold_native.h"
#include "launcher/profile/wall.h"
#include "launcher/session/output_place.h"
#include "launcher/session/slice_names.h"

/* Is there another place for a profile whose file cannot be written? */
static bool has_other_place(const char *path)
{
	char other[PATH_MAX], unused[PATH_MAX + 128];

	for (uint32_t i = 0; !csink_output_fallback(path, i, other, sizeof(other)); i++)
		if (!csink_output_check(other, unused, sizeof(unused)))
			return true;
	return false;
}

/* Before the command starts, what will become of a profile whose file cannot be written: one line. */
static void say_unwritable(struct csink_save *save, const char *why)
{
	save->is_nowhere = !has_other_place(save->path);
	if (save->is_nowhere)
		csink_say(
			"the profile cannot be written to %s: %s, nor to $TMPDIR, /tmp or the home directory; the run "
			"continues without a profile (make one of them writable, or name another with -o FILE or "
			"TMPDIR)",
			save->path, why);
	else
		csink_say("the profile cannot be written to %s: %s; the run continues, and the profile will be saved "
			  "elsewhere",
			  save->path, why);
}

/* As csink_save_anywhere(): a place may have become writable. An error that say_unwritable() has reported is not
 * reported again. */
static int write_profile(struct csink_save *save, const struct csink_profile *profile)
{
	int err;

	if (!save->is_nowhere || has_other_place(save->path))
		return csink_save_anywhere(save->path, profile);
	err = csink_pprof_write(profile, save->path);
	if (err)
		save->path[0] = 0;
	return err;
}

int csink_save_resolve(struct csink_save *save, const struct csink_options *options, uint32_t row, const char *command,
		       int32_t pid)
{
	char host[256] = "localhost", where[64], why[PATH_MAX + 128], template[PATH_MAX], time[24];
	char values[CSINK_NR_RANK_VARIABLES][CSINK_RANK_VALUE_BYTES];
	struct csink_output_names names = {
		.pid = pid, .host = host, .command = command, .rank = csink_rank_take(values)};

	gethostname(host, sizeof(host) - 1);
	csink_output_time(csink_clock_ns(CLOCK_REALTIME), time);
	if (csink_output_letters(csink_options_text(options, row), time, NULL, template, sizeof(template), why,
				 sizeof(why)) ||
	    csink_output_expand(template, &names, save->path, sizeof(save->path), why, sizeof(why))) {
		csink_options_where(options, row, where, sizeof(where));
		return csink_fail(-EINVAL, "%s: %s", where, why);
	}
	save->format = csink_export_beside(save->path, sizeof(save->path), save->exported);
	if (csink_output_check(save->path, why, sizeof(why)))
		say_unwritable(save, why);
	return 0;
}

int csink_save_anywhere(char *path, const struct csink_profile *profile)
{
	int err = csink_pprof_write(profile, path);

	if (err)
		err = csink_output_elsewhere(path, profile, err, "the profile");
	if (err)
		path[0] = 0;
	return err;
}

static void print_report(const struct csink_save *save, struct csink_profile *profile, bool all)
{
	struct csink_report_options options;
	struct csink_wall wall;
	char why[CSINK_WHY_BYTES];
	CSINK_AUTO_FREE char *text = NULL;
	size_t len = 0;
	FILE *out;

	csink_report_options_init(&options, stderr);
	if (all)
		options.limit = 0;
	options.file = save->path[0] ? save->path : NULL;
	if (save->has_wall && !csink_wall_apply(profile, &(struct csink_wall_range){0, 0}, &wall, why, sizeof(why)))
		options.wall = &wall;
	else if (save->has_wall)
		csink_say("no wall %% and critical %%: %s", why);
	/* In one piece: stderr has no buffer, and other processes may write to it, as the ranks of a parallel job do.
	 * One that takes nothing is no failure of the command's. */
	out = open_memstream(&text, &len);
	csink_report_print(out ? out : stderr, profile, &options);
	if (out && !fclose(out))
		fwrite(text, 1, len, stderr);
	fflush(stderr);
	if (options.wall) /* exports have no such columns */
		csink_wall_remove(profile, &wall);
}

void csink_save_report(const struct csink_save *save, struct csink_profile *profile, enum csink_save_words words)
{
	if (words < CSINK_SAVE_REPORT || (save->folds_native && csink_fold_native(profile)))
		return;
	print_report(save, profile, words == CSINK_SAVE_REPORT_ALL);
}

int csink_save_export(const struct csink_save *save, const struct csink_profile *profile, enum csink_save_words words)
{
	int err = csink_export_write(profile, save->format, profile->default_type, save->exported);
	char kept[PATH_MAX + 32];

	snprintf(kept, sizeof(kept), "the profile is in %s", save->path);
	if (err)
		csink_say_unwritten(save->exported, -err, save->path[0] ? kept : NULL);
	else if (words != CSINK_SAVE_ERRORS && save->path[0])
		csink_say("%s is made from the profile, which is in %s", save->exported, save->path);
	return err;
}

int csink_save_profile(struct csink_save *save, struct csink_profile *profile, enum csink_save_words words)
{
	int err = write_profile(save, profile);

	if (save->folds_native && (words >= CSINK_SAVE_REPORT || save->format) && csink_fold_native(profile))
		return csink_fail(err ?: -ENOMEM, "no memory: no report");
	if (words >= CSINK_SAVE_REPORT)
		print_report(save, profile, words == CSINK_SAVE_REPORT_ALL);
	else if (words == CSINK_SAVE_WHERE && save->path[0] && !save->format)
		csink_say("the profile is in %s", save->path);
	if (save->format)
		csink_save_export(save, profile, words);
	return err;
}
