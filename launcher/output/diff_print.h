/* Two profiles side by side, for people and for machines. */
#ifndef CSINK_DIFF_PRINT_H
#define CSINK_DIFF_PRINT_H

#include "launcher/output/report.h"
#include "launcher/profile/diff.h"

struct csink_diff_options {
	struct csink_report_options report; /* limit, width, colour, by */
	const char *files[2];
	const char *event, *unit;
	enum csink_diff_per per;
	bool of_stacks;
};

/** Print a comparison under a verdict. Returns 0 or -errno of the stream. */
int csink_diff_print(FILE *out, const struct csink_diff *diff, const struct csink_diff_options *o);

/** Begin and end the JSON of comparisons, and print one of them ("functions", "stacks") in between. */
struct csink_json;
void csink_diff_json_head(struct csink_json *json, const struct csink_diff *diff, const struct csink_diff_options *o);
void csink_diff_json(struct csink_json *json, const char *key, const struct csink_diff *diff,
		     const struct csink_diff_options *o);

#endif
