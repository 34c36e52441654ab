/* libFuzzer target: bytes as folded stacks. What is read is encoded, and read again: it must be the same profile. */
#include <stdint.h>
#include <stdlib.h>

#include "launcher/output/folded.h"
#include "launcher/output/pprof.h"
#include "launcher/profile/profile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct csink_profile *p, *again;
	char why[64];
	void *buf;
	size_t len;

	csink_folded_is_text(data, size);
	if (csink_folded_parse(data, size, &p, why, sizeof(why)))
		return 0;
	if (csink_pprof_encode(p, &buf, &len) || csink_pprof_parse(buf, len, &again, why, sizeof(why)) ||
	    again->nr_samples != p->nr_samples || again->nr_stacks != p->nr_stacks)
		abort();
	csink_profile_free(again);
	csink_profile_free(p);
	free(buf);
	return 0;
}
