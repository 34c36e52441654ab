/* Patterns of names: see names_match.h. Any thread; no state. */
#include "preload/core/names_match.h"

#include <fnmatch.h>
#include <string.h>

bool csink_names_match(const char *names, const char *name)
{
	char pattern[256];
	size_t n;

	for (; *names; names += n + (names[n] == ',')) {
		n = strcspn(names, ",");
		if (n && n < sizeof(pattern)) {
			memcpy(pattern, names, n);
			pattern[n] = 0;
			if (fnmatch(pattern, name, 0) == 0)
				return true;
		}
	}
	return false;
}
