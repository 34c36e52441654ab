/* What the keeper keeps: see keeper.h. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "include/internal/clock.h"
#include "include/internal/grow.h"
#include "launcher/base/search.h"
#include "launcher/commands/persist/keeper.h"

uint32_t csink_keeper_place(const struct csink_keeper_events *events, uint64_t id)
{
	return CSINK_LOWER(events->nr, i, events->kept[i].event.id < id);
}

struct csink_kept *csink_keeper_find_member(struct csink_keeper_events *events, uint64_t id)
{
	struct csink_kept *kept = csink_keeper_find(events, id);
	uint64_t got;

	for (uint32_t i = 0; i < events->nr && !kept; i++)
		for (uint32_t k = 1; k < events->kept[i].members.nr && !kept; k++)
			if (!csink_persist_id(events->kept[i].members.at[k].fd, &got) && got == id)
				kept = &events->kept[i];
	return kept;
}

struct csink_kept *csink_keeper_find(struct csink_keeper_events *events, uint64_t id)
{
	uint32_t at = csink_keeper_place(events, id);

	return at < events->nr && events->kept[at].event.id == id ? &events->kept[at] : NULL;
}

static int read_member(int fd, uint64_t format, struct csink_persist_value *sum)
{
	static uint64_t words[16 * 1024 / sizeof(uint64_t)]; /* the kernel refuses larger groups */
	bool group = format & PERF_FORMAT_GROUP;
	ssize_t got = read(fd, words, sizeof(words));
	size_t each, want, at = 0;

	if (!got)
		return -ENODATA;
	each = 1 + !!(format & PERF_FORMAT_ID) + !!(format & PERF_FORMAT_LOST);
	want = each * (group && got > 0 ? words[0] : 1) + group + !!(format & PERF_FORMAT_TOTAL_TIME_ENABLED) +
	       !!(format & PERF_FORMAT_TOTAL_TIME_RUNNING);
	if (got < 0 || (size_t)got != want * sizeof(words[0]))
		return -EINVAL;
	if (group)
		at = 1;
	else
		sum->value += words[at++];
	if (format & PERF_FORMAT_TOTAL_TIME_ENABLED)
		sum->enabled_ns += words[at++];
	if (format & PERF_FORMAT_TOTAL_TIME_RUNNING)
		sum->running_ns += words[at++];
	if (group) /* an event's own comes first */
		sum->value += words[at];
	return 0;
}

int csink_keeper_read(const struct csink_kept *kept, struct csink_persist_value *value)
{
	int err = 0;

	memset(value, 0, sizeof(*value));
	for (uint32_t i = 0; i < kept->members.nr && err != -EINVAL; i++) {
		int got = read_member(kept->members.at[i].fd, kept->event.attr.read_format, value);

		err = got ? got : err;
	}
	/* An event of a task on one CPU is enabled while the task runs on another. */
	value->enabled_ns /= kept->nr_cpus;
	return err;
}

static uint32_t count_cpus(const struct csink_kept_members *members)
{
	uint32_t nr = 0, first = 0;

	/* Events of a task stand together, one for each CPU: each is found among the first ones. */
	for (uint32_t i = 0; i < members->nr; i++) {
		for (first = 0; members->at[first].cpu != members->at[i].cpu; first++)
			;
		nr += first == i;
	}
	return nr;
}

bool csink_keeper_may_read(const struct csink_kept *kept, uid_t uid, gid_t gid)
{
	if (uid == 0 || uid == kept->event.uid)
		return true;
	return kept->event.mode & 04 || (kept->event.mode & 040 && gid == getegid());
}

/* Check the description of the event, as far as possible. */
static int check(struct csink_kept *kept)
{
	const struct csink_persist_event *event = &kept->event;
	struct csink_persist_value value;
	uint64_t id;
	int err = csink_persist_id(kept->members.at[0].fd, &id);

	if (err || id != event->id)
		return -EINVAL;
	if (event->mode & ~0666U || event->pid < -1 || event->cpu < -1 ||
	    !memchr(event->name, '\0', sizeof(event->name)))
		return -EINVAL;
	return csink_keeper_read(kept, &value) == -EINVAL ? -EINVAL : 0;
}

static int map_ring(struct csink_kept_member *member, bool backward)
{
	/* Backward, the kernel keeps the latest records only if the ring is mapped without PROT_WRITE. */
	int prot = backward ? PROT_READ : PROT_READ | PROT_WRITE;
	void *ring;

	if (!member->pages)
		return 0;
	if (member->pages > SIZE_MAX / 2 / (size_t)sysconf(_SC_PAGESIZE))
		return -EINVAL;
	member->ring_bytes = ((size_t)member->pages + 1) * (size_t)sysconf(_SC_PAGESIZE);
	ring = mmap(NULL, member->ring_bytes, prot, MAP_SHARED, member->fd, 0);
	if (ring == MAP_FAILED)
		return errno == EPERM ? -ENOBUFS : -errno;
	member->ring = ring;
	return 0;
}

static int map_rings(struct csink_kept *kept)
{
	int err = 0;

	for (uint32_t i = 0; i < kept->members.nr && !err; i++)
		err = map_ring(&kept->members.at[i], kept->event.attr.write_backward);
	return err;
}

static void share(struct csink_keeper_events *events)
{
	uint32_t shared = 0;

	for (uint32_t i = 0; i < events->nr; i++)
		shared |= events->kept[i].event.mode & 066;
	csink_keeper_listing_share(events->directory_fd, shared);
}

void csink_kept_members_free(struct csink_keeper_events *events, struct csink_kept_members *members)
{
	for (uint32_t i = 0; i < members->nr; i++) {
		if (members->at[i].ring)
			munmap(members->at[i].ring, members->at[i].ring_bytes);
		close(members->at[i].fd);
	}
	events->nr_fds -= members->nr;
	free(members->at);
	memset(members, 0, sizeof(*members));
}

static int grow_members(struct csink_keeper_events *events, struct csink_kept_members *members)
{
	if (events->nr_fds >= events->limit)
		return -EMFILE;
	return CSINK_GROW_UNCAPPED(members->at, members->nr);
}

int csink_keeper_add(struct csink_keeper_events *events, struct csink_kept_members *members, int fd,
		     const struct csink_persist_event *event)
{
	uint64_t id;
	int err = csink_persist_id(fd, &id);

	if (!err && (event->cpu < -1 || event->pages & (event->pages - 1)))
		err = -EINVAL;
	if (!err)
		err = grow_members(events, members);
	if (err) {
		close(fd);
		return err;
	}
	members->at[members->nr++] = (struct csink_kept_member){.fd = fd, .cpu = event->cpu, .pages = event->pages};
	events->nr_fds++;
	return 0;
}

int csink_keeper_take(struct csink_keeper_events *events, struct csink_kept_members *members,
		      struct csink_persist_event *event)
{
	struct csink_kept kept = {.event = *event, .members = *members};
	uint32_t at;
	int err;

	kept.event.since_ns = (int64_t)csink_clock_ns(CLOCK_REALTIME);
	kept.event.uid = events->uid;
	kept.event.mode |= 0600;
	kept.event.nr_members = members->nr;
	kept.nr_cpus = count_cpus(members);
	memset(members, 0, sizeof(*members));
	err = check(&kept);
	if (!err && csink_keeper_find(events, event->id))
		err = -EEXIST;
	if (!err)
		err = CSINK_GROW(events->kept, events->nr, events->room);
	if (!err)
		err = map_rings(&kept);
	if (!err)
		err = csink_keeper_listing_add(events->directory_fd, &kept.event);
	if (err) {
		csink_kept_members_free(events, &kept.members);
		return err;
	}
	at = csink_keeper_place(events, event->id);
	memmove(&events->kept[at + 1], &events->kept[at], (events->nr - at) * sizeof(kept));
	events->kept[at] = kept;
	events->nr++;
	*event = kept.event;
	share(events);
	return 0;
}

void csink_keeper_drop(struct csink_keeper_events *events, struct csink_kept *kept)
{
	uint32_t at = (uint32_t)(kept - events->kept);

	csink_keeper_listing_remove(events->directory_fd, kept->event.id);
	csink_kept_members_free(events, &kept->members);
	memmove(kept, kept + 1, (events->nr - at - 1) * sizeof(*kept));
	events->nr--;
	share(events);
}
