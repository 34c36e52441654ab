/* See send_request.h. Runs in the one thread of countersink-send. */
#include "launcher/send/send_request.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "include/internal/clock.h"
#include "launcher/base/json.h"
#include "launcher/base/message.h"
#include "launcher/base/outfile.h"
#include "launcher/base/path.h"
#include "launcher/base/regular.h"
#include "launcher/output/pprof.h"
#include "launcher/profile/profile.h"
#include "launcher/send/send_base64.h"
#include "launcher/send/send_parts.h"

#define MAX_BODY_BYTES (64U << 20) /* what receivers of OTLP take; the others take less */

/* ---- parts of addresses ---- */

static bool is_plain(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* Of a text, what stands for itself in any part of a URL stays; every other byte becomes %NN. */
static void put_escaped(FILE *out, const char *text)
{
	for (; *text; text++) {
		if (is_plain(*text) || strchr("-._~", *text))
			putc(*text, out);
		else
			fprintf(out, "%%%02X", (unsigned char)*text);
	}
}

/* malloc'ed, or NULL without memory. */
static char *service_of(const struct csink_send_settings *s, const struct csink_profile *p)
{
	return s->wire.service && *s->wire.service ? strdup(s->wire.service) : csink_wire_program(p);
}

/* NAME{KEY=VALUE,...}: Pyroscope refuses a name that has other characters. */
static char *pyroscope_name(const struct csink_send_settings *s, const struct csink_profile *p)
{
	char *name = service_of(s, p);

	for (char *c = name; c && *c; c++) {
		if (!is_plain(*c) && !strchr("-._/", *c))
			*c = '_';
	}
	return name;
}

static int pyroscope_url(struct csink_send_request *r, const struct csink_send_settings *s,
			 const struct csink_profile *p)
{
	CSINK_AUTO_FREE char *name = pyroscope_name(s, p);
	int64_t from = p->time_ns / (int64_t)CSINK_NS_PER_S ?: time(NULL);
	int64_t seconds = p->duration_ns / (int64_t)CSINK_NS_PER_S + (p->duration_ns % (int64_t)CSINK_NS_PER_S > 0);
	size_t bytes;
	FILE *out = name ? open_memstream(&r->url, &bytes) : NULL;

	if (!out)
		return -ENOMEM;
	fputs(s->url, out);
	fputs(strchr(s->url, '?') ? "&name=" : "?name=", out);
	put_escaped(out, name);
	put_escaped(out, "{");
	put_escaped(out, s->labels);
	put_escaped(out, "}");
	fprintf(out, "&from=%" PRId64 "&until=%" PRId64 "&format=pprof&spyName=countersink", from,
		from + CSINK_MAX(seconds, 1));
	return fclose(out) ? -ENOMEM : 0;
}

/* %t: the time of the start; %h: the host; %n: the file's name. A path that ends in '/' gets the file's name. */
static int put_url(struct csink_send_request *r, const struct csink_send_settings *s, const char *path, int64_t time_ns)
{
	const char *name = s->name ?: csink_base_name(path);
	char host[256] = "localhost", start[32] = "";
	time_t seconds = time_ns ? (time_t)(time_ns / (int64_t)CSINK_NS_PER_S) : time(NULL);
	size_t bytes, path_len = strcspn(s->url, "?");
	FILE *out = open_memstream(&r->url, &bytes);
	struct tm utc;

	if (!out)
		return -ENOMEM;
	if (s->host)
		snprintf(host, sizeof(host), "%s", s->host);
	else
		gethostname(host, sizeof(host) - 1);
	if (gmtime_r(&seconds, &utc))
		strftime(start, sizeof(start), "%Y%m%dT%H%M%SZ", &utc);
	for (const char *c = s->url; *c; c++) {
		if (*c == '%' && c[1] && strchr("thn", c[1])) {
			put_escaped(out, c[1] == 't' ? start : c[1] == 'h' ? host : name);
			c++;
		} else {
			putc(*c, out);
		}
		if (c + 1 == s->url + path_len && *c == '/')
			put_escaped(out, name);
	}
	return fclose(out) ? -ENOMEM : 0;
}

/* ---- bodies ---- */

static int read_fd(int fd, void **bytes, size_t *len)
{
	struct stat st;
	size_t used = 0;
	ssize_t got;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	if (st.st_size > MAX_BODY_BYTES)
		return -E2BIG;
	*bytes = malloc((size_t)st.st_size + 1);
	if (!*bytes)
		return -ENOMEM;
	while (used < (size_t)st.st_size) {
		got = pread(fd, (char *)*bytes + used, (size_t)st.st_size - used, (off_t)used);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got ? -errno : -EIO;
		used += (size_t)got;
	}
	*len = used;
	return 0;
}

/* The writer of pprof needs a descriptor. */
static int wire_body(const struct csink_profile *p, const struct csink_send_settings *s, void **bytes, size_t *len)
{
	int fd = memfd_create("countersink-send", MFD_CLOEXEC), err;
	FILE *out = fd < 0 ? NULL : fdopen(fd, "w+");

	if (!out) {
		err = -errno;
		if (fd >= 0)
			close(fd);
		return err;
	}
	err = csink_wire_write(out, p, &s->wire) ?: read_fd(fd, bytes, len);
	fclose(out);
	return err;
}

static int gzip_body(struct csink_send_request *r)
{
	z_stream z = {0};
	unsigned char *packed;
	size_t bound = compressBound(r->bytes) + 32;
	int state;

	if (deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		return -ENOMEM;
	packed = malloc(bound);
	if (!packed) {
		deflateEnd(&z);
		return -ENOMEM;
	}
	z.next_in = r->body;
	z.avail_in = (uInt)r->bytes;
	z.next_out = packed;
	z.avail_out = (uInt)bound;
	state = deflate(&z, Z_FINISH);
	deflateEnd(&z);
	free(r->body);
	r->body = packed;
	r->bytes = z.total_out;
	r->is_gzipped = true;
	return state == Z_STREAM_END ? 0 : -ENOMEM;
}

static int otlp_body(struct csink_send_request *r, const struct csink_send_settings *s, const struct csink_profile *p)
{
	struct csink_wire_options wire = s->wire;
	char *bytes = NULL;
	FILE *out = open_memstream(&bytes, &r->bytes);
	int err;

	if (!out)
		return -ENOMEM;
	err = csink_otlp_write(out, p, &wire);
	if (fclose(out) && !err)
		err = -ENOMEM;
	r->body = bytes;
	if (!err && r->bytes > MAX_BODY_BYTES)
		err = -E2BIG;
	return err ?: s->is_gzipped ? gzip_body(r) : 0;
}

/* The profile's name is a part of the metric's: that of CPU profiles is what its page knows. */
static int parca_body(struct csink_send_request *r, const struct csink_send_settings *s, const struct csink_profile *p)
{
	CSINK_AUTO_FREE char *service = service_of(s, p);
	CSINK_AUTO_FREE void *packed = NULL;
	size_t len = 0;
	char *text = NULL;
	int err = service ? wire_body(p, s, &packed, &len) : -ENOMEM;
	FILE *out = err ? NULL : open_memstream(&text, &r->bytes);

	if (!out)
		return err ?: -ENOMEM;
	fputs("{\"series\":[{\"labels\":{\"labels\":[{\"name\":\"__name__\",\"value\":\"process_cpu\"},"
	      "{\"name\":\"service_name\",\"value\":",
	      out);
	csink_json_quote(out, service, false);
	fputs("}]},\"samples\":[{\"rawProfile\":\"", out);
	csink_send_base64(out, packed, len);
	fputs("\"}]}]}", out);
	err = fclose(out) ? -ENOMEM : 0;
	r->body = text;
	return err;
}

/* ---- all together ---- */

/* To open a FIFO would wait for a writer, longer than the time allows. */
static bool is_regular(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISREG(st.st_mode);
}

static int file_body(const char *path, void **bytes, size_t *len)
{
	CSINK_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	return fd < 0 ? -errno : read_fd(fd, bytes, len);
}

static int read_profile(const char *path, struct csink_profile **p, char *why, size_t why_bytes)
{
	char reason[CSINK_WHY_BYTES] = "";
	int err = is_regular(path) || access(path, F_OK) ? csink_pprof_read(path, p, reason, sizeof(reason)) : -ENOEXEC;

	return err ? csink_why(err, why, why_bytes, "%s: %.1500s", path, *reason ? reason : csink_regular_why(err)) : 0;
}

int csink_send_check_file(const char *path, char *why, size_t why_bytes)
{
	CSINK_AUTO(csink_profile_done) struct csink_profile *p = NULL;

	return read_profile(path, &p, why, why_bytes);
}

int csink_send_request_make(struct csink_send_request *r, const struct csink_send_settings *s, const char *path,
			    const char *part, char *why, size_t why_bytes)
{
	CSINK_AUTO(csink_profile_done) struct csink_profile *p = NULL;
	int err = read_profile(path, &p, why, why_bytes);

	*r = (struct csink_send_request){.method = "POST", .content_type = "application/octet-stream"};
	if (err)
		return err;
	err = csink_send_part_take(p, part);
	if (err)
		return csink_why(err, why, why_bytes, "%s: %s", path, strerror(-err));
	switch (s->to.kind) {
	case CSINK_SEND_PYROSCOPE:
		err = pyroscope_url(r, s, p) ?: wire_body(p, s, &r->body, &r->bytes);
		break;
	case CSINK_SEND_PARCA:
		r->content_type = "application/json";
		r->url = strdup(s->url);
		err = parca_body(r, s, p);
		break;
	case CSINK_SEND_OTLP:
		r->content_type = "application/x-protobuf";
		r->url = strdup(s->url);
		err = otlp_body(r, s, p);
		break;
	default:
		r->method = "PUT";
		err = put_url(r, s, path, p->time_ns) ?: file_body(path, &r->body, &r->bytes);
	}
	if (!err && !r->url)
		err = -ENOMEM;
	if (err == -E2BIG)
		return csink_why(err, why, why_bytes, "%s: it is larger than %u MiB, which no server takes", path,
				 MAX_BODY_BYTES >> 20);
	return err ? csink_why(err, why, why_bytes, "%s: %s", path, csink_outfile_error(-err)) : 0;
}

void csink_send_request_free(struct csink_send_request *r)
{
	free(r->url);
	free(r->body);
}
