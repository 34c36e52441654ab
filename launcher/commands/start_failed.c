/* The command runs although it cannot be measured: see start_failed.h. Called by run, stat and attach. */
#include "launcher/commands/start_failed.h"

#include <errno.h>
#include <string.h>

#include "launcher/base/message.h"

int csink_start_failed(int err, char **argv, const struct csink_inherited *inherited)
{
	const char *remedy = err == -EMFILE   ? "; raise ulimit -n: about 16 more will do"
			     : err == -EAGAIN ? "; raise ulimit -u, or end some processes of this user's"
					      : "";

	csink_say("%s: %s runs without being measured%s", strerror(-err), argv[0], remedy);
	return csink_run_alone(argv, inherited);
}
