/* See read_ranks.h. Runs in the launcher's one thread. */
#include "launcher/commands/report/read_ranks.h"

#include <errno.h>
#include <stdlib.h>

#include "include/internal/cleanup.h"
#include "launcher/base/message.h"
#include "launcher/base/progress.h"
#include "launcher/output/show_progress.h"
#include "launcher/profile/merge.h"
#include "launcher/profile/profile.h"
#include "launcher/session/open_profile.h"

/* An event that a profile lacks was not measured there, and its sum is 0 as if it had been. */
static void say_differences(char **files, int nr, const uint32_t *nr_types, const struct csink_profile *sum)
{
	int i = 0;

	while (i < nr && nr_types[i] == sum->nr_types)
		i++;
	if (i < nr)
		csink_say(
			"the profiles have different events: one that a profile lacks, as %s does, counts as 0 in its "
			"ranks",
			files[i]);
}

int csink_read_ranks(char **files, int nr, bool is_quiet, struct csink_profile **out)
{
	struct csink_merge *m = csink_merge_create(CSINK_MERGE_RANKS);
	CSINK_AUTO_FREE uint32_t *nr_types = calloc((size_t)nr, sizeof(*nr_types));
	struct csink_profile *p;
	char why[CSINK_WHY_BYTES];
	int err = m && nr_types ? 0 : -ENOMEM;

	for (int i = 0; i < nr && !err; i++) {
		csink_progress("reading profiles", i, nr);
		err = csink_profile_open(files[i], &p, why, sizeof(why));
		if (err) {
			csink_progress_end();
			csink_merge_free(m);
			return csink_fail(err, "%s", why);
		}
		nr_types[i] = p->nr_types;
		err = csink_merge_add(m, p);
		csink_profile_free(p);
	}
	err = err ?: csink_merge_finish(m, out);
	csink_progress_end();
	csink_merge_free(m);
	if (!err && !is_quiet)
		say_differences(files, nr, nr_types, *out);
	return err ? csink_fail(err, "not enough memory to add them up") : 0;
}
