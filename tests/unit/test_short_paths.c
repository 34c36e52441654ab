/* Names of files for people: as short as they differ. */
#include <stdio.h>
#include <string.h>

#include "include/internal/base.h"
#include "launcher/profile/short_paths.h"
#include "tests/unit/tap.h"

static char shown[512];

/* The short names, with spaces between. */
static const char *shortened(const char **paths, uint32_t nr)
{
	csink_short_paths(paths, nr);
	shown[0] = '\0';
	for (uint32_t i = 0; i < nr; i++)
		snprintf(shown + strlen(shown), sizeof(shown) - strlen(shown), "%s%s", i ? " " : "", paths[i]);
	return shown;
}

#define SHORT(...)                                                                                                     \
	({                                                                                                             \
		const char *paths_[] = {__VA_ARGS__};                                                                  \
		shortened(paths_, CSINK_ARRAY_SIZE(paths_));                                                           \
	})

int main(void)
{
	is_str(SHORT("/usr/lib/a.py", "/usr/lib/b.py"), "a.py b.py", "base names that differ are enough");
	is_str(SHORT("/p/a/util.py", "/p/b/util.py", "/p/main.py"), "a/util.py b/util.py main.py",
	       "one base name: the directory distinguishes them, and others stay short");
	is_str(SHORT("/p/a/x/util.py", "/p/b/x/util.py", "/p/c/y/util.py"), "a/x/util.py b/x/util.py y/util.py",
	       "each path has as many directories as distinguish it");
	is_str(SHORT("/p/util.py", "/p/util.py"), "util.py util.py", "one file twice is one file");
	is_str(SHORT("util.py", "/util.py", "a/util.py"), "util.py /util.py a/util.py",
	       "a path that is the end of another one is whole");
	is_str(SHORT("", "[vdso]", "<string>", "/d/"), " [vdso] <string> /d/", "what is no path stays as it is");
	is_str(SHORT("<frozen a/b>", "<frozen c/b>"), "<frozen a/b> <frozen c/b>", "names in brackets are not cut");
	return done();
}
