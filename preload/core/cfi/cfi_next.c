/* From one entry of .eh_frame to the next, for those that read all of them. Any thread; async-signal-safe. */
#include "preload/core/cfi/cfi.h"
#include "preload/core/cfi/cfi_read.h"

const uint8_t *csink_cfi_next_entry(const uint8_t *at, const uint8_t *end)
{
	struct csink_reader r = {at, end, false};
	uint64_t length = csink_read_u32(&r);

	if (length == UINT32_MAX)
		length = csink_read_u64(&r);
	csink_read_skip(&r, length);
	return r.failed ? NULL : r.at;
}
