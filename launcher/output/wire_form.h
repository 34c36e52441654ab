/*
 * The wire form of a profile: what servers that collect profiles take (Pyroscope, Parca, receivers of OTLP). They read
 * names of sample types and labels as parts of a metric's name and as its labels, each set of labels as a series, and
 * refuse a profile for one name that is none of theirs.
 */
#ifndef CSINK_WIRE_FORM_H
#define CSINK_WIRE_FORM_H

#include <stdbool.h>
#include <stdio.h>

struct csink_profile;

enum csink_wire_otlp { CSINK_WIRE_OTLP_NOW, CSINK_WIRE_OTLP_1_9, CSINK_NR_WIRE_OTLPS };

/* What can be chosen; all zeros are the defaults. */
struct csink_wire_options {
	const char *labels;        /* those that are kept, too, separated by commas; "all"; NULL or "": none */
	enum csink_wire_otlp otlp; /* whose field numbers */
	const char *service;       /* OTLP: service.name; NULL or "": csink_wire_program() */
	const char *resource;      /* OTLP: attributes of the resource, "KEY=VALUE,..."; NULL: none */
};

/**
 * The wire form of a profile, as one of its own (csink_profile_free it): CPU time is cpu/nanoseconds, all names are of
 * [A-Za-z0-9_], strings are UTF-8; process, thread, pid, tid, timestamp, run and pseudo are no labels, and samples that
 * differ in nothing else are added up; no comments; nothing that no sample needs, and nothing twice; the period has a
 * type, and the duration is not 0.
 * Returns 0 or -ENOMEM. Context: thread.
 */
int csink_wire_form(const struct csink_profile *p, const struct csink_wire_options *options,
		    struct csink_profile **out);

/**
 * What a profile's application is called where no other name is given: the command's name, or that of the program's
 * file, without directories, whole; "countersink" where neither is known, or is not UTF-8.
 * Returns it, malloc'ed, or NULL without memory.
 */
char *csink_wire_program(const struct csink_profile *p);

/** Write the wire form as pprof, to a stream with a descriptor. Returns 0, -ENOMEM or -errno of the stream. */
int csink_wire_write(FILE *out, const struct csink_profile *p, const struct csink_wire_options *options);

/**
 * Write the wire form as a request of OTLP's profiles: ExportProfilesServiceRequest, v1development, with one Profile
 * for each sample type. Returns 0, -ENOMEM or -errno of the stream.
 */
int csink_otlp_write(FILE *out, const struct csink_profile *p, const struct csink_wire_options *options);

#endif
