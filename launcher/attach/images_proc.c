/* Images as /proc has them when they are attached to: names, threads, what is mapped. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "launcher/attach/images_impl.h"
#include "launcher/base/rank.h"
#include "preload/api/pmc/targets.h"
#include "preload/core/status.h"
#include "preload/core/sysfs.h"

#define MAX_ENVIRON (256U << 10)

/* Its first thread has what belongs to the process, unless that one has ended. It stands still meanwhile: be quick. */
static int32_t task_of(int32_t pid)
{
	char path[64], byte;

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	return readlink(path, &byte, 1) < 0 ? csink_process_task(pid) : pid;
}

static bool read_file(int32_t pid, const char *name, char *text, size_t size)
{
	return csink_sysfs_read(text, size, "/proc/%d/%s", task_of(pid), name) >= 0; /* a name may be empty */
}

static void read_link(int32_t pid, const char *name, char *text, size_t size)
{
	char path[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/%s", task_of(pid), name);
	n = readlink(path, text, size - 1);
	text[CSINK_MAX(n, 0)] = 0;
}

/* The length of the prefix that leads to a process's root in its paths of /proc. Paths of the kernel's records begin at
 * that root. */
static size_t root_prefix(const struct csink_attach_image *image, char *prefix, size_t size)
{
	prefix[0] = 0;
	if (image->root[0])
		read_link(image->pid, "root", prefix, size);
	return strcmp(prefix, "/") ? strlen(prefix) : 0;
}

static const char *without(const char *path, const char *prefix, size_t len)
{
	return !strncmp(path, prefix, len) && path[len] == '/' ? path + len : path;
}

/* Of another user's process the environment cannot be read: then it has no rank. */
static void read_rank(struct csink_attach_image *image)
{
	CSINK_AUTO_FREE char *block = malloc(MAX_ENVIRON + 1);
	CSINK_AUTO_CLOSE int fd = -1;
	size_t len = 0;
	ssize_t n;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/environ", task_of(image->pid));
	fd = block ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	while (fd >= 0 && len < MAX_ENVIRON && (n = read(fd, block + len, MAX_ENVIRON - len)) > 0)
		len += (size_t)n;
	if (len) {
		block[len] = '\0';
		memset(image->rank_values, 0, sizeof(image->rank_values));
		csink_rank_take_block(block, len, image->rank_values);
	}
}

void csink_attach_image_read_names(struct csink_attach_image *image)
{
	char prefix[PATH_MAX], exe[PATH_MAX], cmdline[sizeof(image->cmdline)] = "";
	size_t len = root_prefix(image, prefix, sizeof(prefix));

	read_link(image->pid, "exe", exe, sizeof(exe));
	if (exe[0])
		snprintf(image->exe, sizeof(image->exe), "%.*s", (int)sizeof(image->exe) - 1,
			 without(exe, prefix, len));
	if (read_file(image->pid, "cmdline", cmdline, sizeof(cmdline)) && cmdline[0])
		memcpy(image->cmdline, cmdline, sizeof(cmdline));
	read_rank(image);
}

static bool is_same_file(const char *a, const char *b)
{
	struct stat x, y;

	return !stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* After a chroot, or in another mount namespace (where the root may be the same, with other things mounted below it),
 * its paths mean other files. */
static bool is_elsewhere(int32_t pid, char *root, size_t size)
{
	char mounts[64];

	pid = task_of(pid);
	snprintf(root, size, "/proc/%d/root", pid);
	snprintf(mounts, sizeof(mounts), "/proc/%d/ns/mnt", pid);
	return !is_same_file(root, "/") || !is_same_file(mounts, "/proc/self/ns/mnt");
}

/* They are reached through a handle that outlives it. */
static void find_root(struct csink_attach_image *image)
{
	char path[64];
	int fd;

	if (!is_elsewhere(image->pid, path, sizeof(path)))
		return;
	fd = open(path, O_PATH | O_CLOEXEC | O_DIRECTORY); /* without the right to, there is none */
	if (fd >= 0)                                       /* it is closed with the launcher */
		snprintf(image->root, sizeof(image->root), "/proc/self/fd/%d", fd);
}

void csink_attach_image_read_place(struct csink_attach_image *image)
{
	struct csink_status status = {0};

	csink_status_read(task_of(image->pid), &status);
	image->ppid = status.parent;
	find_root(image);
}

/* Calls each for what is mapped to be executed, and has a name, less the prefix. */
static void each_map(int32_t pid, const char *prefix, size_t prefix_len,
		     void (*each)(struct csink_attach_images *images, int32_t pid, uint64_t start, uint64_t bytes,
				  uint64_t offset, const char *path, uint64_t now_ns),
		     struct csink_attach_images *images, uint64_t now_ns)
{
	unsigned long long start, end, offset;
	CSINK_AUTO_FCLOSE FILE *file = NULL;
	CSINK_AUTO_FREE char *line = NULL;
	char path[64], perms[8];
	size_t size = 0;
	int at;

	snprintf(path, sizeof(path), "/proc/%d/maps", task_of(pid));
	file = fopen(path, "re");
	while (file && getline(&line, &size, file) > 0) {
		line[strcspn(line, "\n")] = 0;
		if (sscanf(line, "%llx-%llx %7s %llx %*s %*s %n", &start, &end, perms, &offset, &at) == 4 &&
		    strchr(perms, 'x') && line[at])
			each(images, pid, start, end - start, offset, without(line + at, prefix, prefix_len), now_ns);
	}
}

static void read_object(struct csink_attach_images *images, int32_t pid, uint64_t start, uint64_t bytes,
			uint64_t offset, const char *path, uint64_t now_ns)
{
	struct csink_attach_object *object = NULL;

	(void)now_ns;
	if (!strcmp(path, "[vdso]"))
		object = csink_attach_objects_get_vdso(&images->objects, pid, start, bytes);
	else if (csink_attach_is_object(path))
		object = csink_attach_objects_get(&images->objects, pid, images->prepared_root, path);
	if (object && images->on_object)
		images->on_object(images->arg, pid, object, csink_attach_object_bias(object, start, offset));
}

void csink_attach_images_prepare(struct csink_attach_images *images, int32_t pid)
{
	struct csink_attach_image image = {.pid = pid};
	char prefix[PATH_MAX];
	size_t len;

	/* Elsewhere, what is read here is not what will be taken, which will be reached through a handle. */
	if (!is_elsewhere(pid, image.root, sizeof(image.root)))
		image.root[0] = 0;
	else if (!images->on_object)
		return;
	images->prepared_root = image.root;
	len = root_prefix(&image, prefix, sizeof(prefix));
	each_map(pid, prefix, len, read_object, images, 0);
	images->prepared_root = NULL;
}

static void read_threads(struct csink_attach_images *images, uint32_t number, uint64_t now_ns)
{
	struct csink_attach_image *image = images->at[number];
	char path[64], name[64];
	const char *tid;

	CSINK_SYSFS_EACH(tid, "/proc/%d/task", image->pid) {
		snprintf(path, sizeof(path), "task/%s/comm", tid);
		read_file(image->pid, path, name, sizeof(name));
		csink_attach_thread_new(images, number, atoi(tid), name, now_ns);
	}
}

bool csink_attach_images_take(struct csink_attach_images *images, int32_t pid, uint64_t now_ns)
{
	struct csink_attach_image *image;
	char comm[64], prefix[PATH_MAX];
	uint32_t number;
	size_t len;

	if (!read_file(pid, "comm", comm, sizeof(comm)))
		return false;
	image = csink_attach_image_new(images, pid, now_ns, &number);
	if (!image)
		return false;
	csink_attach_copy_comm(image->comm, comm);
	csink_attach_image_read_place(image);
	images->nr_processes++;
	csink_attach_image_read_names(image);
	read_threads(images, number, now_ns);
	len = root_prefix(image, prefix, sizeof(prefix));
	each_map(pid, prefix, len, csink_attach_images_map, images, now_ns);
	return true;
}
