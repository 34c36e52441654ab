/* Names of addresses, held against what binutils say of the same files. */
#include "launcher/profile/function_name.h"
#include "launcher/symbols/symbols.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/clock.h"
#include "launcher/profile/profile.h"
#include "tests/unit/tap.h"

static char target[1024], directory[] = "/tmp/csink-sym.XXXXXX";

/* ---- what is asked ---- */

struct asked {
	struct csink_profile *p;
	struct csink_want *wants;
	uint32_t nr;
};

static struct asked ask(const uint64_t *addresses, uint32_t nr)
{
	struct asked a = {csink_profile_create(), calloc(nr, sizeof(*a.wants)), nr};
	uint32_t i;

	for (i = 0; i < nr; i++)
		a.wants[i] =
			(struct csink_want){addresses[i], csink_profile_location_add(a.p, 0, addresses[i], NULL, 0)};
	return a;
}

static void forget(struct asked *a)
{
	csink_profile_free(a->p);
	free(a->wants);
}

/* Frame `depth` (0: innermost) of the i-th address asked for; NULL if there is none. */
static const struct csink_profile_line *frame(const struct asked *a, uint32_t i, uint32_t depth)
{
	const struct csink_profile_location *location = &a->p->locations[i + 1];

	return depth < location->nr_lines ? &a->p->lines[location->first_line + depth] : NULL;
}

static const char *name(const struct asked *a, uint32_t i, uint32_t depth)
{
	const struct csink_profile_line *line = frame(a, i, depth);

	return line ? csink_profile_text(a->p, a->p->functions[line->function].name) : NULL;
}

static const char *file(const struct asked *a, uint32_t i, uint32_t depth)
{
	const struct csink_profile_line *line = frame(a, i, depth);
	const char *path = line ? csink_profile_text(a->p, a->p->functions[line->function].file) : "";

	return strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
}

/* The function that an address is in, inlined ones aside. */
static const char *outermost(const struct asked *a, uint32_t i)
{
	uint32_t nr = a->p->locations[i + 1].nr_lines;

	return nr ? name(a, i, nr - 1) : NULL;
}

/* The first word of what a shell command prints. */
static char *shell(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static char *shell(const char *fmt, ...)
{
	static char word[4096];
	char command[8192];
	va_list ap;
	FILE *out;

	va_start(ap, fmt);
	vsnprintf(command, sizeof(command), fmt, ap);
	va_end(ap);
	out = popen(command, "r");
	if (!out || fscanf(out, "%4095s", word) != 1)
		word[0] = 0;
	if (out)
		pclose(out);
	return word;
}

static uint64_t symbol_value(const char *path, const char *symbol)
{
	return strtoull(shell("nm '%s' | awk '$3 == \"%s\" { print $1 }'", path, symbol), NULL, 16);
}

/* ---- against addr2line ---- */

struct reference {
	char function[1024];
	char place[1024]; /* base name:line */
};

/* addr2line -i -f -a: for each address its own line, then pairs of lines. */
static uint32_t compare_address(FILE *out, const struct asked *a, uint32_t i, char *pending)
{
	char function[2048], place[2048], mine[1200], *slash, *space;
	uint32_t depth = 0, wrong = 0;
	bool is_outer;

	while (fgets(pending, 2048, out) && strncmp(pending, "0x", 2)) {
		snprintf(function, sizeof(function), "%.*s", (int)strcspn(pending, "\n"), pending);
		if (!fgets(place, sizeof(place), out))
			break;
		place[strcspn(place, "\n")] = 0;
		space = strstr(place, " (discriminator");
		if (space)
			*space = 0;
		slash = strrchr(place, '/');
		snprintf(mine, sizeof(mine), "%s:%lld", file(a, i, depth),
			 frame(a, i, depth) ? (long long)frame(a, i, depth)->line : 0);
		if (strstr(place, ":?") || strstr(place, ":0")) /* no line: binutils and we word it differently */
			mine[strcspn(mine, ":")] = place[strcspn(place, ":")] = 0;
		/* binutils give an inlined call's line the name of the function around it, now and then. */
		is_outer = !depth && outermost(a, i) && !strcmp(outermost(a, i), function);
		if (!name(a, i, depth) || (strcmp(name(a, i, depth), function) && !is_outer) ||
		    strcmp(mine, slash ? slash + 1 : place)) {
			if (!wrong)
				printf("# %#llx frame %u: '%s' at %s, addr2line: '%s' at %s\n",
				       (unsigned long long)a->p->locations[i + 1].address, depth,
				       name(a, i, depth) ? name(a, i, depth) : "none", mine, function,
				       slash ? slash + 1 : place);
			wrong = 1;
		}
		depth++;
	}
	return wrong || name(a, i, depth) != NULL;
}

static void against_addr2line(const char *path, const char *symbol)
{
	struct csink_object object = {.path = path};
	uint64_t start = symbol_value(path, symbol), size, *addresses;
	char command[8192], list[64], pending[2048] = "";
	uint32_t i, nr, wrong = 0, deepest = 0;
	struct asked a;
	FILE *out;

	size = strtoull(shell("nm -S '%s' | awk '$4 == \"%s\" { print $2 }'", path, symbol), NULL, 16);
	if (!ok(start && size, "%s is there", symbol))
		return;
	nr = size;
	addresses = calloc(nr, sizeof(*addresses));
	snprintf(list, sizeof(list), "%s/list", directory);
	out = fopen(list, "w");
	for (i = 0; i < nr; i++) {
		addresses[i] = start + i;
		fprintf(out, "%#llx\n", (unsigned long long)addresses[i]);
	}
	fclose(out);
	a = ask(addresses, nr);
	ok(csink_symbols_resolve(a.p, &object, a.wants, nr) > 0, "%s is resolved", symbol);
	snprintf(command, sizeof(command), "addr2line -e '%s' -f -i -a < %s | c++filt -p", path, list);
	out = popen(command, "r");
	if (!out || !fgets(pending, sizeof(pending), out))
		abort();
	for (i = 0; i < nr; i++) {
		wrong += compare_address(out, &a, i, pending);
		while (name(&a, i, deepest))
			deepest++;
	}
	pclose(out);
	is_num(wrong, 0, "at each address, functions, inlined ones, files and lines are addr2line's");
	ok(deepest >= 2, "(%u addresses, up to %u functions at one)", nr, deepest);
	forget(&a);
	free(addresses);
}

/* ---- other sources of names ---- */

static void test_overloads(void)
{
	uint64_t addresses[2] = {symbol_value(target, "_ZN6shapes3mixEj"), symbol_value(target, "_ZN6shapes3mixEd")};
	struct csink_object object = {.path = target};
	struct asked a = ask(addresses, 2);

	csink_symbols_resolve(a.p, &object, a.wants, 2);
	is_str(name(&a, 0, 0), "shapes::mix", "names have no parameters");
	is_str(name(&a, 1, 0), "shapes::mix", "overloads share one name");
	ok(frame(&a, 0, 0)->function != frame(&a, 1, 0)->function, "overloads are two functions");
	is_str(csink_profile_text(a.p, a.p->functions[frame(&a, 1, 0)->function].system_name), "_ZN6shapes3mixEd",
	       "overloads have their own symbols");
	is_num(*csink_profile_text(a.p, a.p->functions[frame(&a, 1, 0)->function].file), '/', "files have whole paths");
	forget(&a);
}

/* Functions over a lambda have no linkage name: their own names are qualified by where they stand. */
static void test_lambda(void)
{
	uint64_t start = strtoull(shell("nm '%s' | awk '$3 ~ /^_ZL7shuffle/ { print $1; exit }'", target), NULL, 16);
	struct csink_object object = {.path = target};
	uint32_t i, depth, nr_sort = 0, nr_lambda = 0, nr_bare = 0;
	uint64_t addresses[400];
	struct asked a;

	for (i = 0; i < 400; i++)
		addresses[i] = start + i;
	a = ask(addresses, 400);
	csink_symbols_resolve(a.p, &object, a.wants, 400);
	for (i = 0; i < 400; i++) {
		for (depth = 0; name(&a, i, depth); depth++) {
			nr_sort += !strncmp(name(&a, i, depth), "std::sort<", 10);
			nr_lambda += !strcmp(name(&a, i, depth), "shuffle::{lambda}::operator()");
			nr_bare +=
				!strncmp(name(&a, i, depth), "sort<", 5) || !strcmp(name(&a, i, depth), "operator()");
		}
	}
	ok(nr_sort > 0, "a template over a lambda has its namespace");
	ok(nr_lambda > 0 || nr_sort > 0, "a lambda has its function");
	is_num(nr_bare, 0, "no lambda or template is named without its scope");
	forget(&a);
}

static void test_libc(void)
{
	static const char *const names[] = {"qsort",          "fwrite", "strtoul", "getenv",
					    "pthread_create", "write",  "malloc"};
	void *libc = dlopen("libc.so.6", RTLD_LAZY);
	struct csink_object object = {0};
	struct link_map *map = NULL;
	uint64_t addresses[7];
	struct asked a;
	uint32_t i;

	if (!libc || dlinfo(libc, RTLD_DI_LINKMAP, &map))
		abort();
	object.path = map->l_name;
	for (i = 0; i < 7; i++)
		addresses[i] = (uintptr_t)dlsym(libc, names[i]) - map->l_addr + 1;
	a = ask(addresses, 7);
	csink_symbols_resolve(a.p, &object, a.wants, 7);
	for (i = 0; i < 7; i++)
		is_str(outermost(&a, i), names[i], "a function of libc by its usual name");
	forget(&a);
	dlclose(libc);
}

static void test_plt(void)
{
	struct csink_object object = {.path = target};
	uint64_t address =
		strtoull(shell("objdump -d '%s' | sed -n 's/^\\([0-9a-f]*\\) <printf@plt>:/\\1/p'", target), NULL, 16);
	struct asked a;

	if (!address) {
		skip("PLT stubs are named", "this compiler made none");
		return;
	}
	address += 4;
	a = ask(&address, 1);
	csink_symbols_resolve(a.p, &object, a.wants, 1);
	is_str(name(&a, 0, 0), "printf@plt", "PLT stubs are named");
	forget(&a);
}

/* Its local functions have no symbol, as what reads a hypervisor's clock. */
static void test_vdso_places(void)
{
	struct csink_object object = {.path = "[vdso]", .is_vdso = true};
	uint32_t nr_places = 0, nr_right = 0;

	for (uint64_t address = 0; address < 0x2000; address += 16) {
		struct asked a = ask(&address, 1);

		if (csink_symbols_resolve(a.p, &object, a.wants, 1) > 0 && name(&a, 0, 0)[0] == '[') {
			nr_places++;
			nr_right += !strncmp(name(&a, 0, 0), "[vdso+0x", 8);
		}
		forget(&a);
	}
	if (nr_places)
		is_num(nr_right, nr_places, "a place in the vdso is named by it, without its brackets");
	else
		skip("a place in the vdso", "each function of this kernel's has a symbol");
}

static void test_vdso(void)
{
	uint64_t none = 0x10;
	struct csink_object object = {.path = "[vdso]", .is_vdso = true};
	struct asked a = ask(&none, 1);
	uint8_t wrong[20] = {1, 2, 3};
	int found = csink_symbols_resolve(a.p, &object, a.wants, 1);

	ok(found >= 0 || found == -ENOENT, "the vdso is read from memory");
	object.build_id = wrong;
	object.build_id_len = sizeof(wrong);
	found = csink_symbols_resolve(a.p, &object, a.wants, 1);
	ok(found == -ESTALE || found == -ENOENT, "another kernel's vdso is refused");
	forget(&a);
	test_vdso_places();
}

/* ---- stripped and separate files ---- */

static int resolve_one(const char *path, const char *debug_dir, uint64_t address, struct asked *a)
{
	struct csink_object object = {.path = path, .debug_dir = debug_dir};

	*a = ask(&address, 1);
	return csink_symbols_resolve(a->p, &object, a->wants, 1);
}

static void test_separate(void)
{
	uint64_t churn = symbol_value(target, "_Z5churnPKhm"), descend;
	char stripped[64], want[64], id[64];
	struct asked a;

	descend = strtoull(shell("nm '%s' | awk '$3 ~ /^_ZL7descend/ { print $1; exit }'", target), NULL, 16);
	snprintf(stripped, sizeof(stripped), "%s/alone", directory);
	shell("cd %s && objcopy --only-keep-debug '%s' alone.debug && strip -o alone '%s'", directory, target, target);

	resolve_one(stripped, directory, descend + 4, &a);
	snprintf(want, sizeof(want), "[alone+%#llx]", (unsigned long long)descend);
	is_str(name(&a, 0, 0), want, "without symbols, a function is named after its start");
	forget(&a);
	for (int is_fini = 0; is_fini < 2; is_fini++) {
		resolve_one(stripped, directory, symbol_value(target, is_fini ? "_fini" : "_init") + 4, &a);
		is_str(name(&a, 0, 0), is_fini ? "_fini" : "_init",
		       "without symbols, what is run first and last is named");
		forget(&a);
	}

	shell("cd %s && objcopy --add-gnu-debuglink=alone.debug alone", directory);
	resolve_one(stripped, directory, churn + 4, &a);
	is_str(outermost(&a, 0), "churn", "a debug link leads to names");
	ok(frame(&a, 0, 0)->line > 0, "a debug link leads to lines");
	forget(&a);

	snprintf(id, sizeof(id), "%s", shell("readelf -n '%s' | sed -n 's/.*Build ID: //p'", target));
	shell("cd %s && mkdir -p .build-id/%.2s && mv alone.debug .build-id/%.2s/%s.debug", directory, id, id, id + 2);
	resolve_one(stripped, directory, churn + 4, &a);
	is_str(outermost(&a, 0), "churn", "a build-id leads to names");
	forget(&a);
	resolve_one(stripped, "/nowhere", churn + 4, &a);
	ok(name(&a, 0, 0) && name(&a, 0, 0)[0] == '[', "without debug files there are no names");
	forget(&a);

	if (*id) { /* a debug file of another build under the right name */
		shell("cp /bin/sh %s/.build-id/%.2s/%s.debug", directory, id, id + 2);
		resolve_one(stripped, directory, churn + 4, &a);
		ok(name(&a, 0, 0) && name(&a, 0, 0)[0] == '[', "a debug file of another build is not believed");
		forget(&a);
	}
}

static void test_refused(void)
{
	uint8_t wrong[20] = {1, 2, 3};
	struct csink_object object = {.path = target, .build_id = wrong, .build_id_len = sizeof(wrong)};
	uint64_t address = 0x1000;
	char path[64];
	struct asked a = ask(&address, 1);

	is_num(csink_symbols_resolve(a.p, &object, a.wants, 1), -ESTALE, "a file of another build is not used");
	object = (struct csink_object){.path = "/nowhere/x"};
	is_num(csink_symbols_resolve(a.p, &object, a.wants, 1), -ENOENT, "a missing file: ENOENT");
	object.path = "/etc/passwd";
	is_num(csink_symbols_resolve(a.p, &object, a.wants, 1), -ENOEXEC, "a text is no object");
	object.path = "/dev/zero";
	is_num(csink_symbols_resolve(a.p, &object, a.wants, 1), -ENOEXEC, "a device is no object");
	snprintf(path, sizeof(path), "%s/cut", directory);
	shell("head -c 5000 '%s' > %s", target, path);
	object.path = path;
	ok(csink_symbols_resolve(a.p, &object, a.wants, 1) >= 0 || 1, "a truncated object is survived");
	is_num(a.p->locations[1].nr_lines, 0, "a truncated object has no names");
	forget(&a);
}

/* ---- names ---- */

static void test_names(void)
{
	static const struct {
		const char *symbol, *name;
	} all[] = {
		{"main", "main"},
		{"memcpy@@GLIBC_2.14", "memcpy"},
		{"compute.constprop.0", "compute"},
		{"compute.isra.0.cold", "compute"},
		{"compute.part.0.constprop.12", "compute"},
		{"compute.llvm.123456789", "compute"},
		{"a.b", "a.b"},
		{".hidden", ".hidden"},
		{"_ZNKSt6vectorIiSaIiEE4sizeEv", "std::vector<int, std::allocator<int> >::size"},
		{"_ZN3foo3barEi.cold", "foo::bar"},
		{"_ZN4core3fmt5write17h0123456789abcdefE", "core::fmt::write"},
		{"_RNvCs1234_7mycrate3foo", "mycrate::foo"},
		{"_D8demangle4testFaZv", "demangle.test(char)"},
		{"_Zgarbage", "_Zgarbage"},
		{"_start", "_start"},
		{"runtime.mallocgc", "runtime.mallocgc"},
		{"main.(*T).Method", "main.(*T).Method"},
	};
	struct csink_profile *p = csink_profile_create();
	struct csink_profile_function function;
	char *signature;
	uint32_t i;

	for (i = 0; i < sizeof(all) / sizeof(*all); i++) {
		memset(&function, 0, sizeof(function));
		csink_symbol_name(p, all[i].symbol, "", &function);
		is_str(csink_profile_text(p, function.name), all[i].name, all[i].symbol);
	}
	signature = csink_symbol_signature("_ZN6shapes3mixEd.cold");
	is_str(signature, "shapes::mix(double)", "a signature has the parameters");
	free(signature);
	is_str(csink_symbol_signature("main"), NULL, "a C function has no signature");
	csink_profile_free(p);
}

static void test_perfmap(void)
{
	uint64_t addresses[] = {0x7000, 0x7105, 0x7110, 0x7305};
	struct asked a = ask(addresses, 4);
	uint64_t now = csink_clock_ns(CLOCK_REALTIME);
	char path[64], link[64];
	FILE *map;

	snprintf(path, sizeof(path), "%s/perf-1.map", directory);
	map = fopen(path, "w");
	fprintf(map,
		"garbage\n7100 10 old name\n7100 10 LazyCompile:~hot /x.js:1\n7300 6 %02000d\n7300 6 after\n"
		"ffffffffffffffff 10 wrap\n0 0 empty",
		0);
	fclose(map);
	is_num(csink_perfmap_resolve(a.p, path, 0, a.wants, 4), 2, "a perf map names what is in it");
	is_str(name(&a, 1, 0), "LazyCompile:~hot /x.js:1", "the latest name holds");
	is_str(name(&a, 2, 0), NULL, "an address behind a map entry has no name");
	is_str(name(&a, 3, 0), "after", "a line that is too long is left out whole");
	is_num(csink_perfmap_resolve(a.p, "/nowhere/perf-1.map", 0, a.wants, 4), -ENOENT, "a missing perf map: ENOENT");
	is_num(csink_perfmap_resolve(a.p, path, now, a.wants, 4), 2, "a map of a process that started just before");
	is_num(csink_perfmap_resolve(a.p, path, now + 60 * CSINK_NS_PER_S, a.wants, 4), -ESTALE,
	       "a map that is older than the process: ESTALE");
	snprintf(link, sizeof(link), "%s/perf-2.map", directory);
	is_num(symlink(path, link) ? -errno : csink_perfmap_resolve(a.p, link, 0, a.wants, 4), -ELOOP,
	       "a symbolic link to a map: ELOOP");
	if (!geteuid() && !chown(path, 65534, 65534))
		is_num(csink_perfmap_resolve(a.p, path, 0, a.wants, 4), -EPERM, "another user's map: EPERM");
	else
		skip("another user's map: EPERM", "only root can give a file to another user");
	forget(&a);
}

int main(void)
{
	ssize_t len = readlink("/proc/self/exe", target, sizeof(target) - 32);

	target[len > 0 ? len : 0] = 0;
	if (strrchr(target, '/'))
		strcpy(strrchr(target, '/'), "/../targets/inlines");
	if (!mkdtemp(directory) || access(target, R_OK)) {
		printf("Bail out! %s is not there\n", target);
		return 1;
	}
	against_addr2line(target, "_Z5churnPKhm");
	against_addr2line(target, "_ZN6shapes3sumINS_6SquareEEEdRKSt6vectorIT_SaIS3_EE");
	against_addr2line(target, "main");
	test_overloads();
	test_lambda();
	test_libc();
	test_plt();
	test_vdso();
	test_separate();
	test_refused();
	test_names();
	test_perfmap();
	shell("rm -rf %s", directory);
	return done();
}
