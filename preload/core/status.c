/* Lines of /proc/PID/status: see status.h. Source: proc_pid_status(5). Any thread; async-signal-safe. */
#include "preload/core/status.h"

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>

#include "include/internal/base.h"
#include "include/internal/rawcall.h"

/* Names in the table itself: every process reads this as it starts, and a pointer would have to be relocated there. */
enum line { TGID, PARENT, TRACER, UID, CAUGHT, EFFECTIVE, SECCOMP, FILTERS, NR_LINES };
static const struct {
	char name[17];
	uint8_t base;
} lines[NR_LINES] = {
	[TGID] = {"Tgid:", 10},        [PARENT] = {"PPid:", 10},
	[TRACER] = {"TracerPid:", 10}, [UID] = {"Uid:", 10},
	[CAUGHT] = {"SigCgt:", 16},    [EFFECTIVE] = {"CapEff:", 16},
	[SECCOMP] = {"Seccomp:", 10},  [FILTERS] = {"Seccomp_filters:", 10},
};

struct found {
	uint64_t value[NR_LINES];
	bool is_there[NR_LINES];
};

/* The first number in a text that begins with white space. Without libc's strtoull, whose pages most programs have not
 * touched as they start. */
static bool take_number(const char *text, unsigned base, uint64_t *number)
{
	bool is_there = false;

	while (*text == '\t' || *text == ' ')
		text++;
	for (unsigned digit;; is_there = true) {
		digit = (unsigned char)*text++;
		digit = digit <= '9' ? digit - '0' : digit >= 'a' ? digit - 'a' + 10 : base;
		if (digit >= base)
			return is_there;
		*number = *number * base + digit;
	}
}

static void take_line(struct found *found, const char *line)
{
	for (int i = 0; i < NR_LINES; i++) {
		size_t length = strlen(lines[i].name);

		if (!found->is_there[i] && !strncmp(line, lines[i].name, length)) {
			found->is_there[i] = take_number(line + length, lines[i].base, &found->value[i]);
			return;
		}
	}
}

/* Takes whole lines; returns where the rest begins, which is the beginning of one. */
static char *take_lines(struct found *found, char *text, char *end)
{
	char *newline;

	while ((newline = memchr(text, '\n', (size_t)(end - text)))) {
		take_line(found, text);
		text = newline + 1;
	}
	return text;
}

static int read_lines(int fd, struct found *found)
{
	char text[2048], *end = text, *rest;
	bool in_long_line = false; /* that began in what is gone; none of ours is so long */
	long n = 0;

	/* What is wanted last is last in the file: to ask for its end would be one call more. */
	while (!found->is_there[FILTERS] && (n = csink_rawcall(SYS_read, fd, end, text + sizeof(text) - end)) > 0) {
		end += n;
		rest = text;
		if (in_long_line) {
			rest = memchr(text, '\n', (size_t)(end - text));
			in_long_line = !rest;
			rest = rest ? rest + 1 : end;
		}
		rest = take_lines(found, rest, end);
		if (rest == text && end == text + sizeof(text)) {
			in_long_line = true;
			rest = end;
		}
		memmove(text, rest, (size_t)(end - rest));
		end -= rest - text;
	}
	return n < 0 ? (int)n : 0;
}

/* "/proc/self/status" without stdio, whose pages most programs that start have not touched yet. */
static void path_of(pid_t pid, char *path)
{
	char digits[16] = "", *end = digits + sizeof(digits) - 1;

	if (pid == CSINK_STATUS_THREAD) {
		strcpy(path, "/proc/thread-self/status");
		return;
	}
	strcpy(path, "/proc/");
	strcat(path, pid == CSINK_STATUS_PROCESS ? "self" : csink_digits(end, (uint32_t)pid));
	strcat(path, "/status");
}

int csink_status_read_fd(int fd, struct csink_status *status)
{
	struct found found = {{0}, {false}};
	int err = read_lines(fd, &found);

	if (err)
		return err;
	status->tgid = (pid_t)found.value[TGID];
	status->parent = (pid_t)found.value[PARENT];
	status->tracer = (pid_t)found.value[TRACER];
	status->uid = (uid_t)found.value[UID];
	status->seccomp = found.is_there[SECCOMP] ? (int)found.value[SECCOMP] : -1;
	status->nr_filters = found.is_there[FILTERS] ? (int)found.value[FILTERS] : status->seccomp == 2;
	status->caught = found.is_there[CAUGHT] ? found.value[CAUGHT] : UINT64_MAX;
	status->effective = found.value[EFFECTIVE];
	return 0;
}

int csink_status_read(pid_t pid, struct csink_status *status)
{
	char path[32];
	int fd, err;

	path_of(pid, path);
	fd = (int)csink_rawcall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
	if (fd < 0)
		return fd;
	err = csink_status_read_fd(fd, status);
	csink_rawcall(SYS_close, fd);
	return err;
}
