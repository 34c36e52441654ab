/* The table of formats, and how a file comes to be: see export.h. */
#include "launcher/output/export.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "launcher/base/outfile.h"
#include "launcher/base/path.h"
#include "launcher/output/html.h"
#include "launcher/output/pprof.h"
#include "launcher/output/wire_form.h"
#include "launcher/profile/profile.h"

#define X(name, endings, writer, flags) {name, endings, writer, flags},
const struct csink_export_format csink_export_formats[] = {CSINK_EXPORT_FORMATS(X)};
#undef X
const uint32_t csink_nr_export_formats = CSINK_ARRAY_SIZE(csink_export_formats);

const struct csink_export_format *csink_export_format_named(const char *name)
{
	for (uint32_t i = 0; i < csink_nr_export_formats; i++) {
		if (!strcmp(csink_export_formats[i].name, name))
			return &csink_export_formats[i];
	}
	return NULL;
}

/* The length of the longest ending that a file's name has; 0: none. */
static size_t match(const char *file, const char *endings)
{
	size_t len, file_len = strlen(file), best = 0;

	for (; *endings; endings += len + (endings[len] == ' ')) {
		bool matches;

		len = strcspn(endings, " ");
		if (endings[len - 1] == '*')
			matches = !strncmp(file, endings, len - 1);
		else
			matches = file_len > len && !strncmp(file + file_len - len, endings, len);
		if (matches)
			best = CSINK_MAX(best, len);
	}
	return best;
}

const struct csink_export_format *csink_export_format_of(const char *path)
{
	const struct csink_export_format *found = NULL;
	size_t best = 0, len;

	for (uint32_t i = 0; i < csink_nr_export_formats; i++) {
		len = match(csink_base_name(path), csink_export_formats[i].endings);
		if (len > best) {
			best = len;
			found = &csink_export_formats[i];
		}
	}
	return found;
}

const struct csink_export_format *csink_export_beside(char *path, size_t size, char *exported)
{
	const struct csink_export_format *format = csink_export_format_of(path);
	size_t len = strlen(path);

	if (!format || format->write == csink_export_pprof || len + sizeof(".pb.gz") > size)
		return NULL;
	memcpy(exported, path, len + 1);
	strcpy(path + len, ".pb.gz");
	return format;
}

/* ---- files ---- */

/* Takes the descriptor. errno still has the error of a failed write, since nothing else sets it while writing. */
static int write_and_close(int fd, int (*write)(FILE *out, void *arg), void *arg)
{
	FILE *f = fdopen(fd, "w");
	int err;

	if (!f) {
		err = errno == EINVAL ? -EBADF : -errno; /* not open for writing: main() has put that there */
		close(fd);
		return err;
	}
	errno = 0;
	err = write(f, arg);
	if (!err && (fflush(f) || ferror(f)))
		err = errno ? -errno : -EIO;
	errno = 0;
	if (fclose(f) && !err)
		err = errno ? -errno : -EIO;
	return err;
}

int csink_export_file(const char *path, unsigned int how, int (*write)(FILE *out, void *arg), void *arg)
{
	struct csink_outfile file;
	int fd, err = csink_outfile_open(&file, strcmp(path, "-") ? path : "/dev/stdout", how);

	if (err)
		return err;
	fd = fcntl(file.fd, F_DUPFD_CLOEXEC, 0);
	return csink_outfile_close(&file, fd < 0 ? -errno : write_and_close(fd, write, arg));
}

struct writing {
	const struct csink_profile *p;
	const struct csink_export_format *format;
	uint32_t type;
	const struct csink_wire_options *options; /* of a wire form, which is asked for with options; or NULL */
};

static int write_profile(FILE *out, void *arg)
{
	const struct writing *w = arg;

	if (!w->options)
		return w->format->write(out, w->p, w->type);
	return (w->format->write == csink_export_otlp ? csink_otlp_write : csink_wire_write)(out, w->p, w->options);
}

int csink_export_write(const struct csink_profile *p, const struct csink_export_format *format, uint32_t type,
		       const char *path)
{
	struct writing w = {p, format, type, NULL};

	return csink_export_file(path, 0, write_profile, &w);
}

int csink_export_write_wire(const struct csink_profile *p, const struct csink_export_format *format,
			    const struct csink_wire_options *options, const char *path)
{
	struct writing w = {p, format, p->default_type, options};

	return csink_export_file(path, 0, write_profile, &w);
}

int csink_export_pprof(FILE *out, const struct csink_profile *p, uint32_t type)
{
	(void)type; /* it has them all */
	return fflush(out) ? -errno : csink_pprof_write_fd(p, fileno(out));
}

int csink_export_html(FILE *out, const struct csink_profile *p, uint32_t type)
{
	struct csink_html_page page = {.sides = {{p, "", 0}}, .nr_sides = 1};

	if (type < p->nr_types)
		page.type = csink_profile_text(p, p->types[type].name);
	return csink_html_write(out, &page);
}

/* ---- comparisons ---- */

static int write_page(FILE *out, void *page)
{
	return csink_html_write(out, page);
}

int csink_export_page(const char *path, struct csink_html_page *page)
{
	return csink_export_file(path, 0, write_page, page);
}

int csink_export_diff(const char *path, const struct csink_profile *const profiles[2], const char *const files[2],
		      const char *type)
{
	struct csink_html_page page = {.nr_sides = 2, .type = type};
	bool same = !strcmp(csink_base_name(files[0]), csink_base_name(files[1]));

	/* Without the directories, if the names are still different. */
	for (int i = 0; i < 2; i++)
		page.sides[i] = (struct csink_html_side){profiles[i], same ? files[i] : csink_base_name(files[i]), 0};
	return csink_export_page(path, &page);
}
