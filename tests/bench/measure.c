/*
 * Runs several commands in turn, round after round, each round starting with another one, so that a machine whose
 * speed drifts treats them alike; writes what each run cost.
 *
 *   measure ROUNDS DIRECTORY NAME [VAR=VALUE...] COMMAND... [--- NAME ...]...
 *
 * One line a run: name, round, user+system CPU in ns of the command and the children it waited for, wall ns, status.
 * What a command prints to stderr is kept in DIRECTORY/NAME.ROUND.err; its stdout is dropped.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_COMMANDS 32

struct command {
	char *name;
	char **words; /* NULL-ended */
	char **envp;  /* with its assignments; made before anything is measured, which would count it otherwise */
};

static unsigned long long timeval_ns(struct timeval tv)
{
	return 1000000000ULL * (unsigned long long)tv.tv_sec + 1000ULL * (unsigned long long)tv.tv_usec;
}

static unsigned long long wall_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return 1000000000ULL * (unsigned long long)ts.tv_sec + (unsigned long long)ts.tv_nsec;
}

/* VAR=VALUE, and not a path that happens to hold an equals sign. */
static int is_assignment(const char *word)
{
	size_t name = strspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_");

	return name && word[name] == '=';
}

/* Takes the assignments off a command's words. */
static void make_environment(struct command *command)
{
	size_t nr = 0, nr_own = 0;

	while (command->words[nr_own] && is_assignment(command->words[nr_own]))
		nr_own++;
	while (environ[nr])
		nr++;
	command->envp = malloc((nr_own + nr + 1) * sizeof(*command->envp));
	if (!command->envp) {
		perror("measure");
		exit(1);
	}
	/* Of two of one name, the first counts. */
	memcpy(command->envp, command->words, nr_own * sizeof(*command->envp));
	memcpy(command->envp + nr_own, environ, (nr + 1) * sizeof(*command->envp));
	command->words += nr_own;
}

static void child(const struct command *command, int err_fd)
{
	dup2(open("/dev/null", O_RDWR | O_CLOEXEC), STDOUT_FILENO);
	dup2(err_fd, STDERR_FILENO);
	execvpe(command->words[0], command->words, command->envp);
	perror(command->words[0]);
	_exit(127);
}

static int run(const struct command *command, int round, const char *directory)
{
	unsigned long long start;
	struct rusage use;
	char path[4096];
	int status, err_fd;
	pid_t pid;

	snprintf(path, sizeof(path), "%s/%s.%d.err", directory, command->name, round);
	err_fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (err_fd < 0) {
		perror(path);
		return -1;
	}
	start = wall_ns();
	pid = fork();
	if (pid == 0)
		child(command, err_fd);
	close(err_fd);
	if (pid < 0 || wait4(pid, &status, 0, &use) != pid) {
		perror("measure");
		return -1;
	}
	printf("%s %d %llu %llu %d\n", command->name, round, timeval_ns(use.ru_utime) + timeval_ns(use.ru_stime),
	       wall_ns() - start, WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
	return 0;
}

int main(int argc, char **argv)
{
	struct command commands[MAX_COMMANDS];
	int rounds, nr = 0;

	if (argc < 5) {
		fputs("usage: measure ROUNDS DIRECTORY NAME [VAR=VALUE...] COMMAND... [--- NAME ...]...\n", stderr);
		return 2;
	}
	rounds = atoi(argv[1]);
	for (int i = 3; i < argc && nr < MAX_COMMANDS; i++) {
		commands[nr].name = argv[i++];
		commands[nr++].words = argv + i;
		while (i < argc && strcmp(argv[i], "---"))
			i++;
		argv[i] = NULL;
		make_environment(&commands[nr - 1]);
	}
	/* Round 0 warms the caches; readers leave it out. */
	for (int round = 0; round <= rounds; round++) {
		for (int i = 0; i < nr; i++)
			if (run(&commands[(i + round) % nr], round, argv[2]))
				return 1;
		fflush(stdout);
	}
	return 0;
}
