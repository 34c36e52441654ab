/* Readable names of symbols: C++, Rust (both manglings) and D. */
#include "launcher/profile/function_name.h"

#include <libiberty/demangle.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "launcher/profile/demangle.h"
#include "launcher/profile/profile.h"

#define MAX_SYMBOL 8192

/* Compilers append these to a part, or a specialised copy, of a function; GCC numbers them. */
static const char *const clone_suffixes[] = {".cold",     ".constprop", ".isra",      ".part",
					     ".lto_priv", ".llvm",      ".localalias"};

static bool is_number(const char *from, const char *to)
{
	for (; from < to; from++) {
		if (*from < '0' || *from > '9')
			return false;
	}
	return true;
}

/* The length of a name without one clone suffix (and its number), or len if it has none. */
static size_t without_suffix(const char *name, size_t len)
{
	const char *dot = memrchr(name, '.', len), *end = name + len;
	size_t i, suffix;

	if (dot && dot > name && dot + 1 < end && is_number(dot + 1, end)) {
		end = dot;
		dot = memrchr(name, '.', end - name);
	}
	if (!dot || dot == name)
		return len;
	for (i = 0; i < CSINK_ARRAY_SIZE(clone_suffixes); i++) {
		suffix = strlen(clone_suffixes[i]);
		if ((size_t)(end - dot) == suffix && !memcmp(dot, clone_suffixes[i], suffix))
			return dot - name;
	}
	return len;
}

/* Copy a symbol without its version (name@VER, name@@VER) and clone suffixes. */
static void plain_symbol(const char *symbol, char *out, size_t size)
{
	size_t len = strnlen(symbol, size - 1), shorter;
	const char *at = memchr(symbol, '@', len);

	if (at && at > symbol)
		len = at - symbol;
	while ((shorter = without_suffix(symbol, len)) < len)
		len = shorter;
	memcpy(out, symbol, len);
	out[len] = 0;
}

void csink_symbol_name(struct csink_profile *p, const char *symbol, const char *suffix,
		       struct csink_profile_function *function)
{
	CSINK_AUTO_FREE char *pretty = NULL, *both = NULL;
	char plain[MAX_SYMBOL];

	plain_symbol(symbol, plain, sizeof(plain));
	pretty = csink_demangle(plain, DMGL_NO_OPTS, NULL);
	function->system_name = csink_profile_strn(p, symbol, strnlen(symbol, MAX_SYMBOL));
	if (!*suffix)
		function->name = csink_profile_str(p, pretty ? pretty : plain);
	else if (asprintf(&both, "%s%s", pretty ? pretty : plain, suffix) >= 0)
		function->name = csink_profile_str(p, both);
	else
		both = NULL;
}

char *csink_symbol_signature(const char *symbol)
{
	char plain[MAX_SYMBOL], *signature;
	bool refused;

	plain_symbol(symbol, plain, sizeof(plain));
	signature = csink_demangle(plain, DMGL_PARAMS | DMGL_ANSI | DMGL_RET_DROP, &refused);
	return refused ? strdup(plain) : signature;
}
