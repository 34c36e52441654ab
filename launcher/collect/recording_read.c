/*
 * The recording's reader (recording_read.h): from the file to its bytes. Written by the injected library, possibly
 * still being written, possibly by an enemy: the file is copied into memory of ours first, so that nothing can change
 * between a check and a use, and no process can shorten it under a mapping.
 */
#include "launcher/collect/recording_read.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "launcher/base/message.h"
#include "launcher/base/regular.h"
#include "launcher/collect/recording_cut.h"
#include "launcher/collect/recording_impl.h"

static int check_header(const void *data, size_t len, struct csink_rec_header *header, char *why, size_t why_len)
{
	if (len < sizeof(*header))
		return csink_why(-EBADMSG, why, why_len, "too short for a recording (%zu bytes)", len);
	memcpy(header, data, sizeof(*header));
	if (header->magic != CSINK_REC_MAGIC)
		return csink_why(-EBADMSG, why, why_len, "not a recording");
	if (header->version != CSINK_REC_VERSION)
		return csink_why(-EPROTO, why, why_len, "a recording of version %u, this program reads version %u",
				 header->version, CSINK_REC_VERSION);
	if (header->header_bytes != CSINK_REC_HEADER_BYTES || header->nr_events > CSINK_MAX_EVENTS)
		return csink_why(-EBADMSG, why, why_len, "a recording with a damaged header");
	for (uint32_t i = 0; i < CSINK_MAX_EVENTS; i++) {
		header->events[i].name[sizeof(header->events[i].name) - 1] = 0;
		header->events[i].unit[sizeof(header->events[i].unit) - 1] = 0;
	}
	header->engine_reason[sizeof(header->engine_reason) - 1] = 0;
	header->unwind_reason[sizeof(header->unwind_reason) - 1] = 0;
	header->comm[sizeof(header->comm) - 1] = 0;
	header->exe[sizeof(header->exe) - 1] = 0;
	header->cmdline[sizeof(header->cmdline) - 1] = 0;
	for (uint32_t i = 0; i < CSINK_NR_RANK_VARIABLES; i++)
		header->rank_values[i][CSINK_RANK_VALUE_BYTES - 1] = 0;
	if (header->engine > CSINK_ENGINE_OUTSIDE)
		header->engine = CSINK_ENGINE_NONE;
	if (header->unwind >= CSINK_NR_UNWINDS)
		header->unwind = CSINK_UNWIND_NONE;
	return 0;
}

/* How much of a file of that size is in use. */
static size_t used_bytes(const struct csink_rec_header *header, size_t file_bytes)
{
	size_t used = (size_t)header->nr_blocks * CSINK_REC_BLOCK;

	return CSINK_MIN(CSINK_MIN(used, file_bytes), CSINK_REC_MAX_BYTES) & ~(size_t)7;
}

/* rec->data, bytes and header are set. */
static int parse(struct csink_recorded *rec, size_t file_bytes)
{
	int err;

	rec->is_cut = (uint64_t)rec->header.nr_blocks * CSINK_REC_BLOCK > file_bytes;
	if (rec->bytes < CSINK_REC_HEADER_BYTES)
		return 0; /* nothing was recorded before it was cut: the header has the process and the time */
	err = csink_recorded_walk(rec);
	if (!err)
		csink_recorded_resolve(rec);
	return err;
}

void csink_recorded_free(struct csink_recorded *rec)
{
	free(rec->modules);
	free(rec->threads);
	free(rec->nodes);
	free(rec->rows);
	free(rec->weights);
	free(rec->former_ns);
	free(rec->notes);
	free(rec->spawns);
	free(rec->phases);
	free(rec->codes);
	free(rec->images);
	free(rec->waits);
	free(rec->timelines);
	free(rec->filled);
	if (rec->data)
		munmap(rec->data, rec->bytes);
	memset(rec, 0, sizeof(*rec));
}

/* Zeroes: holes of a sparse file, and what it promises but does not have, cost nothing until they are touched. */
static int allocate(struct csink_recorded *rec, size_t bytes)
{
	void *data = mmap(NULL, CSINK_MAX(bytes, 1), PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (data == MAP_FAILED)
		return -ENOMEM;
	rec->data = data;
	rec->bytes = CSINK_MAX(bytes, 1);
	return 0;
}

static int parse_or_free(struct csink_recorded *rec, size_t file_bytes, char *why, size_t why_len)
{
	int err = parse(rec, file_bytes);

	if (err) {
		csink_recorded_free(rec);
		return csink_why(err, why, why_len, "no memory");
	}
	return 0;
}

/* The blocks that have data, and which they are. */
static int copy_filled(const struct csink_recorded *from, struct csink_recorded *rec)
{
	size_t words = rec->bytes / CSINK_REC_BLOCK / 64 + 1;

	rec->filled = malloc(words * sizeof(*rec->filled));
	if (!rec->filled)
		return -ENOMEM;
	memcpy(rec->filled, from->filled, words * sizeof(*rec->filled));
	for (size_t at = 0; at < rec->bytes; at += CSINK_REC_BLOCK)
		if (!csink_recorded_is_hole(rec, at))
			memcpy((char *)rec->data + at, (const char *)from->data + at,
			       CSINK_MIN(rec->bytes - at, (size_t)CSINK_REC_BLOCK));
	return 0;
}

int csink_recorded_parse_copy(const struct csink_recorded *copy, struct csink_recorded *rec, char *why, size_t why_len)
{
	int err;

	memset(rec, 0, sizeof(*rec));
	err = check_header(copy->data, copy->bytes, &rec->header, why, why_len);
	if (err)
		return err;
	if (allocate(rec, used_bytes(&rec->header, copy->bytes)))
		return csink_why(-ENOMEM, why, why_len, "no memory");
	if (!copy->filled) {
		memcpy(rec->data, copy->data, rec->bytes);
	} else if (copy_filled(copy, rec)) {
		csink_recorded_free(rec);
		return csink_why(-ENOMEM, why, why_len, "no memory");
	}
	return parse_or_free(rec, copy->bytes, why, why_len);
}

int csink_recorded_parse(const void *buf, size_t len, struct csink_recorded *rec, char *why, size_t why_len)
{
	const struct csink_recorded copy = {.data = (void *)(uintptr_t)buf, .bytes = len};

	return csink_recorded_parse_copy(&copy, rec, why, why_len);
}

/* What lies in a file between two offsets. */
struct part {
	int fd;
	off_t at, bytes;
};

static void mark_filled(struct csink_recorded *rec, off_t from, off_t bytes)
{
	for (off_t block = from / CSINK_REC_BLOCK; block * CSINK_REC_BLOCK < from + bytes; block++)
		rec->filled[block / 64] |= 1ULL << block % 64;
}

/* Copy what a part has of @rec->bytes, leaving holes out. Stops quietly where the file ends. */
static int read_data(const struct part *part, struct csink_recorded *rec)
{
	char *to = rec->data;
	off_t hole, at = part->at, end = part->at + (off_t)rec->bytes;
	int fd = part->fd;
	ssize_t got;

	while (at < end) {
		at = lseek(fd, at, SEEK_DATA);
		if (at < 0)
			return errno == ENXIO ? 0 : -errno;
		hole = lseek(fd, at, SEEK_HOLE);
		if (hole < 0)
			return errno == ENXIO ? 0 : -errno;
		for (hole = CSINK_MIN(hole, end); at < hole; at += got) {
			got = pread(fd, to + (at - part->at), (size_t)(hole - at), at);
			if (got < 0 && errno != EINTR)
				return -errno;
			if (!got)
				return 0;
			got = CSINK_MAX(got, 0);
			mark_filled(rec, at - part->at, got);
		}
	}
	return 0;
}

static int open_recording(const char *path, char *why, size_t why_len)
{
	int fd = csink_regular_open(path, O_NOFOLLOW, CSINK_REGULAR_ANY);

	return fd < 0 ? csink_why(fd == -ENOEXEC ? -EBADMSG : fd, why, why_len, "%s", csink_regular_why(fd)) : fd;
}

static int read_header(const struct part *part, struct csink_rec_header *header, char *why, size_t why_len)
{
	struct csink_rec_header raw;
	ssize_t got = pread(part->fd, &raw, sizeof(raw), part->at);

	if (got < 0)
		return csink_why(-errno, why, why_len, "%s", strerror(errno));
	return check_header(&raw, got, header, why, why_len);
}

int csink_recorded_read_header(const char *path, struct csink_rec_header *header, char *why, size_t why_len)
{
	CSINK_AUTO_CLOSE int fd = open_recording(path, why, why_len);

	return fd < 0 ? fd : read_header(&(struct part){.fd = fd}, header, why, why_len);
}

static int copy_part(const struct part *part, struct csink_recorded *rec, char *why, size_t why_len)
{
	int err = read_header(part, &rec->header, why, why_len);

	if (err)
		return err;
	if (allocate(rec, used_bytes(&rec->header, (size_t)part->bytes)))
		return csink_why(-ENOMEM, why, why_len, "no memory");
	rec->filled = calloc(rec->bytes / CSINK_REC_BLOCK / 64 + 1, sizeof(*rec->filled));
	err = rec->filled ? read_data(part, rec) : -ENOMEM;
	if (err) {
		csink_recorded_free(rec);
		return csink_why(err, why, why_len, "%s", strerror(-err));
	}
	return 0;
}

int csink_recorded_copy_part(int fd, int64_t at, uint64_t bytes, struct csink_recorded *rec)
{
	const struct part part = {fd, (off_t)at, (off_t)bytes};

	memset(rec, 0, sizeof(*rec));
	return copy_part(&part, rec, NULL, 0);
}

static int read_part(const struct part *part, struct csink_recorded *rec, char *why, size_t why_len)
{
	int err = copy_part(part, rec, why, why_len);

	return err ? err : parse_or_free(rec, (size_t)part->bytes, why, why_len);
}

/* Is there a cut, and all of it? */
static bool has_cut(const struct csink_rec_cut *cut, off_t file_bytes)
{
	return cut->bytes && cut->at <= (uint64_t)file_bytes && cut->bytes <= (uint64_t)file_bytes - cut->at;
}

static int copy_recording(const char *path, bool at_cut, struct csink_recorded *rec, char *why, size_t why_len)
{
	CSINK_AUTO_CLOSE int fd = open_recording(path, why, why_len);
	struct part whole = {.fd = fd}, collected;
	struct csink_rec_header now;
	struct stat st;
	int err;

	memset(rec, 0, sizeof(*rec));
	if (fd < 0)
		return fd;
	if (fstat(fd, &st))
		return csink_why(-errno, why, why_len, "%s", strerror(errno));
	whole.bytes = st.st_size;
	err = at_cut ? read_header(&whole, &now, why, why_len) : 0;
	if (err)
		return err;
	at_cut = at_cut && now.collected == CSINK_REC_COLLECTED && !now.cut.is_continued &&
		 has_cut(&now.cut, st.st_size);
	if (at_cut)
		collected = (struct part){fd, (off_t)now.cut.at, (off_t)now.cut.bytes};
	err = copy_part(at_cut ? &collected : &whole, rec, why, why_len);
	/* Its writer may have gone on since the header was read, by which the copy was made. */
	if (!err)
		memcpy(rec->data, &rec->header, CSINK_MIN(sizeof(rec->header), rec->bytes));
	return err ? err : at_cut;
}

int csink_recorded_copy(const char *path, struct csink_recorded *rec, char *why, size_t why_len)
{
	return copy_recording(path, false, rec, why, why_len);
}

int csink_recorded_copy_collected(const char *path, struct csink_recorded *rec, char *why, size_t why_len)
{
	return copy_recording(path, true, rec, why, why_len);
}

/* Read a recording with a cut as it was at the cut; the copy that the writer made at its end, without what was in the
 * recording at the cut. */
static int read_fd(int fd, struct csink_recorded *rec, char *why, size_t why_len)
{
	struct part whole = {.fd = fd}, collected;
	struct csink_recorded before;
	struct csink_rec_cut cut;
	struct stat st;
	int err;

	if (fstat(fd, &st))
		return csink_why(-errno, why, why_len, "%s", strerror(errno));
	whole.bytes = st.st_size;
	err = read_header(&whole, &rec->header, why, why_len);
	cut = rec->header.cut;
	if (err || !has_cut(&cut, st.st_size) || (rec->header.collected != CSINK_REC_COLLECTED && !cut.is_continued))
		return err ? err : read_part(&whole, rec, why, why_len);
	collected = (struct part){fd, (off_t)cut.at, (off_t)cut.bytes};
	if (!cut.is_continued) {
		err = read_part(&collected, rec, why, why_len);
		/* What no sample has yet will be in one that follows, in the process's own profile. After an exec none
		 * follows. */
		if (!err && rec->header.state == CSINK_REC_LIVE)
			rec->header.cpu_end_ns = rec->header.cpu_start_ns;
		return err;
	}
	whole.bytes = CSINK_MIN(whole.bytes, collected.at);
	memset(&before, 0, sizeof(before));
	err = read_part(&collected, &before, why, why_len);
	if (err)
		return err;
	err = read_part(&whole, rec, why, why_len);
	if (!err)
		csink_recorded_subtract(rec, &before, cut.time_ns);
	csink_recorded_free(&before);
	return err;
}

int csink_recorded_read(const char *path, struct csink_recorded *rec, char *why, size_t why_len)
{
	CSINK_AUTO_CLOSE int fd = open_recording(path, why, why_len);

	memset(rec, 0, sizeof(*rec));
	return fd < 0 ? fd : read_fd(fd, rec, why, why_len);
}
