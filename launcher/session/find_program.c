/* The program that a command names: see find_program.h. Source: execve(2), elf(5), ld.so(8) on secure execution. */
#include "launcher/session/find_program.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "include/internal/cleanup.h"
#include "launcher/base/message.h"
#include "launcher/session/spawn.h"
#include "preload/core/libc_version.h"
#include "preload/core/program_file.h"

static void set_reason(struct csink_program *out, enum csink_spawn_reason reason, const char *why)
{
	out->reason = reason;
	snprintf(out->why, sizeof(out->why), "%s", why);
}

/* The launcher's own loader, which suits: library and launcher were linked with one C library. */
static const char *own_loader(void)
{
	const struct link_map *at = _r_debug.r_map;

	while (at && at->l_addr != _r_debug.r_ldbase)
		at = at->l_next;
	return at && at->l_name[0] == '/' ? at->l_name : NULL;
}

/* What a C library must have is read from the library that would be injected. */
static void name_library(void)
{
	static char library[PATH_MAX];
	static bool is_named;
	char entry[PATH_MAX], why[CSINK_WHY_BYTES];

	if (!is_named && !csink_library_find(entry, why, sizeof(why)) &&
	    !csink_library_file(entry, strlen(entry), library))
		csink_libc_version_init(library, own_loader());
	is_named = true;
}

void csink_program_inspect(const char *path, struct csink_program *out)
{
	static const char *const why[CSINK_NR_PROGRAM_KINDS] = {
		[CSINK_PROGRAM_OWN] = "",
		[CSINK_PROGRAM_STATIC] = "is statically linked",
		[CSINK_PROGRAM_BITS] = "is a 32-bit program",
		[CSINK_PROGRAM_MACHINE] = "is built for another machine",
		[CSINK_PROGRAM_LIBC] = "uses another C library than glibc",
		[CSINK_PROGRAM_OLDER] = "uses a glibc that is older than the library needs",
	};
	enum csink_program_kind kind;
	CSINK_AUTO_CLOSE int fd = -1;
	struct stat st;

	name_library();
	fd = csink_program_open(AT_FDCWD, path, &kind);
	out->is_unreadable = fd == -EACCES;
	set_reason(out, csink_program_reason(kind), why[kind]);
	if (fd >= 0 && csink_program_supports_preload(out->reason) && !fstat(fd, &st) &&
	    csink_program_raises_rights(fd, &st, true))
		set_reason(out, CSINK_SPAWN_SETUID, "changes its credentials (setuid, setgid or file capabilities)");
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
