/* What the keeper keeps: see keeper.h. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "launcher/persist/keeper.h"

uint32_t csink_keeper_place(const struct csink_keeper_events *events, uint64_t id)
{
	uint32_t low = 0, high = events->nr;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (events->kept[middle].event.id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct csink_kept *csink_keeper_find(struct csink_keeper_events *events, uint64_t id)
{
	uint32_t at = csink_keeper_place(events, id);

	return at < events->nr && events->kept[at].event.id == id ? &events->kept[at] : NULL;
}

int csink_keeper_read(const struct csink_kept *kept, struct csink_persist_value *value)
{
	static uint64_t words[16 * 1024 / sizeof(uint64_t)]; /* the kernel refuses larger groups */
	uint64_t format = kept->event.attr.read_format;
	bool group = format & PERF_FORMAT_GROUP;
	ssize_t got = read(kept->fd, words, sizeof(words));
	size_t each, want, at = 0;

	memset(value, 0, sizeof(*value));
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
		value->value = words[at++];
	if (format & PERF_FORMAT_TOTAL_TIME_ENABLED)
		value->enabled_ns = words[at++];
	if (format & PERF_FORMAT_TOTAL_TIME_RUNNING)
		value->running_ns = words[at++];
	if (group) /* an event's own comes first */
		value->value = words[at];
	return 0;
}

bool csink_keeper_lets_read(const struct csink_kept *kept, uid_t uid, gid_t gid)
{
	if (uid == 0 || uid == kept->event.uid)
		return true;
	return kept->event.mode & 04 || (kept->event.mode & 040 && gid == getegid());
}

/* What was said of the event must be so, as far as can be seen. */
static int check(struct csink_kept *kept)
{
	const struct csink_persist_event *event = &kept->event;
	struct csink_persist_value value;
	uint64_t id;
	int err = csink_persist_id(kept->fd, &id);

	if (err || id != event->id)
		return -EINVAL;
	if (event->mode & ~0666U || event->pages & (event->pages - 1) || event->pid < -1 || event->cpu < -1 ||
	    !memchr(event->name, '\0', sizeof(event->name)))
		return -EINVAL;
	return csink_keeper_read(kept, &value) == -EINVAL ? -EINVAL : 0;
}

static int map_ring(struct csink_kept *kept)
{
	/* Backward, the latest records stay only where nobody promises to read them. */
	int prot = kept->event.attr.write_backward ? PROT_READ : PROT_READ | PROT_WRITE;
	void *ring;

	if (!kept->event.pages)
		return 0;
	if (kept->event.pages > SIZE_MAX / 2 / (size_t)sysconf(_SC_PAGESIZE))
		return -EINVAL;
	kept->ring_bytes = ((size_t)kept->event.pages + 1) * (size_t)sysconf(_SC_PAGESIZE);
	ring = mmap(NULL, kept->ring_bytes, prot, MAP_SHARED, kept->fd, 0);
	if (ring == MAP_FAILED)
		return errno == EPERM ? -ENOBUFS : -errno;
	kept->ring = ring;
	return 0;
}

static int make_room(struct csink_keeper_events *events)
{
	uint32_t room = events->room ? 2 * events->room : 64;
	struct csink_kept *more;

	if (events->nr >= events->limit)
		return -EMFILE;
	if (events->nr < events->room)
		return 0;
	more = realloc(events->kept, room * sizeof(*more));
	if (!more)
		return -ENOMEM;
	events->kept = more;
	events->room = room;
	return 0;
}

static void share(struct csink_keeper_events *events)
{
	uint32_t shared = 0;

	for (uint32_t i = 0; i < events->nr; i++)
		shared |= events->kept[i].event.mode & 066;
	csink_keeper_listing_share(events->folder_fd, shared);
}

static void close_kept(struct csink_kept *kept)
{
	if (kept->ring)
		munmap(kept->ring, kept->ring_bytes);
	close(kept->fd);
}

int csink_keeper_take(struct csink_keeper_events *events, int fd, struct csink_persist_event *event)
{
	struct csink_kept kept = {.event = *event, .fd = fd};
	struct timespec now;
	uint32_t at;
	int err;

	clock_gettime(CLOCK_REALTIME, &now);
	kept.event.since_ns = (int64_t)now.tv_sec * (int64_t)CSINK_NS_PER_S + now.tv_nsec;
	kept.event.uid = events->uid;
	kept.event.mode |= 0600;
	err = check(&kept);
	if (!err && csink_keeper_find(events, event->id))
		err = -EEXIST;
	if (!err)
		err = make_room(events);
	if (!err)
		err = map_ring(&kept);
	if (!err)
		err = csink_keeper_listing_add(events->folder_fd, &kept.event);
	if (err) {
		close_kept(&kept);
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

	csink_keeper_listing_remove(events->folder_fd, kept->event.id);
	close_kept(kept);
	memmove(kept, kept + 1, (events->nr - at - 1) * sizeof(*kept));
	events->nr--;
	share(events);
}
