/* `countersink export`: write a profile in a format that other programs open. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/base/message.h"
#include "launcher/base/text.h"
#include "launcher/commands/export/export_options.h"
#include "launcher/commands/registry.h"
#include "launcher/output/export.h"
#include "launcher/output/wire_form.h"
#include "launcher/profile/fold_native.h"
#include "launcher/profile/profile.h"
#include "launcher/session/open_profile.h"

#define DEFAULT_FILE "countersink.pb.gz"

struct export
{
	const char *path, *base_path, *output;
	const struct csink_export_format *format;
	struct csink_profile *profile, *base;
	uint32_t type;
	struct csink_wire_options wire;
};

static int read_profile(const struct csink_options *o, const char *path, struct csink_profile **profile)
{
	char why[CSINK_WHY_BYTES];
	int err = csink_profile_open(path, profile, why, sizeof(why));

	if (err)
		csink_say("%s", why);
	else if (csink_options_bool(o, CSINK_EXPORT_OPT_FOLD_NATIVE) && csink_fold_native(*profile))
		return csink_fail(-ENOMEM, "no memory");
	return err;
}

/* From --format, else from the ending of the file's name. */
static int choose_format(const struct csink_options *o, struct export *e)
{
	const char *name = csink_options_text(o, CSINK_EXPORT_OPT_FORMAT);

	e->output = csink_options_text(o, CSINK_EXPORT_OPT_OUTPUT);
	if (*name)
		e->format = csink_export_format_named(name);
	else if (*e->output)
		e->format = csink_export_format_of(e->output);
	if (!e->format && *e->output && strcmp(e->output, "-"))
		csink_say("%s: no format has this ending; name one with --format", e->output);
	else if (!e->format)
		csink_say("no format given: name one with --format, or a file with --output");
	if (!*e->output)
		e->output = "-";
	return e->format ? 0 : -EINVAL;
}

static int choose_type(const struct csink_options *o, struct export *e)
{
	const char *name = csink_options_text(o, CSINK_EXPORT_OPT_EVENT);
	char hint[256];
	int type;

	e->type = e->profile->default_type;
	if (!*name)
		return 0;
	type = csink_profile_event_find(e->profile, name, hint, sizeof(hint));
	if (type < 0)
		return csink_fail(type, "%s: no event '%s' in this profile%s", e->path, name, hint);
	e->type = (uint32_t)type;
	return 0;
}

static int write_output(struct export *e)
{
	const char *where = strcmp(e->output, "-") ? e->output : "standard output";
	int err;

	if (isatty(STDOUT_FILENO) && !strcmp(e->output, "-") && e->format->flags & CSINK_EXPORT_BINARY)
		return csink_fail(-EINVAL, "a terminal cannot show %s: name a file with --output", e->format->name);
	if (e->base)
		err = csink_export_diff(e->output, (const struct csink_profile *const[]){e->base, e->profile},
					(const char *const[]){e->base_path, e->path},
					csink_profile_text(e->profile, e->profile->types[e->type].name));
	else if (e->format->flags & CSINK_EXPORT_WIRE)
		err = csink_export_write_wire(e->profile, e->format, &e->wire, e->output);
	else
		err = csink_export_write(e->profile, e->format, e->type, e->output);
	if (err == -ENOENT && e->base)
		csink_say("%s and %s have no event in common", e->base_path, e->path);
	else if (err)
		csink_say_unwritten(where, -err, NULL);
	return err;
}

static int export(const struct csink_options *o, struct export *e)
{
	int err = read_profile(o, e->path, &e->profile);

	if (!err)
		err = choose_type(o, e);
	if (!err && *e->base_path)
		err = read_profile(o, e->base_path, &e->base);
	if (!err)
		err = write_output(e);
	csink_profile_free(e->profile);
	csink_profile_free(e->base);
	return err ? CSINK_EXIT_FAILED : CSINK_EXIT_OK;
}

static int choose_wire(const struct csink_options *o, struct export *e)
{
	e->wire.labels = csink_options_text(o, CSINK_EXPORT_OPT_LABELS);
	e->wire.service = csink_options_text(o, CSINK_EXPORT_OPT_SERVICE);
	if (!strcmp(csink_options_text(o, CSINK_EXPORT_OPT_OTLP), "1.9"))
		e->wire.otlp = CSINK_WIRE_OTLP_1_9;
	if (*e->wire.labels && !(e->format->flags & CSINK_EXPORT_WIRE))
		return csink_fail(-EINVAL, "--labels is for what is sent to servers: give --format wire or otlp");
	if ((*e->wire.service || e->wire.otlp) && e->format->write != csink_export_otlp)
		return csink_fail(-EINVAL, "--service and --otlp are for OTLP: give --format otlp");
	if (csink_text_utf8(NULL, e->wire.service, strlen(e->wire.service)) != strlen(e->wire.service))
		return csink_fail(-EINVAL, "--service: the name is not UTF-8");
	return 0;
}

static int main_export(const struct csink_options *o, int nr, char **operands)
{
	struct export e = {.path = nr ? *operands : DEFAULT_FILE,
			   .base_path = csink_options_text(o, CSINK_EXPORT_OPT_BASE)};

	if (nr > 1)
		return csink_fail(CSINK_EXIT_USAGE, "export takes one profile, not %d (see countersink help export)",
				  nr);
	if (choose_format(o, &e))
		return CSINK_EXIT_USAGE;
	if (*e.base_path && !(e.format->flags & CSINK_EXPORT_COMPARES))
		return csink_fail(CSINK_EXIT_USAGE,
				  "--base compares in a page only: give --format html, or a file ending in .html");
	if (choose_wire(o, &e))
		return CSINK_EXIT_USAGE;
	return export(o, &e);
}

const struct csink_command csink_command_export = {
	.name = "export",
	.synopsis = "export [OPTION]... [FILE]",
	.help = "write a profile in another program's format, or as an HTML page",
	.main = main_export,
	CSINK_COMMAND_OPTIONS(CSINK_EXPORT_OPTIONS),
};
