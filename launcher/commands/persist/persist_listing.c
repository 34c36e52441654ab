/* The files that say which events the keeper keeps: see keeper.h. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/base/text.h"
#include "launcher/commands/persist/keeper.h"
#include "preload/core/opendir_at.h"

static void name_file(char *path, size_t size, uint64_t id)
{
	snprintf(path, size, CSINK_PERSIST_EVENTS "/%" PRIu64, id);
}

int csink_keeper_listing_init(int directory_fd)
{
	struct dirent *entry;
	DIR *dir;

	if (mkdirat(directory_fd, CSINK_PERSIST_EVENTS, 0700) && errno != EEXIST)
		return -errno;
	dir = csink_opendir_at(directory_fd, CSINK_PERSIST_EVENTS);
	if (!dir)
		return -errno;
	/* Those of a keeper that was killed: their events have ended with it. */
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] != '.')
			unlinkat(dirfd(dir), entry->d_name, 0);
	}
	closedir(dir);
	return 0;
}

static void describe(FILE *out, const struct csink_persist_event *event)
{
	const struct perf_event_attr *attr = &event->attr;

	csink_text_print(out, "id %" PRIu64 "\nname %s\ntype %u\nconfig 0x%" PRIx64 "\n", event->id, event->name,
			 attr->type, (uint64_t)attr->config);
	csink_text_print(out, "%s %" PRIu64 "\npid %d\ncpu %d\n", attr->freq ? "frequency" : "period",
			 (uint64_t)attr->sample_period, event->pid, event->cpu);
	fprintf(out, "events %u\n", event->nr_members);
	fprintf(out, "pages %u\nbackward %d\nmode %04o\nuid %u\nopener %d\nsince_ns %" PRId64 "\n", event->pages,
		attr->write_backward, event->mode, event->uid, event->opener, event->since_ns);
}

int csink_keeper_listing_add(int directory_fd, const struct csink_persist_event *event)
{
	char path[64];
	FILE *out;
	int fd, err;

	name_file(path, sizeof(path), event->id);
	fd = openat(directory_fd, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	fchmod(fd, event->mode & 0644);
	out = fdopen(fd, "w");
	if (!out) {
		err = -errno;
		close(fd);
	} else {
		describe(out, event);
		err = fclose(out) ? -errno : 0;
	}
	if (err)
		unlinkat(directory_fd, path, 0);
	return err;
}

void csink_keeper_listing_remove(int directory_fd, uint64_t id)
{
	char path[64];

	name_file(path, sizeof(path), id);
	unlinkat(directory_fd, path, 0);
}

void csink_keeper_listing_share(int directory_fd, bool shared)
{
	int err = fchmod(directory_fd, shared ? 0711 : 0700);

	err |= fchmodat(directory_fd, CSINK_PERSIST_EVENTS, shared ? 0755 : 0700, 0);
	err |= fchmodat(directory_fd, CSINK_PERSIST_SOCKET, shared ? 0666 : 0600, 0);
	(void)err; /* The modes decide who can ask; what is answered, the keeper decides by the client's user id. */
}
