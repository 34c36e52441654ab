/* A command line of hyperfine, as hyperfine_line.c reads it for harness_hyperfine.c. Context: the launcher's one
 * thread. */
#ifndef CSINK_HYPERFINE_IMPL_H
#define CSINK_HYPERFINE_IMPL_H

#include "launcher/gate/suite/harness.h"

#define CSINK_HYPERFINE_MAX_PARAMETERS 16
#define CSINK_HYPERFINE_MAX_COMBINATIONS 10000

/* {name} in the commands stands for each of the values. */
struct csink_hyperfine_parameter {
	const char *name;
	struct csink_suite_words values;
	uint32_t at; /* the value of the combination that is taken */
};

struct csink_hyperfine_line {
	struct csink_suite_words commands, names, prepares;
	struct csink_hyperfine_parameter parameters[CSINK_HYPERFINE_MAX_PARAMETERS];
	uint32_t nr_parameters;
	const char *setup, *step, *shell; /* NULL: not given, or the default */
	bool no_shell, cleans_up;
};

/** Read the words behind hyperfine's own. Returns 0 (csink_hyperfine_line_free), -EINVAL with suite->error or -ENOMEM;
 * then, too, it has to be freed. */
int csink_hyperfine_line_read(struct csink_suite *suite, char **words, struct csink_hyperfine_line *line);
void csink_hyperfine_line_free(struct csink_hyperfine_line *line);

#endif
