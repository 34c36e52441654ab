/* libFuzzer target: bytes as an ELF image that a just-in-time compiler registered: its ranges, and what it names. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/collect/jit_images.h"
#include "launcher/profile/profile.h"
#include "launcher/symbols/symbols.h"
#include "preload/core/jit_image.h"

enum { NR_WANTS = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1); /* of the exact size: a read too far is seen */
	struct csink_profile *p = csink_profile_create();
	struct csink_object object = {.path = "[jit]", .image = copy, .nr_image = size};
	struct csink_want wants[NR_WANTS];
	struct csink_jit_image image;
	struct csink_jit_range range;
	uint64_t at = 0;

	if (!copy || !p)
		abort();
	memcpy(copy, data, size);
	if (csink_jit_image_open(&image, copy, size)) {
		while (csink_jit_image_next(&image, &at, &range)) {
			if (range.start >= range.end)
				abort();
		}
	}
	for (uint64_t i = 0; i < NR_WANTS; i++)
		wants[i] = (struct csink_want){i * i, csink_profile_location_add(p, 0, i * i, NULL, 0)};
	if (!csink_jit_image_link(copy, size) && csink_symbols_resolve(p, &object, wants, NR_WANTS) == -ENOMEM)
		abort();
	csink_profile_free(p);
	free(copy);
	return 0;
}
