/* What people read about options: --help and --print-config, both from the tables. */
#include "launcher/base/options.h"

#include <string.h>

#include "launcher/base/text.h"

#define HELP_COLUMN 28
#define HELP_WIDTH 80

void csink_print_wrapped(FILE *out, int at, int indent, const char *text)
{
	if (at && at >= indent - 1) {
		fputc('\n', out);
		at = 0;
	}
	fprintf(out, "%*s", indent - at, "");
	at = indent;
	while (*text) {
		int len = (int)strcspn(text, " ");

		if (at > indent && at + 1 + len > HELP_WIDTH) {
			fprintf(out, "\n%*s", indent, "");
			at = indent;
		} else if (at > indent) {
			fputc(' ', out);
			at++;
		}
		fwrite(text, 1, (size_t)len, out);
		at += len;
		text += len;
		text += *text == ' ';
	}
	fputc('\n', out);
}

/* Print "=VALUE" from column at on; a list "a|b|c" that does not fit is broken after a '|'. Returns the new column. */
static int print_value(FILE *out, int at, const char *value)
{
	int indent = at + 1;

	at += fprintf(out, "=");
	while (*value) {
		int len = (int)strcspn(value, "|");

		len += value[len] == '|';
		if (at > indent && at + len > HELP_WIDTH)
			at = fprintf(out, "\n%*s", indent, "") - 1;
		at += fprintf(out, "%.*s", len, value);
		value += len;
	}
	return at;
}

static void print_option(FILE *out, const struct csink_option *opt)
{
	char name[CSINK_OPTION_NAME], variable[CSINK_OPTION_NAME], text[512];
	bool takes_value = !(opt->flags & CSINK_OPT_BOOL);
	const char *def = opt->def;
	int at;

	csink_option_name(opt, name);
	csink_option_variable(opt, variable);
	if (opt->flags & CSINK_OPT_ENV_ONLY)
		at = fprintf(out, "      %s", variable);
	else if (opt->short_name)
		at = fprintf(out, "  -%c, --%s", opt->short_name, name);
	else
		at = fprintf(out, "      --%s", name);
	if (takes_value || opt->flags & CSINK_OPT_ENV_ONLY)
		at = print_value(out, at, takes_value ? opt->arg : "1");
	if (!takes_value)
		def = csink_bool_parse(def) == 1 ? "yes" : "no";
	if (opt->flags & CSINK_OPT_ENV_ONLY)
		snprintf(text, sizeof(text), "%s [%s]", opt->help, def);
	else if (opt->flags & CSINK_OPT_NO_ENV)
		snprintf(text, sizeof(text), "%s%s%s%s", opt->help, *def ? " [" : "", def, *def ? "]" : "");
	else
		snprintf(text, sizeof(text), "%s [%s%s%s]", opt->help, def, *def ? "; " : "", variable);
	csink_print_wrapped(out, at, HELP_COLUMN, text);
}

void csink_options_print_help(FILE *out, const struct csink_option *table, uint32_t nr)
{
	bool env_only = false;

	fputs("Options [default; environment variable]:\n", out);
	for (uint32_t i = 0; i < nr; i++) {
		if (table[i].flags & CSINK_OPT_ENV_ONLY)
			env_only = true;
		else
			print_option(out, &table[i]);
	}
	for (int i = 1; i < CSINK_NR_REQUESTS; i++) {
		const struct csink_request_option *r = &csink_request_options[i];
		int at = r->short_name ? fprintf(out, "  -%c, --%s", r->short_name, r->name)
				       : fprintf(out, "      --%s", r->name);

		csink_print_wrapped(out, at, HELP_COLUMN, r->help);
	}
	if (!env_only)
		return;
	fputs("\nEnvironment only:\n", out);
	for (uint32_t i = 0; i < nr; i++) {
		if (table[i].flags & CSINK_OPT_ENV_ONLY)
			print_option(out, &table[i]);
	}
}

void csink_options_print_config(FILE *out, const struct csink_options *o)
{
	char name[CSINK_OPTION_NAME], variable[CSINK_OPTION_NAME];

	for (uint32_t i = 0; i < o->nr; i++) {
		const struct csink_option *opt = &o->table[i];
		const char *text = o->values[i].text;

		csink_option_name(opt, name);
		csink_option_variable(opt, variable);
		if (opt->flags & CSINK_OPT_BOOL)
			text = csink_bool_parse(text) == 1 ? "yes" : "no";
		csink_text_print(out, "%-12s %-24s ", name, *text ? text : "-");
		if (o->values[i].source == CSINK_FROM_OPTION)
			fprintf(out, "option --%s\n", name);
		else if (o->values[i].source == CSINK_FROM_ENVIRONMENT)
			fprintf(out, "environment %s\n", variable);
		else
			fputs("default\n", out);
	}
}
