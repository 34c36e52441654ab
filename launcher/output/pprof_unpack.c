/* Gets the bytes of a profile: from a file or a pipe, gzipped or plain, up to a limit. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "include/internal/grow.h"
#include "launcher/base/message.h"
#include "launcher/base/pprof_fields.h"
#include "launcher/base/regular.h"
#include "launcher/output/folded.h"
#include "launcher/output/pprof.h"

/* The largest profile that is read, unpacked. One of a million distinct stacks has a fifth of it. */
#define MAX_BYTES (512UL << 20)
/* What a gzipped one may unpack to: profiles come to thirty times what they have in the file. */
#define MAX_SMALL_BYTES (128UL << 20)
#define MAX_RATIO 100

static int unpack_error(int state, char *why, size_t why_len)
{
	if (state == Z_MEM_ERROR)
		return csink_why(-ENOMEM, why, why_len, "no memory");
	return csink_why(-EBADMSG, why, why_len, "%s gzip stream", state == Z_BUF_ERROR ? "truncated" : "damaged");
}

/* Inflate, member after member as gzip does. *out is malloc'ed. */
static int unpack(const void *buf, size_t len, unsigned char **out, size_t *out_len, char *why, size_t why_len)
{
	size_t max = CSINK_MIN(CSINK_MAX(len * MAX_RATIO, MAX_SMALL_BYTES), MAX_BYTES);
	size_t size = CSINK_MIN(CSINK_MAX(len * 4, 65536), max + 1), used = 0;
	z_stream z = {.next_in = (unsigned char *)buf, .avail_in = len};
	unsigned char *bytes = malloc(size);
	int state = bytes ? inflateInit2(&z, 15 + 16) : Z_MEM_ERROR;

	while (state == Z_OK) {
		if (used == size) {
			size = CSINK_MIN(size * 2, max + 1);
			if (used > max || csink_grow((void **)&bytes, size, 1))
				break;
		}
		z.next_out = bytes + used;
		z.avail_out = size - used;
		state = inflate(&z, Z_NO_FLUSH);
		used = size - z.avail_out;
		if (state == Z_STREAM_END && z.avail_in > 18 && z.next_in[0] == 0x1f && z.next_in[1] == 0x8b)
			state = inflateReset(&z);
	}
	inflateEnd(&z);
	if (state == Z_STREAM_END) {
		*out = bytes;
		*out_len = used;
		return 0;
	}
	free(bytes);
	if (used > max)
		return csink_why(-EBADMSG, why, why_len, "unpacked it is larger than %zu MiB%s", max >> 20,
				 max < MAX_BYTES ? ", far more than a profile of its size" : "");
	return unpack_error(state == Z_OK ? Z_MEM_ERROR : state, why, why_len);
}

/* Unpacked: protobuf, or text. */
static int parse_unpacked(const void *buf, size_t len, struct csink_profile **out, char *why, size_t why_len)
{
	char line[64];
	int err;

	if (!csink_folded_is_text(buf, len))
		return csink_pprof_parse_plain(buf, len, out, why, why_len);
	err = csink_folded_parse(buf, len, out, line, sizeof(line));
	if (err == -EBADMSG)
		snprintf(why, why_len, "not a pprof profile, and as folded stacks %s", line);
	else if (err)
		snprintf(why, why_len, "%s", line);
	return err;
}

int csink_pprof_parse(const void *buf, size_t len, struct csink_profile **out, char *why, size_t why_len)
{
	CSINK_AUTO_FREE unsigned char *plain = NULL;
	const unsigned char *bytes = buf;
	size_t plain_len = 0;
	int err;

	if (why_len)
		*why = 0;
	if (!len || len > MAX_BYTES)
		return csink_why(-EBADMSG, why, why_len, len ? "larger than %lu MiB" : "the file is empty",
				 MAX_BYTES >> 20);
	if (len < 2 || bytes[0] != 0x1f || bytes[1] != 0x8b)
		return parse_unpacked(buf, len, out, why, why_len);
	err = unpack(buf, len, &plain, &plain_len, why, why_len);
	return err ?: parse_unpacked(plain, plain_len, out, why, why_len);
}

/* Pipes have no size: read until the end. *out is to be freed, also on failure. */
static int read_all(int fd, unsigned char **out, size_t *len)
{
	uint32_t size = 0, used = 0;
	unsigned char *bytes = NULL;
	struct stat st;
	ssize_t got = 1;
	int err = !fstat(fd, &st) && S_ISDIR(st.st_mode) ? -EISDIR : 0;

	while (!err && got && used <= MAX_BYTES) {
		if (used == size)
			err = CSINK_GROW_TO(bytes, size, CSINK_MAX(2 * (uint64_t)size, 65536));
		got = err ? 0 : read(fd, bytes + used, size - used);
		if (got < 0 && errno != EINTR)
			err = -errno;
		used += got > 0 ? (uint32_t)got : 0;
	}
	*out = bytes;
	*len = used;
	return err;
}

int csink_pprof_read(const char *path, struct csink_profile **out, char *why, size_t why_len)
{
	CSINK_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	CSINK_AUTO_FREE unsigned char *bytes = NULL;
	size_t len = 0;
	int err = fd < 0 ? -errno : read_all(fd, &bytes, &len);

	if (err)
		return csink_why(err, why, why_len, "%s", csink_regular_why(err));
	return csink_pprof_parse(bytes, len, out, why, why_len);
}
