/*
 * The result of a gate for printing: what was compared, how, and the verdicts. cmd_gate.c fills it in; gate_tap.c,
 * gate_json.c and their like write it, each in a format of its own, with the words of gate_words.c.
 */
#ifndef CSINK_GATE_RESULT_H
#define CSINK_GATE_RESULT_H

#include <stdio.h>

#include "launcher/gate/gate.h"
#include "launcher/gate/pin.h"

struct csink_gate_result {
	const char *commands[CSINK_GATE_NR_SIDES]; /* as lines for people */
	const char *how;                           /* "vs", "baseline", "self-check" */
	const struct csink_gate_data *data;
	const struct csink_gate_rules *rules;
	const struct csink_gate_verdicts *verdicts;
	char *const *notes;
	uint32_t nr_notes;
	char event[128]; /* that samples, with its unit */
	char unit[32];
	const char *engine; /* "" unknown */
	double seconds;     /* that all runs took */
	uint32_t warmup;
	struct csink_gate_pin pin; /* what was done */
	const char *page_link;     /* where the differential flame graph will be found; "" unknown */
	const char *error;         /* there are no verdicts; NULL: there are */
};

/* ---- gate_words.c ---- */

/* Appended to the rules with --fold-native. */
#define CSINK_GATE_FOLDED ", native code in the interpreted function that called it"

/** Does the row make the gate fail? */
bool csink_gate_is_failure(const struct csink_gate_result *r, const struct csink_gate_row *row);

/** 0, CSINK_EXIT_REGRESSED or, with an error, CSINK_EXIT_FAILED. */
int csink_gate_status(const struct csink_gate_result *r);

/** "wall time", "deflate in gzip". Returns what snprintf does. */
int csink_gate_row_name(const struct csink_gate_result *r, const struct csink_gate_row *row, char *out, size_t size);

/** "+12.4 %", "x 3.2", "new". */
int csink_gate_change(double ratio, char *out, size_t size);

/** "regressed: +12.4 % (95 % CI +9.8 to +15.1, q = 0.0002), 12.1 ms instead of 10.8" */
int csink_gate_row_line(const struct csink_gate_result *r, const struct csink_gate_row *row, char *out, size_t size);

/** A mean of a row, with its unit. */
int csink_gate_mean(const struct csink_gate_result *r, const struct csink_gate_row *row, int side, char *out,
		    size_t size);

/** What functions are judged by, in a word: "time", or "bytes". */
const char *csink_gate_unit_word(const struct csink_gate_result *r);

/** The unit of a row's means: a pprof unit. */
const char *csink_gate_row_unit(const struct csink_gate_result *r, const struct csink_gate_row *row);

/** The verdict in a line: "2 of 31 regressed: parse_header +12.4 %, ...". */
int csink_gate_headline(const struct csink_gate_result *r, char *out, size_t size);

/**
 * Where the time of a figure of the whole command went: "+5.1 ms in all functions: deflate in gzip +4.4 ms (95 % CI
 * ...".
 * @row  only if it is of this row; NULL: of any.
 * Returns the length, or -ENOENT where it did not change or is not known.
 */
int csink_gate_where(const struct csink_gate_result *r, const struct csink_gate_row *row, char *out, size_t size);

/**
 * What to know about the measurement: "12 pairs of runs in 34 s, seed 7", a line for each nr from 0.
 * Returns the length, or -ENOENT when there are no more.
 */
int csink_gate_fact(const struct csink_gate_result *r, uint32_t nr, char *out, size_t size);

/** The source file of a function's row as CI knows it: below the current directory, without it. NULL: unknown. */
const char *csink_gate_row_file(const struct csink_gate_result *r, const struct csink_gate_row *row, int64_t *line);

/* ---- the formats ---- */

void csink_gate_print_tap(FILE *out, const struct csink_gate_result *r);
void csink_gate_print_junit(FILE *out, const struct csink_gate_result *r);
void csink_gate_print_json(FILE *out, const struct csink_gate_result *r);
void csink_gate_print_markdown(FILE *out, const struct csink_gate_result *r);
void csink_gate_print_verdict(FILE *out, const struct csink_gate_result *r);
void csink_gate_print_badge(FILE *out, const struct csink_gate_result *r);

/* ---- parts of JSON, of a suite's, too ---- */

struct csink_json;

/** Write what was found, with a row for each question. r->verdicts are there. */
void csink_gate_json_verdicts(struct csink_json *json, const struct csink_gate_result *r);

/** Write the figures of every run, so that others can judge by rules of their own; those of functions in the order of
 * rows, where there are verdicts. */
void csink_gate_json_runs(struct csink_json *json, const struct csink_gate_result *r);

/** Write how runs were pinned: what was done, not what was asked for. */
void csink_gate_json_pin(struct csink_json *json, const struct csink_gate_pin *pin);

/** Write the two lines of a file with a verdict, of a suite, too. @word  one of our own: "ok", "regressed", ... */
void csink_gate_put_verdict(FILE *out, const char *word, int status, const char *headline);

/** Write a text of a point's YAML, of a suite's, too. */
void csink_gate_put_yaml(FILE *out, const char *key, const char *text);

/* Of JUnit XML, of a suite, too. */
struct csink_gate_junit {
	double seconds;
	uint32_t tests, failures, errors, skipped;
};

/** Write the beginning, up to the properties. */
void csink_gate_junit_head(FILE *out, const struct csink_gate_junit *counts);

/** Write a property of a fact, "name: value", which is changed. */
void csink_gate_junit_property(FILE *out, char *fact);

/** Write a case up to what it has of its own. */
void csink_gate_junit_open(FILE *out, const char *class, const char *name);

/** Write a case whose <error> is the reason why there is no verdict. */
void csink_gate_junit_error(FILE *out, const char *class, const char *error);

/** Close <system-out>, the suite and the document. */
void csink_gate_junit_end(FILE *out);

/** Write a badge, of a suite, too, as shields.io reads it from a URL (its "endpoint"). @word  one of the verdict's
 * words; it chooses the colour. */
void csink_gate_put_badge(FILE *out, const char *word, const char *message);

/** The mark of a verdict in Markdown, with a blank behind it; "" of what is unchanged. */
const char *csink_gate_mark(enum csink_gate_verdict verdict);

/** Write the link to the differential flame graph as Markdown, a paragraph; nothing where there is none. */
void csink_gate_put_link(FILE *out, const struct csink_gate_result *r);

void csink_gate_print_github(FILE *out, const struct csink_gate_result *r);

/* GitHub shows so many errors of a step, and drops the rest without a word. */
#define CSINK_GATE_ANNOTATIONS 10

/**
 * Has an annotation of @nr its place? The last place has the number of those that have none, where there are such.
 * @number  which one, from 0.
 */
bool csink_gate_has_annotation(FILE *out, uint32_t number, uint32_t nr);

#endif
