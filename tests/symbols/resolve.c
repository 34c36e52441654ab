/*
 * Names addresses of an object as the launcher does: resolve OBJECT <addresses, for tests/symbols/compare_symbols. One
 * line of hexadecimal a want; for each "ADDRESS" and a line for each function around it, innermost first: symbol, name,
 * file:line, with tabs between.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/profile/profile.h"
#include "launcher/symbols/symbols.h"

int main(int argc, char **argv)
{
	struct csink_profile *p = csink_profile_create();
	struct csink_object object = {.path = argc > 1 ? argv[1] : ""};
	uint32_t nr = 0, cap = 1024, i, k;
	struct csink_want *wants = malloc(cap * sizeof(*wants));
	uint64_t address;
	int found;

	while (scanf("%" SCNx64, &address) == 1) {
		if (nr == cap)
			wants = reallocarray(wants, cap *= 2, sizeof(*wants));
		wants[nr++] = (struct csink_want){address, csink_profile_location_add(p, 0, address, NULL, 0)};
	}
	found = csink_symbols_resolve(p, &object, wants, nr);
	if (found < 0) {
		fprintf(stderr, "%s: %s\n", object.path, strerror(-found));
		return 1;
	}
	for (i = 0; i < nr; i++) {
		const struct csink_profile_location *location = &p->locations[wants[i].location];

		printf("0x%" PRIx64 "\n", wants[i].address);
		for (k = 0; k < location->nr_lines; k++) {
			const struct csink_profile_line *line = &p->lines[location->first_line + k];
			const struct csink_profile_function *function = &p->functions[line->function];

			printf("%s\t%s\t%s:%" PRId64 "\n", csink_profile_text(p, function->system_name),
			       csink_profile_text(p, function->name), csink_profile_text(p, function->file),
			       line->line);
		}
		putchar('\n');
	}
	csink_profile_free(p);
	free(wants);
	return 0;
}
