/* The files that a gate writes, of one command or of a suite. Context: the launcher's one thread. */
#ifndef CSINK_GATE_OUTPUT_H
#define CSINK_GATE_OUTPUT_H

#include <stdio.h>

#include "launcher/commands/gate/gate_history.h"
#include "launcher/commands/gate/gate_settings.h"
#include "launcher/output/html.h"

/**
 * Write a file by a function. What cannot be written is reported.
 * @path  "-": standard output; "": none is wanted.
 * @how   bits of enum csink_outfile_how.
 * Returns whether it is written.
 */
bool csink_gate_write(const char *path, unsigned int how, int (*write)(FILE *out, void *arg), void *arg);

/** Write both sides' runs as a page with a differential flame graph. Returns whether that succeeded; what cannot be
 * written is reported. A side without a profile is no error: a note reports that there is no page. */
bool csink_gate_write_page(const char *path, struct csink_gate_series *series, const struct csink_html_side *sides);

/** Append a line to a history. What cannot be written is reported, with the verdict; so is that no runs were made,
 * which is no error. Returns whether there was none. */
bool csink_gate_write_history(const struct csink_gate_history *history, char *const *argv,
			      const struct csink_gate_case *cases, uint32_t nr_cases, const char *headline);

/** Is this a step of GitHub's Actions? */
bool csink_gate_is_in_actions(void);

/** The file that GitHub gives a step to write its summary to; "" elsewhere. */
const char *csink_gate_summary_file(void);

/** Returns 0, errno or a csink_outfile_errno. */
int csink_gate_check_writable(const char *path);

/** Before minutes are spent on runs whose result could not be written: can all of it be? If not, a line on stderr has
 * reported what. */
bool csink_gate_can_report(const struct csink_gate_settings *set);

#endif
