/* The program that a command names: see program.h. Source: execve(2), elf(5), ld.so(8) on secure execution. */
#include "launcher/run/program.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "include/internal/base.h"

#define MAX_INTERPRETERS 5 /* the kernel follows no more */

#if defined(__x86_64__)
#define OWN_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define OWN_MACHINE EM_AARCH64
#else
#error "unsupported architecture"
#endif

static void set_reason(struct csink_program *out, enum csink_spawn_reason reason, const char *why)
{
	out->reason = reason;
	snprintf(out->why, sizeof(out->why), "%s", why);
}

/* Would the kernel raise our rights here? Then the loader ignores LD_PRELOAD (AT_SECURE). */
static bool raises_rights(int fd, const struct stat *st)
{
	struct statvfs fs;

	if (!fstatvfs(fd, &fs) && fs.f_flag & ST_NOSUID)
		return false;
	if (st->st_mode & S_ISUID && st->st_uid != geteuid())
		return true;
	if (st->st_mode & S_ISGID && st->st_mode & S_IXGRP && st->st_gid != getegid())
		return true;
	return geteuid() != 0 && fgetxattr(fd, "security.capability", NULL, 0) > 0;
}

/* Is this the loader of a libc that ours can live with? Only glibc's own are. */
static bool is_glibc_loader(const char *interpreter)
{
	const char *slash = strrchr(interpreter, '/');
	const char *name = slash ? slash + 1 : interpreter;

	return !strncmp(name, "ld-linux", 8) || !strncmp(name, "ld64.so", 7) || !strncmp(name, "ld.so", 5);
}

/* Called directly (ld.so PROGRAM), the loader looks like a static program and preloads all the same. */
static bool is_loader(const char *path)
{
	char real[PATH_MAX];

	return is_glibc_loader(realpath(path, real) ? real : path) || is_glibc_loader(path);
}

static void inspect_elf(int fd, const struct stat *st, const char *path, struct csink_program *out)
{
	char interpreter[256];
	Elf64_Ehdr eh;
	Elf64_Phdr ph;

	if (pread(fd, &eh, sizeof(eh), 0) != sizeof(eh))
		return;
	if (eh.e_ident[EI_CLASS] != ELFCLASS64) {
		set_reason(out, CSINK_SPAWN_OTHER_ABI, "is a 32-bit program");
		return;
	}
	if (eh.e_machine != OWN_MACHINE || eh.e_phentsize != sizeof(ph)) {
		set_reason(out, CSINK_SPAWN_OTHER_ABI, "is built for another machine");
		return;
	}
	if (raises_rights(fd, st)) {
		set_reason(out, CSINK_SPAWN_SETUID, "gets other rights (setuid, setgid or file capabilities)");
		return;
	}
	for (unsigned int i = 0; i < eh.e_phnum; i++) {
		if (pread(fd, &ph, sizeof(ph), (off_t)(eh.e_phoff + i * sizeof(ph))) != sizeof(ph))
			return;
		if (ph.p_type != PT_INTERP)
			continue;
		memset(interpreter, 0, sizeof(interpreter));
		if (pread(fd, interpreter, CSINK_MIN(ph.p_filesz, sizeof(interpreter) - 1), (off_t)ph.p_offset) <= 0)
			return;
		if (!is_glibc_loader(interpreter))
			set_reason(out, CSINK_SPAWN_OTHER_ABI, "uses another C library than glibc");
		return;
	}
	if (!is_loader(path))
		set_reason(out, CSINK_SPAWN_STATIC, "is statically linked");
}

/* The interpreter of a "#!" line; false if the file has none. */
static bool read_interpreter(const char *head, char *out, size_t size)
{
	const char *at = head + 2;
	size_t len;

	if (strncmp(head, "#!", 2))
		return false;
	at += strspn(at, " \t");
	len = strcspn(at, " \t\n");
	if (!len || len >= size)
		return false;
	memcpy(out, at, len);
	out[len] = '\0';
	return true;
}

void csink_program_inspect(const char *path, struct csink_program *out)
{
	char head[256], at[PATH_MAX];
	struct stat st;

	out->reason = 0;
	out->why[0] = '\0';
	snprintf(at, sizeof(at), "%s", path);
	for (int depth = 0; depth <= MAX_INTERPRETERS; depth++) {
		int fd = open(at, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
		ssize_t len;

		if (fd < 0)
			return;
		len = pread(fd, head, sizeof(head) - 1, 0);
		if (len < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode)) {
			close(fd);
			return;
		}
		head[len] = '\0';
		if (len > EI_NIDENT && !memcmp(head, ELFMAG, SELFMAG)) {
			inspect_elf(fd, &st, at, out);
			close(fd);
			return;
		}
		close(fd);
		/* Text without "#!" is the shell's: execvp(3) says so. */
		if (!read_interpreter(head, at, sizeof(at)))
			strcpy(at, "/bin/sh");
	}
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
