/*
 * A moment in a file (moment.h), for the process that goes on with a run's slices. The file lies in the run's own
 * directory, which no other user may enter, and holds structures as they are in memory: another version of countersink
 * does not read it. Sizes are checked; recordings are parsed again as those of the run are.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/grow.h"
#include "launcher/base/write_all.h"
#include "launcher/collect/collect_impl.h"
#include "launcher/collect/moment.h"
#include "launcher/collect/moment_impl.h"

#define MAGIC 0x31746e656d6f6d63ULL /* "cmoment1" */
#define MAX_PATH_BYTES 4096
#define MAX_STORED (1U << 24) /* of recordings, of threads */

struct stored_moment {
	uint64_t magic;
	uint32_t bytes, image_bytes; /* of this structure, and of struct image: of the same build */
	uint32_t nr, nr_gone;
	uint64_t time_ns, first_ns;
};

struct stored_recording {
	int64_t given_ns;
	uint32_t path_bytes, is_collected;
	uint64_t bytes;
};

/* ---- storing ---- */

/* Blocks that were never used stay holes. */
static int put_sparse(int fd, const char *data, size_t bytes)
{
	static const char none[CSINK_REC_BLOCK];
	int err = 0;

	for (size_t done = 0; done < bytes && !err;) {
		size_t n = CSINK_MIN(bytes - done, sizeof(none));

		if (memcmp(data + done, none, n))
			err = csink_write_all(fd, data + done, n);
		else if (lseek(fd, (off_t)n, SEEK_CUR) < 0)
			err = -errno;
		done += n;
	}
	return err;
}

/* One that was cut short before its header has nothing that a later slice would lack. */
static bool is_whole(const struct csink_moment_recording *one)
{
	return one->copy.bytes >= CSINK_REC_HEADER_BYTES;
}

static int put_recording(int fd, const struct csink_moment *moment, uint32_t index)
{
	const struct csink_moment_recording *one = &moment->at[index];
	struct stored_recording stored = {.given_ns = moment->given_ns ? moment->given_ns[index] : 0,
					  .path_bytes = (uint32_t)strlen(one->path),
					  .is_collected = one->is_collected,
					  .bytes = one->copy.bytes};

	return csink_write_all(fd, &stored, sizeof(stored))
		       ?: csink_write_all(fd, one->path, stored.path_bytes)
				  ?: put_sparse(fd, one->copy.data, stored.bytes);
}

int csink_moment_store(const struct csink_moment *moment, int fd, int64_t from)
{
	struct stored_moment stored = {.magic = MAGIC,
				       .bytes = sizeof(stored),
				       .image_bytes = sizeof(struct image),
				       .nr_gone = moment->nr_gone,
				       .time_ns = moment->time_ns,
				       .first_ns = moment->first_ns};
	int err = lseek(fd, from, SEEK_SET) < 0 ? -errno : 0;

	for (uint32_t i = 0; i < moment->nr; i++)
		stored.nr += is_whole(&moment->at[i]);
	err = err ?: csink_write_all(fd, &stored, sizeof(stored));
	for (uint32_t i = 0; i < moment->nr && !err; i++)
		if (is_whole(&moment->at[i]))
			err = put_recording(fd, moment, i);
	for (uint32_t i = 0; i < moment->nr_gone && !err; i++) {
		const struct image *gone = &moment->gone[i];

		err = csink_write_all(fd, gone, sizeof(*gone))
			      ?: csink_write_all(fd, gone->tids, gone->nr_tids * sizeof(*gone->tids));
	}
	/* A hole at the end counts, too. */
	if (!err && ftruncate(fd, lseek(fd, 0, SEEK_CUR)))
		err = -errno;
	return err;
}

/* ---- loading ---- */

static int get(int fd, off_t *at, void *data, size_t bytes)
{
	for (char *to = data; bytes;) {
		ssize_t n = pread(fd, to, bytes, *at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EBADMSG;
		to += n;
		*at += n;
		bytes -= (size_t)n;
	}
	return 0;
}

static int get_recording(int fd, off_t *at, struct csink_moment *moment)
{
	struct csink_moment_recording one = {0};
	struct stored_recording stored;
	int err = get(fd, at, &stored, sizeof(stored));
	struct stat st;

	if (err || stored.path_bytes >= MAX_PATH_BYTES || stored.bytes > CSINK_REC_MAX_BYTES)
		return err ?: -EBADMSG;
	one.is_collected = stored.is_collected;
	one.path = calloc(1, stored.path_bytes + 1UL);
	err = one.path ? get(fd, at, one.path, stored.path_bytes) : -ENOMEM;
	if (!err && (fstat(fd, &st) || st.st_size - *at < (off_t)stored.bytes))
		err = -EBADMSG;
	err = err ?: csink_recorded_copy_part(fd, *at, stored.bytes, &one.copy);
	*at += (off_t)stored.bytes;
	if (!err && CSINK_APPEND(moment->at, moment->nr, moment->cap, one)) {
		moment->given_ns[moment->nr - 1] = stored.given_ns;
		return 0;
	}
	if (!err)
		csink_recorded_free(&one.copy);
	free(one.path);
	return err ?: -ENOMEM;
}

static int get_gone(int fd, off_t *at, struct csink_moment *moment)
{
	struct image gone;
	int32_t *tids;
	int err = get(fd, at, &gone, sizeof(gone));

	if (err || gone.nr_tids > MAX_STORED)
		return err ?: -EBADMSG;
	gone.path = NULL;
	gone.tids = tids = calloc(gone.nr_tids + 1UL, sizeof(*tids));
	err = tids ? get(fd, at, tids, gone.nr_tids * sizeof(*tids)) : -ENOMEM;
	err = err ?: csink_collect_add_gone(&moment->gone, &moment->nr_gone, &moment->cap_gone, &gone);
	free(tids);
	return err;
}

int csink_moment_load(int fd, int64_t from, struct csink_moment **out)
{
	struct csink_moment *moment = calloc(1, sizeof(*moment));
	struct stored_moment stored;
	off_t at = from;
	int err = moment ? get(fd, &at, &stored, sizeof(stored)) : -ENOMEM;

	if (!err &&
	    (stored.magic != MAGIC || stored.bytes != sizeof(stored) || stored.image_bytes != sizeof(struct image) ||
	     stored.nr > MAX_STORED || stored.nr_gone > MAX_STORED))
		err = -EBADMSG;
	if (!err) {
		moment->time_ns = stored.time_ns;
		moment->first_ns = stored.first_ns;
		moment->given_ns = calloc(stored.nr + 1UL, sizeof(*moment->given_ns));
		err = moment->given_ns ? 0 : -ENOMEM;
	}
	for (uint32_t i = 0; !err && i < stored.nr; i++)
		err = get_recording(fd, &at, moment);
	for (uint32_t i = 0; !err && i < stored.nr_gone; i++)
		err = get_gone(fd, &at, moment);
	if (err)
		csink_moment_free(moment);
	else
		*out = moment;
	return err;
}
