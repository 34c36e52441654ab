/* Files below another root, which its owner may change as he likes: what is opened is never a file outside of it. */
#include "launcher/base/roots.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/tap.h"

static char top[] = "/tmp/csink-roots.XXXXXX", root[64];

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text) || close(fd))
		exit(1);
}

/* What a path through the root leads to: the text of it, or "errno N". */
static const char *text_of(const char *path, int flags)
{
	static char text[64];
	char whole[256];
	ssize_t n;
	int fd;

	snprintf(whole, sizeof(whole), "%s%s", root, path);
	fd = csink_root_open(whole, flags);
	if (fd < 0) {
		snprintf(text, sizeof(text), "errno %d", -fd);
		return text;
	}
	n = read(fd, text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = 0;
	close(fd);
	return text;
}

static const char *number(int err)
{
	static char text[16];

	snprintf(text, sizeof(text), "errno %d", err);
	return text;
}

static void make_files(void)
{
	char target[128];

	if (!mkdtemp(top) || chdir(top))
		exit(1);
	write_file("secret", "outside");
	mkdir("jail", 0755);
	mkdir("jail/lib", 0755);
	mkdir("jail/tmp", 0755);
	snprintf(target, sizeof(target), "jail%s", top);
	mkdir(target, 0755);
	snprintf(target, sizeof(target), "jail%s/secret", top);
	write_file(target, "inside");
	write_file("jail/lib/true.so", "inside");
	snprintf(target, sizeof(target), "%s/secret", top);
	if (symlink(target, "jail/lib/absolute.so") || symlink("../../../secret", "jail/lib/up.so") ||
	    symlink("true.so", "jail/lib/near.so") || symlink("/proc/self/exe", "jail/lib/magic.so") ||
	    symlink("lib", "jail/lib64") || symlink(top, "jail/directory") || mkfifo("jail/lib/fifo", 0644))
		exit(1);
}

static void test_len(void)
{
	is_num((long long)csink_root_len("/proc/self/fd/7/usr/lib/x.so"), 15,
	       "length of the root in /proc/self/fd/N/PATH");
	is_num((long long)csink_root_len("/proc/4711/root/usr/lib/x.so"), 15,
	       "length of the root in /proc/PID/root/PATH");
	is_num((long long)csink_root_len("/usr/lib/x.so"), 0, "a path without a root: length 0");
	is_num((long long)csink_root_len("/proc/self/fd/7"), 0, "a handle without a path: length 0");
	is_num((long long)csink_root_len("/proc/self/fd//x"), 0, "a handle without a number: length 0");
	is_num((long long)csink_root_len("/proc/4711/rooted/x"), 0, "another file of /proc/PID: length 0");
	is_num((long long)csink_root_len("/proc/1/fd/2/x"), 0, "another process's handle: length 0");
	is_num((long long)csink_root_len(""), 0, "an empty path: length 0");
}

static const char *how;

static void leads(const char *path, int flags, const char *want, const char *what)
{
	char got[64], name[128];

	snprintf(got, sizeof(got), "%s", text_of(path, flags));
	snprintf(name, sizeof(name), "%s: %s", how, what);
	is_str(got, want, name);
}

/* @follows  whether links are followed, below the root. */
static void test_open(const char *by, int follows)
{
	how = by;
	leads("/lib/true.so", 0, "inside", "a file");
	leads("//lib/./true.so", 0, "inside", "however it is written");
	leads("/lib/near.so", 0, follows ? "inside" : number(ENOEXEC), "a link beside it");
	leads("/lib64/true.so", 0, follows ? "inside" : number(ENOTDIR), "through a directory's link");
	leads("/lib/absolute.so", 0, follows ? "inside" : number(ENOEXEC), "an absolute link is meant from there");
	leads("/directory/secret", 0, follows ? "inside" : number(ENOTDIR), "a directory's, too");
	leads("/lib/up.so", 0, follows ? number(ENOENT) : number(ENOEXEC), "no link leads above the root");
	leads("/../secret", 0, follows ? number(ENOENT) : number(EXDEV), "no path leads above the root");
	ok(!strncmp(text_of("/lib/magic.so", 0), "errno", 5), "%s: nor what only proc has", how);
	leads("/lib/near.so", O_NOFOLLOW, number(ENOEXEC), "no link, where none is wanted");
	leads("/lib/fifo", 0, number(ENOEXEC), "a pipe is not waited for");
	leads("/lib", 0, number(ENOEXEC), "a directory");
	leads("/lib/none.so", 0, number(ENOENT), "nothing");
}

/* The kernel has no openat2(2), or a filter of a container's refuses it. */
static int refuse(int error)
{
	struct sock_filter rules[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned int)error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = {.len = sizeof(rules) / sizeof(rules[0]), .filter = rules};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

int main(void)
{
	char command[128];
	int fd;

	make_files();
	test_len();
	fd = open("jail", O_PATH | O_DIRECTORY | O_CLOEXEC);
	snprintf(root, sizeof(root), "/proc/self/fd/%d", fd);
	if (syscall(SYS_openat2, -1, NULL, NULL, 0) < 0 && errno == ENOSYS)
		skip("openat2", "this kernel has none");
	else
		test_open("openat2", 1);
	root[0] = 0;
	snprintf(command, sizeof(command), "%s/secret", top);
	is_str(text_of(command, 0), "outside", "without another root a path is opened in our own");
	snprintf(root, sizeof(root), "/proc/self/fd/%d", fd);
	if (refuse(EPERM)) {
		skip("directory by directory", "this kernel has no filters");
	} else {
		test_open("directory by directory", 0);
	}
	snprintf(root, sizeof(root), "/proc/%d/root", getpid());
	snprintf(command, sizeof(command), "%s/secret", top);
	is_str(text_of(command, 0), "outside", "a command opens a link through a process's root");
	close(fd);
	snprintf(command, sizeof(command), "rm -rf %s", top);
	return system(command) ? 1 : done();
}
