/* What a program file is: see program_file.h. Source: execve(2), elf(5), ld.so(8) on secure execution. Any thread, in a
 * vfork child too; not in handlers. */
#include "preload/core/program_file.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/rawcall.h"
#include "preload/core/libc_version.h"

enum {
	MAX_INTERPRETERS = 5, /* the kernel follows no more */
	HEAD_BYTES = 1024,    /* holds the program headers and the loader's name of nearly every program */
	NAME_BYTES = 256,
};

#define MAX_DYNAMIC 256UL
#define FLAG_NOSUID 0x2 /* ST_NOSUID of statfs(2) */

#if defined(__x86_64__)
#define OWN_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define OWN_MACHINE EM_AARCH64
#else
#error "unsupported architecture"
#endif

/* A file and its first bytes. */
struct head {
	int fd;
	size_t nr_bytes;
	char bytes[HEAD_BYTES + 1];
};

static bool read_at(const struct head *head, uint64_t offset, void *to, size_t size)
{
	if (offset <= head->nr_bytes && size <= head->nr_bytes - offset) {
		memcpy(to, head->bytes + offset, size);
		return true;
	}
	return csink_rawcall(SYS_pread64, head->fd, to, size, offset) == (long)size;
}

/* ---- ELF ----------------------------------------------------------------------------------------------------------
 */

/* Is this the loader of a libc that ours can live with? Only glibc's own are. */
static bool is_glibc_loader(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;

	/* Before glibc 2.33 the file itself was named by its version, as in "ld-2.31.so". */
	return !strncmp(name, "ld-linux", 8) || !strncmp(name, "ld64.so", 7) || !strncmp(name, "ld.so", 5) ||
	       !strncmp(name, "ld-2.", 5);
}

/* snprintf(3) is not for a vfork child of a program with several threads: it may take locks. */
void csink_program_fd_link(char *link, int fd)
{
	char digits[12] = "", *end = digits + sizeof(digits) - 1;

	strcpy(link, "/proc/self/fd/");
	strcat(link, csink_digits(end, (uint32_t)fd));
}

size_t csink_program_fd_path(int fd, char *path, size_t size)
{
	char link[32];
	long n;

	csink_program_fd_link(link, fd);
	n = csink_rawcall(SYS_readlinkat, AT_FDCWD, link, path, size - 1);
	path[n > 0 ? n : 0] = '\0';
	return n > 0 ? (size_t)n : 0;
}

/* Called directly (ld.so PROGRAM), the loader looks like a static program and preloads all the same. */
static bool is_loader(int fd, const char *path)
{
	char real[NAME_BYTES];

	return is_glibc_loader(path) || (csink_program_fd_path(fd, real, sizeof(real)) && is_glibc_loader(real));
}

/* Does a program that has a loader need a library? Linkers put such entries first: where MAX_DYNAMIC do not decide, it
 * is taken for one that does. */
static bool needs_library(const struct head *head, const Elf64_Phdr *dynamic)
{
	Elf64_Dyn entry;

	for (uint64_t i = 0; i < CSINK_MIN(dynamic->p_filesz / sizeof(entry), MAX_DYNAMIC); i++) {
		if (!read_at(head, dynamic->p_offset + i * sizeof(entry), &entry, sizeof(entry)) ||
		    entry.d_tag == DT_NEEDED)
			return true;
		if (entry.d_tag == DT_NULL)
			return false;
	}
	return true;
}

static enum csink_program_kind kind_of_elf(const struct head *head, const char *path)
{
	char loader[NAME_BYTES] = "";
	Elf64_Ehdr eh;
	Elf64_Phdr ph, dynamic = {0};

	if (!read_at(head, 0, &eh, sizeof(eh)))
		return CSINK_PROGRAM_OWN;
	if (eh.e_ident[EI_CLASS] != ELFCLASS64)
		return CSINK_PROGRAM_BITS;
	if (eh.e_machine != OWN_MACHINE || eh.e_phentsize != sizeof(ph))
		return CSINK_PROGRAM_MACHINE;
	for (unsigned int i = 0; i < eh.e_phnum; i++) {
		if (!read_at(head, eh.e_phoff + i * sizeof(ph), &ph, sizeof(ph)))
			return CSINK_PROGRAM_OWN;
		if (ph.p_type == PT_DYNAMIC)
			dynamic = ph;
		if (ph.p_type == PT_INTERP && !*loader && /* the kernel takes the first one, too */
		    !read_at(head, ph.p_offset, loader, CSINK_MIN(ph.p_filesz, sizeof(loader) - 1)))
			return CSINK_PROGRAM_OWN;
	}
	if (*loader) {
		if (!is_glibc_loader(loader))
			return CSINK_PROGRAM_LIBC;
		if (!csink_libc_suits(loader))
			return CSINK_PROGRAM_OLDER;
		return needs_library(head, &dynamic) ? CSINK_PROGRAM_OWN : CSINK_PROGRAM_STATIC;
	}
	/* A loader can be mapped anywhere, as most static programs cannot: these need no look at their real name. */
	if (eh.e_type == ET_EXEC || !is_loader(head->fd, path))
		return CSINK_PROGRAM_STATIC;
	return csink_libc_suits_fd(head->fd) ? CSINK_PROGRAM_OWN : CSINK_PROGRAM_OLDER;
}

/* ---- files --------------------------------------------------------------------------------------------------------
 */

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

static int open_head(int dirfd, const char *path, struct head *head)
{
	struct stat st;
	long n;

	head->fd = (int)csink_rawcall(SYS_openat, dirfd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);
	if (head->fd < 0)
		return head->fd;
	n = csink_raw_fstat(head->fd, &st) || !S_ISREG(st.st_mode) || !(st.st_mode & 0111)
		    ? -1
		    : csink_rawcall(SYS_pread64, head->fd, head->bytes, HEAD_BYTES, 0);
	if (n < 0) {
		csink_rawcall(SYS_close, head->fd);
		return -ENOEXEC;
	}
	head->nr_bytes = (size_t)n;
	head->bytes[n] = '\0';
	return 0;
}

int csink_program_open(int dirfd, const char *path, enum csink_program_kind *kind)
{
	char interpreter[NAME_BYTES];
	struct head head;

	*kind = CSINK_PROGRAM_OWN;
	for (int depth = 0; depth <= MAX_INTERPRETERS; depth++) {
		int err = open_head(dirfd, path, &head);

		if (err)
			return err;
		if (head.nr_bytes > EI_NIDENT && !memcmp(head.bytes, ELFMAG, SELFMAG)) {
			*kind = kind_of_elf(&head, path);
			return head.fd;
		}
		csink_rawcall(SYS_close, head.fd);
		/* execvp(3) runs text without "#!" by the shell. */
		if (!read_interpreter(head.bytes, interpreter, sizeof(interpreter)))
			strcpy(interpreter, "/bin/sh");
		path = interpreter;
		dirfd = AT_FDCWD;
	}
	return -ENOEXEC;
}

int csink_program_search(const char *path, const char *name, enum csink_program_kind *kind)
{
	size_t name_len = strlen(name);
	const char *end;

	*kind = CSINK_PROGRAM_OWN;
	if (strchr(name, '/'))
		return csink_program_open(AT_FDCWD, name, kind);
	if (!name_len || name_len > NAME_MAX)
		return -ENOENT;
	for (path = path ? path : "/bin:/usr/bin";; path = end + 1) {
		char at[PATH_MAX];
		size_t len;
		int fd;

		end = strchrnul(path, ':');
		len = (size_t)(end - path);
		if (len + name_len + 2 <= sizeof(at)) {
			memcpy(at, path, len);
			if (len)
				at[len++] = '/';
			memcpy(at + len, name, name_len + 1);
			fd = csink_program_open(AT_FDCWD, at, kind);
			/* What may be run but not read is run by execvp(3), and nothing is known of it. */
			if (fd >= 0 || (fd == -EACCES && !csink_rawcall(SYS_faccessat, AT_FDCWD, at, X_OK)))
				return fd;
		}
		if (!*end)
			return -ENOENT;
	}
}

bool csink_program_in_path(const char *name, char *path, size_t size)
{
	const char *directories = getenv("PATH");

	while (directories && *directories) {
		size_t len = strcspn(directories, ":");

		if (len && (size_t)snprintf(path, size, "%.*s/%s", (int)len, directories, name) < size &&
		    !access(path, X_OK))
			return true;
		directories += len + (directories[len] == ':');
	}
	return false;
}

bool csink_program_raises_rights(int fd, const struct stat *st, bool ask_capabilities)
{
	bool by_mode = (st->st_mode & S_ISUID && st->st_uid != geteuid()) ||
		       (st->st_mode & S_ISGID && st->st_mode & S_IXGRP && st->st_gid != getegid());
	bool by_file = !by_mode && ask_capabilities && geteuid() != 0 &&
		       csink_rawcall(SYS_fgetxattr, fd, "security.capability", NULL, 0) > 0;
	struct statfs fs;

	return (by_mode || by_file) && !(csink_rawcall(SYS_fstatfs, fd, &fs) == 0 && fs.f_flags & FLAG_NOSUID);
}

enum csink_spawn_reason csink_program_reason(enum csink_program_kind kind)
{
	static const enum csink_spawn_reason reasons[CSINK_NR_PROGRAM_KINDS] = {
		[CSINK_PROGRAM_STATIC] = CSINK_SPAWN_STATIC,     [CSINK_PROGRAM_BITS] = CSINK_SPAWN_OTHER_ABI,
		[CSINK_PROGRAM_MACHINE] = CSINK_SPAWN_OTHER_ABI, [CSINK_PROGRAM_LIBC] = CSINK_SPAWN_OTHER_ABI,
		[CSINK_PROGRAM_OLDER] = CSINK_SPAWN_OLDER_LIBC,
	};

	return reasons[kind];
}

bool csink_program_supports_preload(enum csink_spawn_reason reason)
{
	return reason != CSINK_SPAWN_OTHER_ABI && reason != CSINK_SPAWN_OLDER_LIBC;
}
