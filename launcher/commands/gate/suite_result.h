/*
 * The result of a suite for printing: the cases with their verdicts, and the words that all formats share. gate_suite.c
 * fills it in, suite_headline.c has the words, suite_print.c the formats.
 */
#ifndef CSINK_SUITE_RESULT_H
#define CSINK_SUITE_RESULT_H

#include "launcher/base/message.h"
#include "launcher/commands/gate/gate_result.h"
#include "launcher/gate/suite/suite.h"

struct csink_suite_result {
	const struct csink_suite *suite;
	const struct csink_gate_result *gate; /* what is the same for all cases: its data and verdicts are not used */
	const char *kind;                     /* "gbench"; "" not known yet */
	const char *error;                    /* there are no verdicts; NULL: there are */
	int error_status;
	double seconds;
};

/** The gate's result for one case, as the printers of rows take it. */
struct csink_gate_result csink_suite_case_result(const struct csink_suite_result *r, const struct csink_suite_case *c);

/** Does the case fail: slower, in error, or (with --strict) inconclusive? */
bool csink_suite_is_failure(const struct csink_suite_result *r, const struct csink_suite_case *c);

/** Is the case slower? */
bool csink_suite_is_slower(const struct csink_suite_result *r, const struct csink_suite_case *c);

/** The row to name a slower case by: its first function that fails, else its first figure; NULL: none fails. */
const struct csink_gate_row *csink_suite_main_row(const struct csink_suite_result *r, const struct csink_suite_case *c);

/** The row of a judged case's CPU time; NULL: there is none. */
const struct csink_gate_row *csink_suite_cpu_row(const struct csink_suite_case *c);

/** "regressed", "unchanged", "inconclusive", "improved", "error". */
const char *csink_suite_word(const struct csink_suite_result *r, const struct csink_suite_case *c);

/** A case in a line, without its name: "crc32_of in bench regressed: +9.2 % (95 % CI ...". Returns the length. */
int csink_suite_case_line(const struct csink_suite_result *r, const struct csink_suite_case *c, char *out, size_t size);

/** All in a line: "1 of 10 cases slower: BM_Container (crc32_of +9.2 %)". A function that is slower in several cases
 * is named once. Returns the length. */
int csink_suite_headline(const struct csink_suite_result *r, char *out, size_t size);

/** A fact about the measurement, one line for each nr from 0. Returns the length, or -ENOENT. */
int csink_suite_fact(const struct csink_suite_result *r, uint32_t nr, char *out, size_t size);

/** 0, CSINK_EXIT_REGRESSED, CSINK_EXIT_FAILED where a case is in error, or the error's. */
int csink_suite_status(const struct csink_suite_result *r);

void csink_suite_print_tap(FILE *out, const struct csink_suite_result *r);
void csink_suite_print_junit(FILE *out, const struct csink_suite_result *r);
void csink_suite_print_json(FILE *out, const struct csink_suite_result *r);
void csink_suite_print_markdown(FILE *out, const struct csink_suite_result *r);
void csink_suite_print_verdict(FILE *out, const struct csink_suite_result *r);
void csink_suite_print_badge(FILE *out, const struct csink_suite_result *r);

#endif
