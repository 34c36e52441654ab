/*
 * `countersink send`: executes countersink-send, which is a program of its own, with the same options. What is wrong
 * with them is reported as by any command.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/base/send_options.h"
#include "launcher/commands/registry.h"
#include "launcher/session/inherited.h"
#include "launcher/session/send_profile.h"

/* Returns a word of the command line, or NULL without memory. It is never freed: the program is executed next. */
static char *word_of(const struct csink_options *o, uint32_t row)
{
	char name[CSINK_OPTION_NAME], *word = NULL;

	csink_option_name(&o->table[row], name);
	if (o->table[row].flags & CSINK_OPT_BOOL)
		return asprintf(&word, "--%s", name) < 0 ? NULL : word;
	return asprintf(&word, "--%s=%s", name, csink_options_text(o, row)) < 0 ? NULL : word;
}

static int main_send(const struct csink_options *o, int nr, char **operands)
{
	static char program[PATH_MAX], end[] = "--";
	char **argv = calloc(o->nr + (size_t)nr + 3, sizeof(*argv));
	uint32_t at = 1;

	for (uint32_t row = 0; argv && row < o->nr; row++) {
		if (o->values[row].source != CSINK_FROM_OPTION ||
		    (o->table[row].flags & CSINK_OPT_BOOL && !csink_options_bool(o, row)))
			continue;
		argv[at] = word_of(o, row);
		if (!argv[at++])
			return csink_fail(CSINK_EXIT_FAILED, "nothing was sent: no memory");
	}
	if (!argv)
		return csink_fail(CSINK_EXIT_FAILED, "nothing was sent: no memory");
	argv[0] = program;
	argv[at++] = end;
	memcpy(argv + at, operands, (size_t)nr * sizeof(*operands));
	if (!csink_send_program(program))
		return csink_fail(CSINK_EXIT_FAILED, "nothing was sent: %s", strerror(ENOENT));
	csink_inherited_end();
	execv(program, argv);
	return csink_fail(CSINK_EXIT_FAILED, "nothing was sent: %s: %s", program, strerror(errno));
}

const struct csink_command csink_command_send = {
	.name = "send",
	.synopsis = "send [OPTION]... --to=URL [FILE]...",
	.help = "send profiles to a server that collects them, and those that are kept for it",
	.main = main_send,
	CSINK_COMMAND_OPTIONS(CSINK_SEND_OPTIONS),
};
