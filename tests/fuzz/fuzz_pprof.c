/*
 * libFuzzer target: bytes as a pprof profile, gzipped or plain. What is read is added up as the report does, encoded,
 * and read again.
 */
#include <stdint.h>
#include <stdlib.h>

#include "launcher/output/pprof.h"
#include "launcher/output/report_table.h"
#include "launcher/profile/profile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct csink_profile *p, *again;
	struct csink_report_table table;
	char why[64];
	void *buf;
	size_t len;

	if (csink_pprof_parse(data, size, &p, why, sizeof(why)))
		return 0;
	if (!csink_report_table_build(&table, p, p->default_type))
		csink_report_table_release(&table);
	if (csink_pprof_encode(p, &buf, &len) || csink_pprof_parse(buf, len, &again, why, sizeof(why)) ||
	    again->nr_samples != p->nr_samples)
		abort();
	csink_profile_destroy(again);
	csink_profile_destroy(p);
	free(buf);
	return 0;
}
