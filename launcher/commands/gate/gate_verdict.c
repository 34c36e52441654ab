/*
 * A gate's verdict as a file of two lines, for callers by a program that changes its exit status: make(1)
 * turns 3 into 2, ctest(1) into 8. The first line is one word, the second one an object of JSON. And as a badge.
 */
#include <string.h>

#include "include/internal/base.h"
#include "launcher/base/json.h"
#include "launcher/commands/gate/gate_result.h"

static const char *word_of(const struct csink_gate_result *r)
{
	if (r->error)
		return "error";
	if (r->verdicts->counts[CSINK_GATE_REGRESSED])
		return csink_gate_verdict_words[CSINK_GATE_REGRESSED];
	return r->verdicts->nr_open ? csink_gate_verdict_words[CSINK_GATE_INCONCLUSIVE] : "ok";
}

void csink_gate_put_verdict(FILE *out, const char *word, int status, const char *headline)
{
	fprintf(out, "%s\n{\"verdict\":\"%s\",\"status\":%d,\"headline\":", word, word, status);
	csink_json_quote(out, headline, false);
	fputs("}\n", out);
}

void csink_gate_print_verdict(FILE *out, const struct csink_gate_result *r)
{
	char headline[1024];

	csink_gate_headline(r, headline, sizeof(headline));
	csink_gate_put_verdict(out, word_of(r), csink_gate_status(r), headline);
}

void csink_gate_put_badge(FILE *out, const char *word, const char *message)
{
	/* Source: https://shields.io/badges/endpoint-badge */
	static const char *const colors[][2] = {
		{"ok", "brightgreen"}, {"regressed", "red"}, {"inconclusive", "yellow"}, {"error", "lightgrey"}};
	const char *color = "lightgrey";

	for (size_t i = 0; i < CSINK_ARRAY_SIZE(colors); i++) {
		if (!strcmp(colors[i][0], word))
			color = colors[i][1];
	}
	fputs("{\"schemaVersion\":1,\"label\":\"performance\",\"message\":", out);
	csink_json_quote(out, message, false);
	fprintf(out, ",\"color\":\"%s\"%s}\n", color, !strcmp(word, "error") ? ",\"isError\":true" : "");
}

void csink_gate_print_badge(FILE *out, const struct csink_gate_result *r)
{
	const char *word = word_of(r);
	uint32_t nr = r->error ? 0 : r->verdicts->counts[CSINK_GATE_REGRESSED];
	char message[64];

	snprintf(message, sizeof(message), "%u regressed", nr);
	csink_gate_put_badge(out, word,
			     r->error              ? "no verdict"
			     : nr                  ? message
			     : !strcmp(word, "ok") ? "no regression"
						   : word);
}
