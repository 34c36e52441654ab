/*
 * libFuzzer target: bytes as a pprof profile, gzipped or plain. What is read is added up as the report does, made a
 * tree, compared with itself, encoded and read again; and merged, which must give the same bytes when it is done again.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/output/pprof.h"
#include "launcher/output/report_table.h"
#include "launcher/profile/diff.h"
#include "launcher/profile/merge.h"
#include "launcher/profile/profile.h"
#include "launcher/profile/tree.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct csink_profile *merged(const struct csink_profile *p)
{
	struct csink_merge *m = csink_merge_create(CSINK_MERGE_IDS | CSINK_MERGE_RANKS);
	struct csink_profile *out = NULL;

	if (!m || csink_merge_add(m, p) || csink_merge_finish(m, &out))
		abort();
	csink_merge_free(m);
	return out;
}

static void merge_twice(const struct csink_profile *p)
{
	struct csink_profile *once = merged(p), *twice = merged(once);
	void *first, *second;
	size_t first_len, second_len;

	if (csink_pprof_encode(once, &first, &first_len) || csink_pprof_encode(twice, &second, &second_len) ||
	    first_len != second_len || memcmp(first, second, first_len))
		abort();
	csink_profile_free(once);
	csink_profile_free(twice);
	free(first);
	free(second);
}

static void show(const struct csink_profile *p)
{
	const struct csink_profile *both[2] = {p, p};
	const uint32_t types[2] = {p->default_type, p->default_type};
	struct csink_report_table table;
	struct csink_diff diff;
	struct csink_rows rows;
	struct csink_tree tree;
	char why[128];

	for (int by = 0; by < CSINK_NR_BYS; by++) {
		if (csink_report_table_build_by(&table, p, p->default_type, (enum csink_by)by))
			abort();
		csink_report_table_free(&table);
	}
	if (csink_rows_build(&rows, p, CSINK_BY_FUNCTION) || csink_tree_build(&tree, p, &rows, p->default_type, NULL) ||
	    csink_diff_build(&diff, both, types, CSINK_BY_FUNCTION, true, CSINK_PER_RUN, why, sizeof(why)))
		abort();
	csink_tree_free(&tree);
	csink_rows_free(&rows);
	csink_diff_free(&diff);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct csink_profile *p, *again;
	char why[64];
	void *buf;
	size_t len;

	if (csink_pprof_parse(data, size, &p, why, sizeof(why)))
		return 0;
	show(p);
	merge_twice(p);
	if (csink_pprof_encode(p, &buf, &len) || csink_pprof_parse(buf, len, &again, why, sizeof(why)) ||
	    again->nr_samples != p->nr_samples)
		abort();
	csink_profile_free(again);
	csink_profile_free(p);
	free(buf);
	return 0;
}
