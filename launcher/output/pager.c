/* See pager.h. */
#include "launcher/output/pager.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t pager;

static const char *choose(void)
{
	const char *command = getenv("COUNTERSINK_PAGER");

	if (!command)
		command = getenv("PAGER");
	if (!command)
		command = "less";
	return *command && strcmp(command, "cat") ? command : NULL;
}

/* The pager's side. Reports a shell that cannot be had by its end alone. */
static void become_pager(const char *command, const int *pipe_fds)
{
	dup2(pipe_fds[0], STDIN_FILENO);
	setenv("LESS", "FRX", 0);
	setenv("LV", "-c", 0);
	signal(SIGPIPE, SIG_DFL);
	signal(SIGXFSZ, SIG_DFL);
	execl("/bin/sh", "sh", "-c", command, (char *)NULL);
	_exit(127);
}

/* Whether a shell would find the first word of the command: else there would be no output at all. */
static int can_start(const char *command)
{
	char word[256], line[600];
	size_t len = strcspn(command, " \t|&;<>()$`\\\"'*?[#~=%");

	if (!len || len >= sizeof(word) || (command[len] && command[len] != ' ' && command[len] != '\t'))
		return 1; /* too clever for us: let the shell try */
	memcpy(word, command, len);
	word[len] = 0;
	snprintf(line, sizeof(line), "command -v %s >/dev/null 2>&1", word);
	return !system(line);
}

void csink_pager_start(void)
{
	const char *command = choose(), *term = getenv("TERM");
	int fds[2];

	if (!command || !isatty(STDOUT_FILENO) || !term || !strcmp(term, "dumb") || !can_start(command) ||
	    pipe2(fds, O_CLOEXEC))
		return;
	fflush(stdout);
	pager = fork();
	if (!pager)
		become_pager(command, fds);
	if (pager > 0) {
		dup2(fds[1], STDOUT_FILENO);
		/* A user that leaves the pager early does not want the rest, and no complaint. */
		signal(SIGPIPE, SIG_IGN);
		/* ^C is the pager's: it ends when people say so. */
		signal(SIGINT, SIG_IGN);
	} else {
		pager = 0;
	}
	close(fds[0]);
	close(fds[1]);
}

int csink_pager_end(int err)
{
	int status;

	if (!pager)
		return err;
	fflush(stdout);
	close(STDOUT_FILENO);
	while (waitpid(pager, &status, 0) < 0 && errno == EINTR)
		;
	pager = 0;
	return err == -EPIPE ? 0 : err;
}
