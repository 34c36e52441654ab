/* See open_profile.h. */
#include "launcher/session/open_profile.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "include/internal/nearest.h"
#include "include/internal/recording_format.h"
#include "launcher/base/regular.h"
#include "launcher/collect/collect.h"
#include "launcher/output/pprof.h"
#include "launcher/profile/profile.h"

bool csink_is_directory(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISDIR(st.st_mode);
}

static int open_directory(const char *path, struct csink_profile **out, char *why, size_t why_len)
{
	int err = csink_collect(path, NULL, out);

	if (err == -ENOENT && csink_collect_has_many(path, 1))
		snprintf(why, why_len,
			 "%s: the recordings in this directory are damaged, or of another version of countersink",
			 path);
	else if (err == -ENOENT)
		snprintf(why, why_len, "%s: no recording (PID.N" CSINK_REC_SUFFIX ") in this directory", path);
	else if (err)
		snprintf(why, why_len, "%s: %s", path, strerror(-err));
	return err;
}

/* What kind of file it is, if it is not a profile, by its first bytes; NULL: unknown. */
static const char *foreign_kind(const char *path)
{
	static const struct {
		const char *begins, *kind;
	} kinds[] = {
		{"\177ELF", "a program or library: `countersink PROGRAM` profiles it"},
		{"PERFILE2",
		 "a perf.data file: `perf report -i FILE` prints it; of profiles, pprof and folded stacks are "
		 "read"},
		{"<!doctype html", "a page: a browser opens it"},
		{"cnksrec", "a recording: give its directory"},
	};
	CSINK_AUTO_FCLOSE FILE *file = csink_regular_fopen(path, 0, CSINK_REGULAR_ANY);
	char head[16] = "";
	size_t got = file ? fread(head, 1, sizeof(head), file) : 0;

	for (size_t i = 0; i < CSINK_ARRAY_SIZE(kinds); i++) {
		size_t len = strlen(kinds[i].begins);

		if (got >= len && !strncasecmp(head, kinds[i].begins, len))
			return kinds[i].kind;
	}
	return NULL;
}

int csink_profile_open(const char *path, struct csink_profile **out, char *why, size_t why_len)
{
	const char *foreign;
	char reason[256];
	int err;

	if (csink_is_directory(path))
		return open_directory(path, out, why, why_len);
	err = csink_pprof_read(strcmp(path, "-") ? path : "/dev/stdin", out, reason, sizeof(reason));
	foreign = err == -EBADMSG && strcmp(path, "-") ? foreign_kind(path) : NULL;
	if (foreign)
		snprintf(why, why_len, "%s: not a profile, but %s", path, foreign);
	else if (err)
		snprintf(why, why_len, "%s: %s%s", path, reason,
			 err == -ENOENT ? " (a profile is what `countersink COMMAND` leaves)" : "");
	return err;
}

int csink_profile_event_find(const struct csink_profile *p, const char *name, char *hint, size_t hint_bytes)
{
	int type = csink_profile_type_find(p, name);
	struct csink_nearest near;

	csink_nearest_init(&near, name, strlen(name));
	for (uint32_t i = 0; type < 0 && i < p->nr_types; i++)
		csink_nearest_offer(&near, csink_profile_text(p, p->types[i].name));
	csink_nearest_print(&near, hint, hint_bytes);
	return type;
}
