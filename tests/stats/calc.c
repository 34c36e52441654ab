/*
 * For tests/stats/compare_stats: reads lines "FUNCTION ARGUMENT... ; values of a ; values of b", prints what the gate's
 * statistics say of each, a line each.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/gate/stats/change_points.h"
#include "launcher/gate/stats/stats.h"

#define MAX_VALUES 1000

static uint32_t read_values(char *text, double *values)
{
	uint32_t nr = 0;
	char *end;

	for (double value = strtod(text, &end); end != text && nr < MAX_VALUES; value = strtod(text = end, &end))
		values[nr++] = value;
	return nr;
}

static enum csink_tail tail_of(const char *word)
{
	return !strcmp(word, "greater") ? CSINK_TAIL_GREATER
	       : !strcmp(word, "less")  ? CSINK_TAIL_LESS
					: CSINK_TAIL_BOTH;
}

static void print_interval(csink_statistic_fn statistic, bool paired, const double *a, uint32_t nr_a, const double *b,
			   uint32_t nr_b, struct csink_random *random)
{
	struct csink_interval interval = {NAN, NAN};

	csink_bootstrap(statistic, paired, a, nr_a, b, nr_b, 0.95, random, &interval);
	printf("%.15g %.15g\n", interval.low, interval.high);
}

/* b: errors, or nothing. */
static void print_scan(const double *a, uint32_t nr_a, const double *b, uint32_t nr_b)
{
	struct csink_scan scan;

	csink_scan_end(a, nr_b ? b : NULL, nr_a, &scan);
	printf("%u %.15g %.15g %.15g\n", scan.after, scan.z, scan.shift, scan.spread);
}

static void calculate(const char *what, const char *word, const double *a, uint32_t nr_a, const double *b,
		      uint32_t nr_b)
{
	struct csink_interval interval;
	struct csink_random random;
	enum csink_tail tail = tail_of(word);
	double q[MAX_VALUES];

	csink_random_init(&random, 1);
	if (!strcmp(what, "permute_paired"))
		printf("%.15g\n", csink_permute_paired(a, nr_a, tail, &random));
	else if (!strcmp(what, "permute_two"))
		printf("%.15g\n", csink_permute_two(a, nr_a, b, nr_b, tail, &random));
	else if (!strcmp(what, "wilcoxon_paired"))
		printf("%.15g\n", csink_wilcoxon_paired(a, nr_a, tail));
	else if (!strcmp(what, "signed_rank_quantile"))
		printf("%u\n", csink_signed_rank_quantile(a[0], (uint32_t)a[1]));
	else if (!strcmp(what, "wilcoxon_interval") && !csink_wilcoxon_interval(a, nr_a, 0.95, &interval))
		printf("%.15g %.15g\n", interval.low, interval.high);
	else if (!strcmp(what, "coefficient"))
		printf("%.15g\n", csink_control_coefficient(a, b, nr_a));
	else if (!strcmp(what, "wilcoxon_two"))
		printf("%.15g\n", csink_wilcoxon_two(a, nr_a, b, nr_b, tail));
	else if (!strcmp(what, "hodges_lehmann"))
		printf("%.15g\n", csink_hodges_lehmann(a, nr_a));
	else if (!strcmp(what, "hodges_lehmann_two"))
		printf("%.15g\n", csink_hodges_lehmann_two(a, nr_a, b, nr_b));
	else if (!strcmp(what, "normal"))
		printf("%.15g %.15g\n", csink_normal_cdf(a[0]), csink_normal_quantile(a[1]));
	else if (!strcmp(what, "scan"))
		print_scan(a, nr_a, b, nr_b);
	else if (!strcmp(what, "split"))
		printf("%u\n", csink_split_at(a, nr_a, 2));
	else if (!strcmp(what, "ratio_paired"))
		print_interval(csink_statistic_ratio, true, a, nr_a, b, nr_b, &random);
	else if (!strcmp(what, "ratio_two"))
		print_interval(csink_statistic_ratio, false, a, nr_a, b, nr_b, &random);
	else if (!strcmp(what, "shift_paired"))
		print_interval(csink_statistic_shift_paired, true, a, nr_a, b, nr_b, &random);
	else if ((!strcmp(what, "bh") && !csink_adjust_bh(a, nr_a, q)) ||
		 (!strcmp(what, "holm") && !csink_adjust_holm(a, nr_a, q)))
		for (uint32_t i = 0; i < nr_a; i++)
			printf("%.15g%c", q[i], i + 1 < nr_a ? ' ' : '\n');
	else
		printf("unknown\n");
}

int main(void)
{
	static char line[1 << 20];
	static double a[MAX_VALUES], b[MAX_VALUES];
	char what[32], word[32];

	while (fgets(line, sizeof(line), stdin)) {
		char *first = strchr(line, ';'), *second = first ? strchr(first + 1, ';') : NULL;

		if (!second)
			return 1;
		*first = *second = '\0';
		if (sscanf(line, "%31s %31s", what, word) != 2)
			return 1;
		calculate(what, word, a, read_values(first + 1, a), b, read_values(second + 1, b));
	}
	return 0;
}
