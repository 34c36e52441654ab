/*
 * Prints the report (report.h): the verdict in one line, what limits it, the table of functions, and
 * what to do next. Facts come from the profile's comments; another program's profile has none, and its report has fewer
 * lines.
 */
#include "launcher/output/report.h"

#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "launcher/output/report_impl.h"
#include "launcher/profile/fold_native.h"

void csink_report_style(const struct printer *r, enum style what)
{
	static const char *const codes[] = {[STYLE_NONE] = "\033[0m",
					    [STYLE_BOLD] = "\033[1m",
					    [STYLE_DIM] = "\033[2m",
					    [STYLE_WARN] = "\033[33m",
					    [STYLE_HOT] = "\033[31m"};

	if (r->o->color)
		fputs(codes[what], r->out);
}

static bool is_utf8(void)
{
	locale_t locale = newlocale(LC_CTYPE_MASK, "", (locale_t)0);
	bool yes = locale && !strcmp(nl_langinfo_l(CODESET, locale), "UTF-8");

	if (locale)
		freelocale(locale);
	return yes;
}

void csink_report_options_init(struct csink_report_options *o, FILE *out)
{
	const char *term = getenv("TERM"), *no_color = getenv("NO_COLOR"), *force = getenv("CLICOLOR_FORCE");
	bool is_terminal = isatty(fileno(out)) && !(term && !strcmp(term, "dumb"));
	struct winsize size;
	const char *columns = getenv("COLUMNS");

	*o = (struct csink_report_options){.limit = CSINK_REPORT_DEFAULT_ROWS, .fold = CSINK_REPORT_DEFAULT_FOLD};
	o->color = is_terminal;
	if (force && *force && strcmp(force, "0"))
		o->color = true;
	if (no_color && *no_color)
		o->color = false;
	o->utf8 = is_utf8();
	if (!is_terminal)
		return;
	if (!ioctl(fileno(out), TIOCGWINSZ, &size))
		o->width = size.ws_col;
	if (columns && atoi(columns) > 0)
		o->width = atoi(columns);
	o->bars = !o->width || o->width >= NARROW_COLUMNS;
}

double csink_report_percent(int64_t part, int64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

int csink_report_flush(FILE *out)
{
	if (fflush(out) || ferror(out))
		return errno ? -errno : -EIO;
	return 0;
}

/* With a file's name as a shell takes it. */
static void print_next(FILE *out, const char *command, const char *file)
{
	char word[MAX_TEXT] = "";

	csink_append_word(word, sizeof(word), file);
	csink_text_print(out, "next: %s%s\n", command, word);
}

int csink_report_print(FILE *out, const struct csink_profile *p, const struct csink_report_options *o)
{
	CSINK_AUTO(csink_report_done) struct printer r = {.out = out, .p = p, .o = o};
	int err = csink_report_table_build_by(&r.table, p, p->default_type, o->by);
	uint32_t nr_rows = r.table.nr_rows;

	if (err)
		return err;
	if (o->wall)
		csink_report_table_sort(&r.table, o->wall->critical_type);
	errno = 0;
	csink_report_head(&r);
	if (nr_rows) {
		fputc('\n', out);
		err = csink_report_tables(&r);
	} else {
		csink_text_print(out, "\nNo samples: there is no function to show.\n");
	}
	if (o->file && nr_rows) {
		fputc('\n', out);
		if ((o->by == CSINK_BY_FUNCTION || o->by == CSINK_BY_LINE) && csink_has_native_calls(p))
			print_next(out,
				   o->by == CSINK_BY_LINE ? "countersink report --by line --fold-native "
							  : "countersink report --fold-native ",
				   o->file);
		print_next(out, "go tool pprof -http : ", o->file);
	}
	return err ? err : csink_report_flush(out);
}
