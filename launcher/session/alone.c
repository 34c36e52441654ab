/* Starting the command where there is too little for profiling it: see alone.h. */
#include "launcher/session/alone.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "launcher/session/witness.h"

bool csink_spare_fds_take(struct csink_spare_fds *spare)
{
	bool all = true;

	for (int i = 0; i < CSINK_SPARE_FDS; i++) {
		spare->fds[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
		all &= spare->fds[i] >= 0;
	}
	return all;
}

void csink_spare_fds_release(const struct csink_spare_fds *spare)
{
	for (int i = 0; i < CSINK_SPARE_FDS; i++) {
		if (spare->fds[i] >= 0)
			close(spare->fds[i]);
	}
}

int csink_run_alone(char **argv, const struct csink_inherited *inherited)
{
	csink_witness_end();
	if (inherited)
		csink_inherited_restore(inherited);
	else
		csink_inherited_end();
	execvp(argv[0], argv);
	return -errno;
}
