/*
 * `countersink report`: print the report of a profile again, or make the profile of a run folder. The library that runs
 * without launcher calls it at exit, as `countersink report --quiet -o PROFILE FOLDER`.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/recording.h"
#include "launcher/commands.h"
#include "launcher/output/pprof.h"
#include "launcher/output/report.h"
#include "launcher/profile/collect.h"
#include "launcher/profile/profile.h"

#define DEFAULT_FILE "countersink.pb.gz"

static bool is_folder(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISDIR(st.st_mode);
}

static int read_folder(const char *path, struct csink_profile **profile)
{
	int err = csink_collect(path, NULL, profile);

	if (err == -ENOENT)
		csink_say("%s: no recording (PID.N" CSINK_REC_SUFFIX ") in this folder", path);
	else if (err)
		csink_say("%s: %s", path, strerror(-err));
	return err;
}

static int read_file(const char *path, struct csink_profile **profile)
{
	char why[256];
	int err = csink_pprof_read(strcmp(path, "-") ? path : "/dev/stdin", profile, why, sizeof(why));

	if (err)
		csink_say("%s: %s%s", path, why,
			  err == -ENOENT ? " (a profile is what `countersink COMMAND` leaves)" : "");
	return err;
}

/* The recordings are in the profile now. What else is in the folder is not ours, and keeps it there. */
static void remove_recordings(const char *folder)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	size_t len, suffix = strlen(CSINK_REC_SUFFIX);

	while (dir && (entry = readdir(dir))) {
		len = strlen(entry->d_name);
		if (len > suffix && !strcmp(entry->d_name + len - suffix, CSINK_REC_SUFFIX))
			unlinkat(dirfd(dir), entry->d_name, 0);
	}
	if (dir)
		closedir(dir);
	rmdir(folder);
}

static int print(const struct csink_options *o, const struct csink_profile *profile, const char *file)
{
	uint64_t limit = csink_options_number(o, CSINK_REPORT_OPT_LIMIT);
	struct csink_report_options options;
	int err;

	csink_report_options_init(&options, stdout);
	options.limit = CSINK_MIN(limit, UINT32_MAX);
	/* --all in the environment gives way to --limit on the command line, but not to its default. */
	if (csink_options_bool(o, CSINK_REPORT_OPT_ALL) &&
	    o->values[CSINK_REPORT_OPT_ALL].source >= o->values[CSINK_REPORT_OPT_LIMIT].source)
		options.limit = 0;
	options.file = file;
	err = csink_report_print(stdout, profile, &options);
	if (err)
		csink_say("the report cannot be printed: %s", strerror(-err));
	return err;
}

static int report(const struct csink_options *o, const char *path)
{
	const char *output = csink_options_text(o, CSINK_REPORT_OPT_OUTPUT);
	struct csink_profile *profile;
	bool folder = is_folder(path);
	int err = folder ? read_folder(path, &profile) : read_file(path, &profile);

	if (err)
		return CSINK_EXIT_FAILED;
	if (*output) {
		err = csink_pprof_write(profile, output);
		if (err)
			csink_say("%s: %s%s", output, strerror(-err), folder ? "; the recordings are kept" : "");
		else if (folder)
			remove_recordings(path);
	}
	if (!csink_options_bool(o, CSINK_REPORT_OPT_QUIET)) {
		int printed = print(o, profile, *output && !err ? output : folder || !strcmp(path, "-") ? NULL : path);

		err = err ? err : printed;
	}
	csink_profile_destroy(profile);
	return err ? CSINK_EXIT_FAILED : CSINK_EXIT_OK;
}

int csink_cmd_report(int argc, char **argv)
{
	struct csink_options o;
	int status, at = csink_command_parse(&o, argc, argv, &status);

	if (at < 0)
		return status;
	if (argc - at > 1) {
		csink_say("report takes one profile or run folder, not %d (see countersink help report)", argc - at);
		return CSINK_EXIT_USAGE;
	}
	return report(&o, at < argc ? argv[at] : DEFAULT_FILE);
}
