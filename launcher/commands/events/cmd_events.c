/*
 * `countersink events [PATTERN]`: the events that have a name here, each marked with whether it opens; the reasons why
 * others do not are below the list, once each.
 */
#include <stdio.h>
#include <string.h>

#include "launcher/base/format.h"
#include "launcher/base/json.h"
#include "launcher/base/text.h"
#include "launcher/commands/events/catalog.h"
#include "launcher/commands/events/events_options.h"
#include "launcher/commands/registry.h"

#define MAX_REASONS 64
#define NAME_COLUMNS 34

struct listing {
	bool json;
	struct csink_json writer;
	char source[64];
	uint32_t nr_reasons;
	char reasons[MAX_REASONS][512];
};

/* The number of a reason below the list, from 1. Reasons that name a code say the same of each code. */
static uint32_t reason_number(struct listing *listing, const struct csink_explanation *why)
{
	struct csink_explanation general = *why;
	char line[512];

	if (why->cause == CSINK_CAUSE_NO_EVENT) {
		snprintf(general.text, sizeof(general.text), "not on this CPU, or not in this kernel");
		general.field[0] = general.remedy[0] = '\0';
	}
	csink_explain_print(&general, line, sizeof(line));
	for (uint32_t i = 0; i < listing->nr_reasons; i++)
		if (!strcmp(listing->reasons[i], line))
			return i + 1;
	if (listing->nr_reasons == MAX_REASONS)
		return MAX_REASONS;
	strcpy(listing->reasons[listing->nr_reasons++], line);
	return listing->nr_reasons;
}

static int print_event(void *cookie, const struct csink_catalog_event *event)
{
	struct listing *listing = cookie;
	char mark[16], help[256];

	if (strcmp(listing->source, event->source)) {
		if (listing->source[0])
			putchar('\n');
		csink_text_print(stdout, "%s:\n", event->source);
		snprintf(listing->source, sizeof(listing->source), "%s", event->source);
	}
	switch (event->state) {
	case CSINK_CATALOG_OPENS:
		snprintf(mark, sizeof(mark), "yes");
		break;
	case CSINK_CATALOG_USER_ONLY:
		snprintf(mark, sizeof(mark), "user [%u]", reason_number(listing, &event->why));
		break;
	case CSINK_CATALOG_REFUSED:
		snprintf(mark, sizeof(mark), "no [%u]", reason_number(listing, &event->why));
		break;
	case CSINK_CATALOG_TEMPLATE:
	case CSINK_CATALOG_UNTRIED:
		snprintf(mark, sizeof(mark), "?");
		break;
	}
	csink_format_text(help, sizeof(help), event->help, 100);
	csink_text_print(stdout, "  %-9s %-*s%s%s\n", mark, help[0] ? NAME_COLUMNS : 0, event->name, help[0] ? " " : "",
			 help);
	return 0;
}

static int write_event(void *cookie, const struct csink_catalog_event *event)
{
	static const char *const states[] = {"yes", "user-only", "no", "template", "untried"};
	bool refused = event->state == CSINK_CATALOG_REFUSED || event->state == CSINK_CATALOG_USER_ONLY;
	struct csink_json *json = &((struct listing *)cookie)->writer;

	csink_json_open(json, NULL, '{');
	csink_json_text(json, "name", event->name);
	csink_json_text(json, "source", event->source);
	csink_json_text(json, "help", event->help);
	csink_json_text(json, "opens", states[event->state]);
	if (refused) {
		csink_json_text(json, "errno", csink_errno_name(event->why.err));
		csink_json_text(json, "reason", event->why.text);
		csink_json_text(json, "field", event->why.field);
		csink_json_text(json, "remedy", event->why.remedy);
	}
	csink_json_close(json, '}');
	return 0;
}

static void print_summary(const struct listing *listing, const struct csink_catalog_summary *summary)
{
	if (listing->nr_reasons)
		putchar('\n');
	for (uint32_t i = 0; i < listing->nr_reasons; i++)
		csink_text_print(stdout, "[%u] %s\n", i + 1, listing->reasons[i]);
	csink_text_print(stdout, "\n%u of %u events open here.", summary->nr_usable, summary->nr_events);
	if (summary->nr_untried)
		csink_text_print(stdout, " %u were not tried, because it takes long: give a narrower pattern.",
				 summary->nr_untried);
	if (summary->nr_tracepoints || summary->nr_unit_masks)
		csink_text_print(
			stdout,
			" Not listed without a pattern: %u tracepoints (list them by 'sched:*') and %u unit masks.",
			summary->nr_tracepoints, summary->nr_unit_masks);
	putchar('\n');
	if (summary->tracepoints_why[0])
		csink_text_print(stdout, "Tracepoints are not listed: %s\n", summary->tracepoints_why);
	if (summary->libpfm4_why[0])
		csink_text_print(stdout, "%s\n", summary->libpfm4_why);
}

static int list(const struct csink_options *o, const char *pattern)
{
	static struct listing listing;
	struct csink_catalog_query query = {pattern, csink_options_bool(o, CSINK_EVENTS_OPT_USABLE)};
	struct csink_catalog_summary summary;

	listing.json = csink_options_bool(o, CSINK_EVENTS_OPT_JSON);
	if (listing.json) {
		csink_json_init(&listing.writer, stdout, '[');
	}
	csink_catalog_list(&query, listing.json ? write_event : print_event, &listing, &summary);
	if (listing.json)
		csink_json_close(&listing.writer, ']');
	else if (summary.nr_events)
		print_summary(&listing, &summary);
	if (summary.nr_events)
		return csink_end_output("events", CSINK_EXIT_OK);
	csink_say("no event matches '%.64s'%s%s%s%s", pattern ? pattern : "", summary.tracepoints_why[0] ? "; " : "",
		  summary.tracepoints_why, summary.libpfm4_why[0] ? "; " : "", summary.libpfm4_why);
	return csink_end_output("events", CSINK_EXIT_FAILED);
}

static int main_events(const struct csink_options *o, int nr, char **operands)
{
	if (nr > 1)
		return csink_fail(CSINK_EXIT_USAGE, "events takes one pattern, not %d (see countersink help events)",
				  nr);
	return list(o, *operands);
}

const struct csink_command csink_command_events = {
	.name = "events",
	.synopsis = "events [OPTION]... [PATTERN]",
	.help = "list the named events of this machine, and which of them can be opened",
	.main = main_events,
	CSINK_COMMAND_OPTIONS(CSINK_EVENTS_OPTIONS),
};
