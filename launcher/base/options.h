/*
 * Options of the launcher's commands: tables, parsing, and the texts that derive from the tables.
 *
 * A value comes from the command line, else from the environment variable (COUNTERSINK_ and the identifier), else from
 * the default. An empty value in the environment counts as unset. Nothing here prints or exits; texts go into buffers
 * or to the stream that the caller gives.
 */
#ifndef CSINK_OPTIONS_H
#define CSINK_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "include/internal/shared_options.h"

struct csink_option {
	const char *id; /* "NO_REPORT": the long name and the variable derive from it */
	int short_name; /* 0: none */
	const char *arg;
	const char *def;
	unsigned int flags; /* enum csink_opt_flags */
	const char *help;
};

/* The row of a table: used with the X-macros that list options. */
#define CSINK_OPTION_ROW(id, sh, arg, def, flags, help) {#id, sh, arg, def, flags, help},

#define CSINK_MAX_OPTIONS 48

/* A table: `CSINK_OPTION_TABLE(name, LIST);`, where LIST is its X-macro. */
#define CSINK_OPTION_TABLE(name, LIST)                                                                                 \
	const struct csink_option name[] = {LIST(CSINK_OPTION_ROW)};                                                   \
	_Static_assert(sizeof(name) / sizeof(name[0]) <= CSINK_MAX_OPTIONS, "struct csink_options has room "           \
									    "for " #LIST)

/* What every command takes, without an environment variable. */
enum csink_request {
	CSINK_REQUEST_NONE,
	CSINK_REQUEST_HELP,    /* -h, --help */
	CSINK_REQUEST_VERSION, /* -V, --version */
	CSINK_REQUEST_CONFIG,  /* --print-config */
	CSINK_NR_REQUESTS
};

struct csink_request_option {
	const char *name;
	int short_name;
	const char *help;
};
extern const struct csink_request_option csink_request_options[CSINK_NR_REQUESTS]; /* [0] is empty */

enum csink_option_source { CSINK_FROM_DEFAULT, CSINK_FROM_ENVIRONMENT, CSINK_FROM_OPTION };

#define CSINK_OPTION_NAME 32 /* room for a long name, and for a variable's */

struct csink_options {
	const struct csink_option *table;
	uint32_t nr;
	enum csink_request request; /* the first one that was asked for */
	uint32_t last_rank;
	struct csink_option_value {
		const char *text; /* never NULL; points into argv, the environment or the table */
		enum csink_option_source source;
		uint32_t rank; /* from an option: the later it was given, the higher */
	} values[CSINK_MAX_OPTIONS];
	/* On failure: the value that is none of its option's, or NULL, and that option's id; */
	const struct csink_option_value *unknown;
	const char *unknown_id;
	char error[640]; /* one line: what, why, what to do */
};

/** The long name, "no-report", and the variable, "COUNTERSINK_NO_REPORT"; out has room for CSINK_OPTION_NAME. */
void csink_option_name(const struct csink_option *opt, char *out);
void csink_option_variable(const struct csink_option *opt, char *out);

/** Whether it is the option of that id, with a list of values, of which text is one. */
bool csink_option_takes(const struct csink_option *opt, const char *id, const char *text);

/**
 * Parse a command line and the environment.
 * @argv  argv[0] is the command's own name and is skipped. Options end at "--" (skipped) or at the first word that is
 *        not one.
 * Returns the index of the first operand (argc if there is none), or -EINVAL and o->error. Once a request (--help ...)
 * is met, the values of the rest are no longer judged, so that help is never refused.
 */
int csink_options_parse(struct csink_options *o, const struct csink_option *table, uint32_t nr, int argc, char **argv);

/** The same for commands that run no other: options may come behind operands, before which they are moved in argv. */
int csink_options_parse_mixed(struct csink_options *o, const struct csink_option *table, uint32_t nr, int argc,
			      char **argv);

/** Where the value of an option comes from, for messages: "option --events", "COUNTERSINK_EVENTS in the environment".
 */
void csink_options_where(const struct csink_options *o, uint32_t index, char *out, size_t size);

/** The value of the option with that index in the table; a boolean as such; a number as such (0 where it is empty); a
 * time in ns (0 likewise). */
const char *csink_options_text(const struct csink_options *o, uint32_t index);
bool csink_options_bool(const struct csink_options *o, uint32_t index);
uint64_t csink_options_number(const struct csink_options *o, uint32_t index);
/** The value of an option that has CSINK_OPT_BYTES. */
uint64_t csink_options_bytes(const struct csink_options *o, uint32_t index);
uint64_t csink_options_seconds(const struct csink_options *o, uint32_t index);

/** Read a boolean: 1/0, yes/no, true/false, on/off, in any case. Returns 1, 0 or -EINVAL. */
int csink_bool_parse(const char *text);

/** Read a whole number from 1 to 2^63 - 1, digits only. Returns 0 or -EINVAL, -ERANGE. */
int csink_number_parse(const char *text, uint64_t *out);

/** The same of a number of bytes: K, M or G may stand behind it, for 1,024 once, twice, thrice. */
int csink_bytes_parse(const char *text, uint64_t *out);

/** Print text from column at on (blanks up to indent), broken between words at 80; later lines start at indent. */
void csink_print_wrapped(FILE *out, int at, int indent, const char *text);

/** Print the rows of --help for a table, wrapped to 80 columns. */
void csink_options_print_help(FILE *out, const struct csink_option *table, uint32_t nr);

/** Print each value and its source (--print-config), one line each. */
void csink_options_print_config(FILE *out, const struct csink_options *o);

#endif
