/*
 * terminal COMMAND...: run a command on a terminal of its own (session leader, the terminal controls it) and do what
 * the lines of stdin say: "expect TEXT" waits for it in what the terminal shows from then on; "send TEXT" types it (\n,
 * \\ and \xHH are understood); "size ROWS" changes the window; "close" hangs up. Ends with the command's status (128 +
 * signal), 98 when an expected text did not come in time. What the terminal showed goes to stdout.
 */
#include <errno.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define DEADLINE_S 90

static char shown[1 << 20];   /* all so far */
static size_t nr_shown, seen; /* seen: up to there it was matched */
static int terminal_fd;

/* Read what is there, waiting for at most wait_ms. Returns 0 at the end. */
static int pump(int wait_ms)
{
	struct pollfd fd = {.fd = terminal_fd, .events = POLLIN};
	ssize_t len;

	if (poll(&fd, 1, wait_ms) <= 0)
		return 1;
	len = read(terminal_fd, shown + nr_shown, sizeof(shown) - 1 - nr_shown);
	if (len <= 0)
		return 0;
	fwrite(shown + nr_shown, 1, (size_t)len, stdout);
	fflush(stdout);
	nr_shown += (size_t)len;
	return 1;
}

static int expect(const char *text)
{
	time_t deadline = time(NULL) + DEADLINE_S;
	int alive = 1;

	for (;;) {
		char *at = memmem(shown + seen, nr_shown - seen, text, strlen(text));

		if (at) {
			seen = (size_t)(at - shown) + strlen(text);
			return 1;
		}
		if (!alive || time(NULL) > deadline)
			break;
		alive = pump(100);
	}
	printf("\n[terminal: '%s' did not come]\n", text);
	return 0;
}

static void type(const char *text)
{
	for (; *text; text++) {
		char c = *text;
		unsigned int code;

		if (c == '\\' && text[1] == 'n') {
			c = '\n';
			text++;
		} else if (c == '\\' && text[1] == 'x' && sscanf(text + 2, "%2x", &code) == 1) {
			c = (char)code;
			text += 3;
		} else if (c == '\\' && text[1] == '\\') {
			text++;
		}
		if (write(terminal_fd, &c, 1) != 1)
			return;
	}
}

int main(int argc, char **argv)
{
	struct winsize size = {.ws_row = 24, .ws_col = 80};
	char line[512];
	int status, failed = 0;
	pid_t pid;

	if (argc < 2)
		return 2;
	pid = forkpty(&terminal_fd, NULL, NULL, &size);
	if (pid < 0) {
		perror("terminal: forkpty");
		return 2;
	}
	if (!pid) {
		execvp(argv[1], argv + 1);
		perror(argv[1]);
		_exit(127);
	}
	while (!failed && fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = '\0';
		if (!strncmp(line, "expect ", 7)) {
			failed = !expect(line + 7);
		} else if (!strncmp(line, "send ", 5)) {
			type(line + 5);
		} else if (!strcmp(line, "close")) {
			close(terminal_fd);
			terminal_fd = -1;
		} else if (!strncmp(line, "size ", 5)) {
			size.ws_row = (unsigned short)atoi(line + 5);
			ioctl(terminal_fd, TIOCSWINSZ, &size);
		}
	}
	for (time_t deadline = time(NULL) + DEADLINE_S; !failed && terminal_fd >= 0 && pump(100);)
		failed = time(NULL) > deadline;
	/* What still runs loses its terminal now. */
	if (terminal_fd >= 0)
		close(terminal_fd);
	if (failed)
		kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (failed)
		return 98;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
