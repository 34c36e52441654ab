/* See preload_entry.h. Any thread, in a vfork child too; async-signal-safe. */
#include "preload/core/preload_entry.h"

#include <string.h>

#include "include/internal/base.h"

size_t csink_entry_directory(const char *entry, size_t length)
{
	static const char *const tails[] = {CSINK_ENTRY_TAIL, "/" CSINK_LIBRARY};

	for (size_t i = 0; i < CSINK_ARRAY_SIZE(tails); i++) {
		size_t tail = strlen(tails[i]);

		if (length > tail && !memcmp(entry + length - tail, tails[i], tail))
			return memchr(entry, '$', length - tail) ? 0 : length - tail;
	}
	return 0;
}

size_t csink_entry_of_object(const char *entry, size_t length, char *library)
{
	for (size_t i = 0; i < CSINK_NR_OBJECTS; i++) {
		size_t mark = strlen(csink_object_marks[i]), tail = mark + 3;

		if (length <= tail || memcmp(entry + length - tail, csink_object_marks[i], mark) != 0 ||
		    memcmp(entry + length - 3, ".so", 3) != 0)
			continue;
		memcpy(library, entry, length - tail);
		memcpy(library + length - tail, ".so", 3);
		return length - tail + 3;
	}
	return 0;
}

char *csink_libdir_end(char *path)
{
	static const char ends[][sizeof("/lib/" CSINK_MULTIARCH)] = {"/lib", "/lib64", "/lib/" CSINK_MULTIARCH};
	size_t length = strlen(path);

	for (size_t i = 0; i < CSINK_ARRAY_SIZE(ends); i++) {
		size_t end = strlen(ends[i]);

		if (length >= end && !strcmp(path + length - end, ends[i]))
			return path + length - end;
	}
	return NULL;
}
