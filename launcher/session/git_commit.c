/* Asking git about a commit: see git_commit.h. */
#include "launcher/session/git_commit.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The first line that a program prints, without its newline. Returns its status as of waitpid(2), or -errno. */
static int first_line(char *const *argv, char *line, size_t size)
{
	posix_spawn_file_actions_t actions;
	int fds[2], err, status = -ECHILD;
	FILE *from;
	pid_t pid;

	*line = '\0';
	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, fds[1], STDOUT_FILENO);
	posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	err = posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	close(fds[1]);
	from = err ? NULL : fdopen(fds[0], "r");
	if (from && !fgets(line, (int)size, from))
		*line = '\0';
	line[strcspn(line, "\n")] = '\0';
	if (from)
		fclose(from);
	else
		close(fds[0]);
	if (err)
		return -err;
	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			return -errno;
	}
	return status;
}

int csink_git_commit_find(const char *which, struct csink_git_commit *out)
{
	char revision[600], line[256];
	char *argv[] = {"git", "log", "-1", "--format=%H %ct %P", "--end-of-options", revision, "--", NULL};

	*out = (struct csink_git_commit){0};
	if (snprintf(revision, sizeof(revision), "%s^{commit}", which) >= (int)sizeof(revision) ||
	    first_line(argv, line, sizeof(line)))
		return -ENOENT;
	if (sscanf(line, "%79s %" SCNd64 " %79s", out->id, &out->committed_s, out->parent) < 2) {
		*out = (struct csink_git_commit){0};
		return -ENOENT;
	}
	return 0;
}
