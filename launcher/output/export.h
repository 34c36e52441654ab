/*
 * Profiles in the formats of other programs. Writers are in export_*.c, html.c and pprof_write.c; export and run choose
 * among them, by name or by the ending of a file's name.
 */
#ifndef CSINK_EXPORT_H
#define CSINK_EXPORT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct csink_profile;

enum csink_export_flags {
	CSINK_EXPORT_BINARY = 1 << 0,   /* not for a terminal */
	CSINK_EXPORT_COMPARES = 1 << 1, /* can show what changed since another profile: csink_export_diff() */
	CSINK_EXPORT_WIRE = 1 << 2,     /* a wire form, which csink_export_write_wire() writes with options */
};

/*
 * Each format: name, endings of file names (separated by blanks; one that ends in '*' is how a name begins), writer,
 * flags. The values of export's option --format with their completion, and what run -o takes, derive from here.
 */
#define CSINK_EXPORT_FORMATS(X)                                                                                        \
	X("pprof", ".pb.gz .pprof", csink_export_pprof, CSINK_EXPORT_BINARY)                                           \
	X("wire", ".wire.pb.gz", csink_export_wire, CSINK_EXPORT_BINARY | CSINK_EXPORT_WIRE)                           \
	X("otlp", ".otlp", csink_export_otlp, CSINK_EXPORT_BINARY | CSINK_EXPORT_WIRE)                                 \
	X("folded", ".folded .collapsed", csink_export_folded, 0)                                                      \
	X("html", ".html .htm", csink_export_html, CSINK_EXPORT_COMPARES)                                              \
	X("perf.data", ".data", csink_export_perf, CSINK_EXPORT_BINARY)                                                \
	X("callgrind", "callgrind.out* .callgrind", csink_export_callgrind, 0)                                         \
	X("speedscope", ".speedscope.json", csink_export_speedscope, 0)                                                \
	X("firefox", ".json", csink_export_firefox, 0)

/*
 * A format's writer: writes the whole profile. @type  the sample type, for formats that hold one or show one first.
 * Returns 0, -ENOMEM, or -errno of the stream. Context: thread.
 */
#define X(name, endings, writer, flags) int writer(FILE *out, const struct csink_profile *p, uint32_t type);
CSINK_EXPORT_FORMATS(X)
#undef X

/* All names, as an option's values: "pprof|folded|...". */
#define CSINK_EXPORT_CHOICE(name, endings, writer, flags) "|" name
#define CSINK_EXPORT_CHOICES (&(CSINK_EXPORT_FORMATS(CSINK_EXPORT_CHOICE))[1])

struct csink_export_format {
	const char *name;
	const char *endings;
	int (*write)(FILE *out, const struct csink_profile *p, uint32_t type);
	unsigned int flags; /* enum csink_export_flags */
};

extern const struct csink_export_format csink_export_formats[];
extern const uint32_t csink_nr_export_formats;

/** The format of that name, or NULL. */
const struct csink_export_format *csink_export_format_named(const char *name);

/** The format that a file's name ends in (the longest ending counts), or NULL. */
const struct csink_export_format *csink_export_format_of(const char *path);

/**
 * Where a profile is written, but its name ("x.html") is of another format: the profile is kept beside it. path, of
 * that size, becomes "x.html.pb.gz", and exported, of the same size, what it was. Returns the format to write there,
 * too; NULL, and changes nothing, where the name is a profile's.
 */
const struct csink_export_format *csink_export_beside(char *path, size_t size, char *exported);

/**
 * Write a profile to a file in a format: whole or not at all, as csink_pprof_write, but nothing is kept of an older
 * file.
 * "-" is standard output. Returns 0, -errno or a negative csink_outfile_errno. Context: thread.
 */
int csink_export_write(const struct csink_profile *p, const struct csink_export_format *format, uint32_t type,
		       const char *path);

/** The same for a format of CSINK_EXPORT_WIRE, with its options. */
struct csink_wire_options;
int csink_export_write_wire(const struct csink_profile *p, const struct csink_export_format *format,
			    const struct csink_wire_options *options, const char *path);

/**
 * Write a page that compares two profiles, named by their files. type: the sample type that is shown first, by name.
 * Returns 0, -ENOENT (no type in common) or -errno of the file, which "-" makes standard output.
 */
int csink_export_diff(const char *path, const struct csink_profile *const profiles[2], const char *const files[2],
		      const char *type);

/** Write a page to a file. Returns as csink_html_write(), or as csink_outfile_open(). */
struct csink_html_page;
int csink_export_page(const char *path, struct csink_html_page *page);

/** Write to a file what a function writes. @how  bits of enum csink_outfile_how. Returns what it returns, or as
 * csink_outfile_open(). */
int csink_export_file(const char *path, unsigned int how, int (*write)(FILE *out, void *arg), void *arg);

#endif
