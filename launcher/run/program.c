/* The program that a command names: see program.h. Source: execve(2), elf(5), ld.so(8) on secure execution. */
#include "launcher/run/program.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "preload/inject/program_file.h"

static void set_reason(struct csink_program *out, enum csink_spawn_reason reason, const char *why)
{
	out->reason = reason;
	snprintf(out->why, sizeof(out->why), "%s", why);
}

void csink_program_inspect(const char *path, struct csink_program *out)
{
	static const char *const why[CSINK_NR_PROGRAM_KINDS] = {
		[CSINK_PROGRAM_OWN] = "",
		[CSINK_PROGRAM_STATIC] = "is statically linked",
		[CSINK_PROGRAM_BITS] = "is a 32-bit program",
		[CSINK_PROGRAM_MACHINE] = "is built for another machine",
		[CSINK_PROGRAM_LIBC] = "uses another C library than glibc",
	};
	enum csink_program_kind kind;
	struct stat st;
	int fd = csink_program_open(AT_FDCWD, path, &kind);

	set_reason(out, csink_program_reason(kind), why[kind]);
	if (fd < 0)
		return;
	if (csink_program_bears_preload(kind) && !fstat(fd, &st) && csink_program_raises_rights(fd, &st, true))
		set_reason(out, CSINK_SPAWN_SETUID, "gets other rights (setuid, setgid or file capabilities)");
	close(fd);
}

static int is_executable(const char *path)
{
	struct stat st;

	if (stat(path, &st))
		return errno == ENOENT || errno == ENOTDIR ? -ENOENT : -EACCES;
	if (!S_ISREG(st.st_mode) || faccessat(AT_FDCWD, path, X_OK, AT_EACCESS))
		return -EACCES;
	return 0;
}

int csink_program_find(const char *command, struct csink_program *out)
{
	const char *path = getenv("PATH"), *colon;
	int err = -ENOENT;

	memset(out, 0, sizeof(*out));
	if (!*command)
		return -ENOENT;
	if (strchr(command, '/')) {
		snprintf(out->path, sizeof(out->path), "%s", command);
		err = is_executable(command);
		if (!err)
			csink_program_inspect(out->path, out);
		return err;
	}
	for (path = path ? path : "/bin:/usr/bin"; path; path = colon ? colon + 1 : NULL) {
		char at[PATH_MAX];
		int len, found;

		colon = strchr(path, ':');
		len = colon ? (int)(colon - path) : (int)strlen(path);
		if (snprintf(at, sizeof(at), "%.*s%s%s", len, path, len ? "/" : "", command) >= (int)sizeof(at))
			continue;
		found = is_executable(at);
		if (!found || (found == -EACCES && err == -ENOENT))
			strcpy(out->path, at);
		if (!found) {
			csink_program_inspect(out->path, out);
			return 0;
		}
		if (found == -EACCES)
			err = found;
	}
	return err;
}
