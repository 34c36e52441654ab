/*
 * Runs a command and prints what its parent sees of it: the statuses of it and of every orphan it leaves, SIGCHLDs that
 * have no child to them, and whether its file descriptors, mask and terminal came back as they were.
 *   guest_watch COMMAND...
 */
#include <sys/prctl.h>

#include "guest.h"

int main(int argc, char **argv)
{
	int status, nr_others = 0, foreign_children = 0;
	pid_t pid, got;

	if (argc < 2)
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	guest_print_signals("watch");
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		execvp(argv[1], argv + 1);
		_exit(127);
	}
	while ((got = waitpid(-1, &status, __WALL)) > 0) {
		if (got == pid)
			guest_print_status("command", status);
		else if (WIFEXITED(status) || WIFSIGNALED(status))
			nr_others++;
		else
			foreign_children++;
	}
	printf("orphans: %d, foreign children: %d, then %s\n", nr_others, foreign_children, strerror(errno));
	guest_print_signals("watch");
	guest_print_fds("watch");
	return 0;
}
