/* libFuzzer target: bytes as a history. What is read is scanned for changes, and written in every format. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "include/internal/base.h"
#include "launcher/commands/history/history_export.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const formats[] = {"bmf", "github", "perfherder", "csv"};
	struct csink_history history;
	struct csink_history_changes changes;
	struct csink_history_view view = {.history = &history, .changes = &changes, .all = size % 2};
	FILE *in = size ? fmemopen((void *)data, size, "r") : NULL, *out;

	if (!in)
		return 0;
	if (csink_history_read_stream(in, &history))
		abort();
	fclose(in);
	if (csink_history_changes_find(&history, view.all, &changes))
		abort();
	if (csink_history_view_init(&view))
		abort();
	out = fopen("/dev/null", "w");
	if (history.nr_lines) {
		csink_history_print_table(out, &view);
		for (size_t i = 0; i < CSINK_ARRAY_SIZE(formats); i++)
			csink_history_export(out, formats[i], &view);
		csink_history_html(out, "fuzz", &view);
	}
	fclose(out);
	csink_history_view_free(&view);
	csink_history_changes_free(&changes);
	csink_history_free(&history);
	return 0;
}
