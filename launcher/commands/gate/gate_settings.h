/*
 * What a gate was asked for: filled in from the options by cmd_gate_settings.c, which says what is wrong with them;
 * read by cmd_gate.c.
 */
#ifndef CSINK_GATE_SETTINGS_H
#define CSINK_GATE_SETTINGS_H

#include "launcher/commands/gate/gate_options.h"
#include "launcher/gate/counting.h"
#include "launcher/gate/series.h"

struct csink_gate_settings {
	const struct csink_options *options;
	char **argv;     /* the command */
	char **vs;       /* the one to compare with; malloc'ed; NULL: none */
	const char *how; /* "vs", "self-check", "baseline" */
	struct csink_gate_plan plan;
	struct csink_gate_counting counting;
	struct csink_gate_rules rules;
	struct csink_gate_runner runner;
	bool update;            /* write the baseline, compare with nothing */
	bool shell_on_one_side; /* vs goes through a shell, and the command does not */
};

static inline const char *csink_gate_option_text(const struct csink_gate_settings *settings, enum csink_gate_opt option)
{
	return csink_options_text(settings->options, option);
}

/** The same; NULL where it is empty. */
static inline const char *csink_gate_option_given(const struct csink_gate_settings *settings,
						  enum csink_gate_opt option)
{
	const char *text = csink_gate_option_text(settings, option);

	return *text ? text : NULL;
}

static inline bool csink_gate_option_flag(const struct csink_gate_settings *settings, enum csink_gate_opt option)
{
	return csink_options_bool(settings->options, option);
}

/** Settings from options and argv. Returns 0; -errno, and one line on stderr has the reason. */
int csink_gate_settings_resolve(struct csink_gate_settings *settings);

/** Report that the value of an option is not what it has to be: "option --runs: 'x' is @what". Returns -EINVAL. */
int csink_gate_refuse(const struct csink_gate_settings *settings, enum csink_gate_opt option, const char *what);

/** A whole number from 0 to max; else it is refused as @what, or as too large. Returns 0 or -EINVAL. */
int csink_gate_resolve_count(const struct csink_gate_settings *settings, enum csink_gate_opt option, uint32_t max,
			     const char *what, uint32_t *out);

void csink_gate_settings_free(struct csink_gate_settings *settings);

#endif
