/* Going on in the background: see detach.h. */
#include "launcher/session/detach.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "include/internal/shared_options.h"
#include "launcher/base/message.h"
#include "launcher/base/standard_streams.h"

#define BACKGROUND_NICE 10

void csink_detach(int nr_kept)
{
	int fd;

	signal(SIGALRM, SIG_DFL); /* of a program that waits for this helper */
	unsetenv(CSINK_ENV_RUN_ENDED);
	for (fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		close(fd);
	for (fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (open("/dev/null", O_RDWR) != fd)
			exit(CSINK_EXIT_FAILED);
	csink_descriptors_close_from(STDERR_FILENO + 1 + nr_kept);
	setsid();
	sched_setscheduler(0, SCHED_BATCH, &(struct sched_param){0});
	fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	if (write(fd, "1000", 4) < 0 || chdir("/") || nice(BACKGROUND_NICE) < 0)
		errno = 0;
	close(fd);
}
