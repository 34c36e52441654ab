/* See read_ranks.h. Runs in the launcher's one thread. */
#include "launcher/commands/report/read_ranks.h"

#include <errno.h>

#include "launcher/base/message.h"
#include "launcher/base/progress.h"
#include "launcher/output/show_progress.h"
#include "launcher/profile/merge.h"
#include "launcher/profile/profile.h"
#include "launcher/session/open_profile.h"

int csink_read_ranks(char **files, int nr, struct csink_profile **out)
{
	struct csink_merge *m = csink_merge_create(CSINK_MERGE_RANKS);
	struct csink_profile *p;
	char why[CSINK_WHY_BYTES];
	int err = m ? 0 : -ENOMEM;

	for (int i = 0; i < nr && !err; i++) {
		csink_progress("reading profiles", i, nr);
		err = csink_profile_open(files[i], &p, why, sizeof(why));
		if (err) {
			csink_progress_end();
			csink_merge_free(m);
			return csink_fail(err, "%s", why);
		}
		err = csink_merge_add(m, p);
		csink_profile_free(p);
	}
	err = err ?: csink_merge_finish(m, out);
	csink_progress_end();
	csink_merge_free(m);
	return err ? csink_fail(err, "not enough memory to add them up") : 0;
}
