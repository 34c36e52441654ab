/* Prints what a function's source lines and instructions cost (report.h). Disassembly is objdump's. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/grow.h"
#include "launcher/base/json.h"
#include "launcher/base/regular.h"
#include "launcher/base/search.h"
#include "launcher/output/report_impl.h"
#include "launcher/symbols/disassemble.h"

#define AROUND 3      /* lines that are shown before and behind one that costs */
#define AROUND_CODE 6 /* and instructions */
#define MAX_LINE 512
#define MAX_LISTINGS 200      /* of one file: objdump runs for each */
#define MAX_CODE (1U << 20)   /* bytes before and behind an address that are disassembled */
#define MAX_SOURCE (64 << 20) /* bytes of a source file */
#define NO_FUNCTION_BYTES 64  /* of code around an address that is in no symbol */

extern char **environ;

struct annotator {
	struct printer r;
	struct csink_annotation data;
};

static void print_cost(const struct annotator *a, int64_t self, int64_t total)
{
	double share = csink_report_percent(self, a->data.sum);

	csink_report_style(&a->r, share >= 5 ? STYLE_HOT : STYLE_NONE);
	if (self)
		csink_text_print(a->r.out, "%8.2f", share);
	else
		csink_text_print(a->r.out, "%8s", "");
	if (total)
		csink_text_print(a->r.out, "%9.2f  ", csink_report_percent(total, a->data.sum));
	else
		csink_text_print(a->r.out, "%9s  ", "");
	csink_report_style(&a->r, STYLE_NONE);
}

static void print_text(const struct annotator *a, const char *text, uint32_t used)
{
	char plain[MAX_LINE], safe[4 * MAX_LINE];
	size_t at = 0;

	for (; *text && *text != '\n' && *text != '\r' && at + 9 < sizeof(plain); text++) {
		if (*text != '\t')
			plain[at++] = *text;
		else
			do
				plain[at++] = ' ';
			while (at % 8);
	}
	plain[at] = 0;
	csink_format_text(safe, sizeof(safe), plain, a->r.o->width > used + 20 ? a->r.o->width - used : 0);
	csink_text_print(a->r.out, "%s\n", safe);
}

/* ---- source ---- */

/* A line without its text. */
static void print_number(const struct annotator *a, const struct csink_annotated_line *line)
{
	print_cost(a, line->self, line->total);
	csink_text_print(a->r.out, "%7" PRId64 "\n", line->line);
}

/* Was a file written after the profile's start? Its line numbers may no longer match. */
static bool is_newer(const struct annotator *a, const char *path)
{
	struct stat st;

	return a->r.p->time_ns && !stat(path, &st) &&
	       st.st_mtim.tv_sec * (int64_t)CSINK_NS_PER_S + st.st_mtim.tv_nsec > a->r.p->time_ns;
}

/* Why a file's lines are shown without their text, and what to do. @err  of opening it. */
static void print_missing(const struct annotator *a, const char *path, int err)
{
	if (strchr("<([", *path))
		csink_text_print(a->r.out,
				 "%19snote: this code is in no file: its lines are shown without their text\n", "");
	else
		csink_text_print(a->r.out, "%19snote: %s cannot be read: %s; %s to see its lines\n", "", path,
				 csink_regular_why(err),
				 *path == '/' ? "restore the file"
					      : "run this in the directory that the path is relative to");
}

/* A source file of the Java virtual machine's languages, by its ending. */
static bool is_of_jvm(const char *path)
{
	static const char *const endings[] = {".java", ".scala", ".kt", ".clj"};
	const char *dot = strrchr(path, '.');

	for (size_t i = 0; dot && i < CSINK_ARRAY_SIZE(endings); i++)
		if (!strcmp(dot, endings[i]))
			return true;
	return false;
}

/*
 * Open a source file. The path of a Java file is relative to the directory where packages begin: the file is looked
 * for in the working directory, then where Maven, Gradle and others have packages begin. @at: receives its path.
 */
static FILE *open_source(const char *path, char *at, size_t bytes)
{
	static const char *const roots[] = {
		"",    "src/main/java/", "src/test/java/", "src/main/scala/", "src/main/kotlin/", "src/main/clojure/",
		"src/"};
	FILE *source = NULL;
	size_t nr = *path != '/' && is_of_jvm(path) ? CSINK_ARRAY_SIZE(roots) : 1;
	int err = 0; /* of the path itself */

	for (size_t i = 0; *path && !source && i < nr; i++) {
		if ((size_t)snprintf(at, bytes, "%s%s", roots[i], path) < bytes)
			source = csink_regular_fopen(at, 0, MAX_SOURCE);
		err = i ? err : errno;
	}
	errno = err;
	return source;
}

/* Lines from first to last - 1 of the annotation are of one file. */
static void print_file(const struct annotator *a, uint32_t first, uint32_t last)
{
	const struct csink_annotated_line *lines = a->data.lines;
	const char *path = csink_profile_text(a->r.p, lines[first].file);
	char where[4096];
	CSINK_AUTO_FCLOSE FILE *source = open_source(path, where, sizeof(where));
	CSINK_AUTO_FREE char *text = NULL;
	int64_t number = 0, shown = 0;
	size_t size = 0;
	uint32_t at = first;
	int err = errno;

	csink_report_style(&a->r, STYLE_BOLD);
	csink_text_print(a->r.out, "\n%8s%9s  %s\n", "self %", "total %",
			 source  ? where
			 : *path ? path
				 : "[no file is known]");
	csink_report_style(&a->r, STYLE_NONE);
	if (!source && *path)
		print_missing(a, path, err);
	if (source && is_newer(a, where))
		csink_text_print(
			a->r.out,
			"%19snote: the file was changed after the profile's start: line numbers may no longer match\n",
			"");
	for (; at < last && (!source || !lines[at].line); at++)
		print_number(a, &lines[at]);
	while (source && at < last && getline(&text, &size, source) > 0) {
		uint32_t before = at > first ? at - 1 : at;

		number++;
		if (number + AROUND < lines[at].line && (before == at || number > lines[before].line + AROUND))
			continue;
		if (shown && number > shown + 1)
			csink_text_print(a->r.out, "%19s...\n", "");
		shown = number;
		print_cost(a, number == lines[at].line ? lines[at].self : 0,
			   number == lines[at].line ? lines[at].total : 0);
		csink_text_print(a->r.out, "%7" PRId64 "  ", number);
		print_text(a, text, 28);
		at += number == lines[at].line;
	}
	for (; source && at == last && number < lines[last - 1].line + AROUND && getline(&text, &size, source) > 0;) {
		csink_text_print(a->r.out, "%19s%7" PRId64 "  ", "", ++number);
		print_text(a, text, 28);
	}
	for (; at < last; at++) /* the file is shorter than it was */
		print_number(a, &lines[at]);
}

static void print_source(const struct annotator *a)
{
	uint32_t first, last;

	for (first = 0; first < a->data.nr_lines; first = last) {
		bool any = false;

		for (last = first; last < a->data.nr_lines && a->data.lines[last].file == a->data.lines[first].file;
		     last++)
			any |= a->data.lines[last].total != 0;
		if (any)
			print_file(a, first, last);
	}
}

/* ---- instructions ---- */

static FILE *start_objdump(const char *path, const struct csink_code_range *range, pid_t *pid)
{
	char start[64], stop[64];
	char *args[] = {"objdump", "-d", "-C", "--no-show-raw-insn", start, stop, "--", (char *)path, NULL};
	/* The file is not trusted: objdump is ended whatever the file contains. */
	const struct rlimit seconds = {30, 30}, bytes = {8ULL << 30, 8ULL << 30};
	posix_spawn_file_actions_t actions;
	int fds[2], err;
	FILE *from;

	snprintf(start, sizeof(start), "--start-address=%#" PRIx64, range->start);
	snprintf(stop, sizeof(stop), "--stop-address=%#" PRIx64, range->end);
	if (pipe2(fds, O_CLOEXEC))
		return NULL;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, fds[1], STDOUT_FILENO);
	posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	err = posix_spawnp(pid, args[0], &actions, NULL, args, environ);
	posix_spawn_file_actions_destroy(&actions);
	close(fds[1]);
	if (!err) {
		prlimit(*pid, RLIMIT_CPU, &seconds, NULL);
		prlimit(*pid, RLIMIT_AS, &bytes, NULL);
	}
	from = err ? NULL : fdopen(fds[0], "r");
	if (!from)
		close(fds[0]);
	errno = err;
	return from;
}

struct instruction {
	char *text;
	uint64_t address;
	int64_t self, total;
};

struct listing {
	struct instruction *all;
	uint32_t nr;
	char *function; /* "<main>:", as objdump calls what it begins with */
};

static bool address_at(const char *line, uint64_t *address)
{
	char *end;

	*address = strtoull(line, &end, 16);
	return end != line && *end == ':';
}

/* What objdump writes, as far as it is instructions. */
static void read_listing(FILE *objdump, struct listing *l)
{
	CSINK_AUTO_FREE char *line = NULL;
	uint64_t address;
	uint32_t cap = 0;
	size_t size = 0;

	while (getline(&line, &size, objdump) > 0) {
		if (!l->function && line[0] != ' ' && strchr(line, '<') && strstr(line, ">:"))
			l->function = strdup(strchr(line, '<'));
		if (line[0] != ' ' || !address_at(line, &address) || CSINK_GROW(l->all, l->nr, cap))
			continue;
		l->all[l->nr++] = (struct instruction){.text = line, .address = address};
		line = NULL;
		size = 0;
	}
}

/* The instruction that an address is in: objdump lists them in order, the last one reaches up to the end. */
static struct instruction *instruction_at(struct listing *l, uint64_t end, uint64_t address)
{
	uint32_t behind = CSINK_LOWER(l->nr, i, l->all[i].address <= address);

	return behind && address < end ? &l->all[behind - 1] : NULL;
}

static void weigh_listing(const struct annotator *a, struct listing *l, uint64_t end, uint32_t first, uint32_t last)
{
	for (uint32_t k = first; k < last; k++) {
		const struct csink_annotated_address *sampled = &a->data.addresses[k];
		struct instruction *at = instruction_at(l, end, sampled->address);

		if (!at)
			continue;
		at->self = csink_add(at->self, sampled->self);
		at->total = csink_add(at->total, sampled->total);
	}
}

/* Those that cost, and those around them; all of them if everything is wanted. */
static void print_listing(const struct annotator *a, const struct listing *l)
{
	uint32_t shown = 0, next = 0; /* shown: up to here because of one before; next: the next that costs */

	for (uint32_t i = 0; i < l->nr; i++) {
		bool is_before;

		while (next < l->nr && (next < i || !l->all[next].total))
			next++;
		if (next == i)
			shown = i + AROUND_CODE + 1;
		is_before = next < l->nr && next - i <= AROUND_CODE;
		if (a->r.o->limit && i >= shown && !is_before)
			continue;
		if (a->r.o->limit && i && i >= shown && next - i == AROUND_CODE)
			csink_text_print(a->r.out, "%19s...\n", "");
		print_cost(a, l->all[i].self, l->all[i].total);
		print_text(a, l->all[i].text, 19);
	}
}

static void print_heading(const struct annotator *a, const char *path, const char *function)
{
	size_t len = function ? strcspn(function, "\n") : 0;

	csink_report_style(&a->r, STYLE_BOLD);
	csink_text_print(a->r.out, "\n%8s%9s  %s", "self %", "total %", path);
	if (len > 3) /* without "<" and ">:" */
		csink_text_print(a->r.out, ": %.*s", (int)len - 3, function + 1);
	csink_report_style(&a->r, STYLE_NONE);
	fputc('\n', a->r.out);
}

static void print_range(const struct annotator *a, const char *path, const struct csink_code_range *range,
			uint32_t first, uint32_t last)
{
	struct listing l = {0};
	pid_t pid;
	FILE *objdump = start_objdump(path, range, &pid);
	int err = errno;

	if (objdump) {
		read_listing(objdump, &l);
		fclose(objdump);
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	print_heading(a, path, l.function);
	if (!objdump)
		csink_text_print(a->r.out,
				 "objdump cannot be started (%s): no disassembly; it is in the package binutils\n",
				 strerror(err));
	weigh_listing(a, &l, range->end, first, last);
	print_listing(a, &l);
	while (l.nr)
		free(l.all[--l.nr].text);
	free(l.all);
	free(l.function);
}

/*
 * Find the places of some addresses of one file, and the function that each is in.
 * Returns 0, or the error of one that cannot be placed; *nr is how many come before it.
 */
static int find_ranges(struct csink_annotated_address *addresses, uint32_t *nr, const char *path, const char *build_id,
		       struct csink_code_range *ranges)
{
	for (uint32_t i = 0; i < *nr; i++) {
		uint64_t *at = &addresses[i].address;
		int err = csink_code_find(path, build_id, addresses[i].offset, at, &ranges[i]);

		if (err == -ENOENT && *at) {
			ranges[i].start = *at > NO_FUNCTION_BYTES ? *at - NO_FUNCTION_BYTES : 0;
			ranges[i].end = *at + NO_FUNCTION_BYTES;
		} else if (err) {
			*nr = i;
			return err;
		}
	}
	return 0;
}

static void print_module(struct annotator *a, uint32_t first, uint32_t last)
{
	struct csink_annotated_address *all = a->data.addresses + first;
	const struct csink_profile_mapping *m = &a->r.p->mappings[all->mapping];
	const char *path = csink_profile_text(a->r.p, m->file), *build_id = csink_profile_text(a->r.p, m->build_id);
	CSINK_AUTO_FREE struct csink_code_range *ranges = calloc(last - first, sizeof(*ranges));
	struct csink_code_range shown = {0};
	uint32_t nr = last - first, nr_shown = 0;
	int err = ranges ? find_ranges(all, &nr, path, build_id, ranges) : -ENOMEM;

	for (uint32_t i = 0; ranges && i < nr; i++) {
		if (all[i].address >= shown.start && all[i].address < shown.end)
			continue;
		if (++nr_shown > MAX_LISTINGS)
			break;
		shown = ranges[i];
		shown.end = CSINK_MIN(shown.end, all[i].address + MAX_CODE);
		shown.start = CSINK_MAX(shown.start, all[i].address > MAX_CODE ? all[i].address - MAX_CODE : 0);
		print_range(a, path, &shown, first + i, first + nr);
	}
	if (nr_shown > MAX_LISTINGS)
		csink_text_print(a->r.out, "\n%s: more than %d places: the rest is not disassembled\n", path,
				 MAX_LISTINGS);
	if (err == -ESTALE)
		csink_text_print(a->r.out, "\n%s is another build than the one that ran: no disassembly\n", path);
	else if (err)
		csink_text_print(a->r.out, "\n%s: %s: no disassembly\n", path,
				 err == -ENOEXEC ? "not an ELF file" : strerror(-err));
}

static void print_code(struct annotator *a)
{
	uint32_t first, last;

	for (first = 0; first < a->data.nr_addresses; first = last) {
		uint32_t mapping = a->data.addresses[first].mapping;
		bool any = false;

		for (last = first; last < a->data.nr_addresses && a->data.addresses[last].mapping == mapping; last++)
			any |= a->data.addresses[last].total != 0;
		if (any)
			print_module(a, first, last);
	}
}

/* ---- all together ---- */

static void print_verdict(const struct annotator *a)
{
	csink_report_style(&a->r, STYLE_BOLD);
	csink_text_print(a->r.out, "%.2f %% of %s in it, %.2f %% with what it called\n",
			 csink_report_percent(a->data.self, a->data.sum),
			 csink_profile_text(a->r.p, a->r.p->types[a->r.p->default_type].name),
			 csink_report_percent(a->data.total, a->data.sum));
	csink_report_style(&a->r, STYLE_NONE);
}

static void print_json(const struct annotator *a)
{
	struct csink_json json;
	uint32_t i;

	csink_json_init(&json, a->r.out, '{');
	csink_json_text(&json, "event", csink_profile_text(a->r.p, a->r.p->types[a->r.p->default_type].name));
	csink_json_number(&json, "sum", a->data.sum);
	csink_json_number(&json, "self", a->data.self);
	csink_json_number(&json, "total", a->data.total);
	csink_json_open(&json, "lines", '[');
	for (i = 0; i < a->data.nr_lines; i++) {
		csink_json_open(&json, NULL, '{');
		csink_json_text(&json, "file", csink_profile_text(a->r.p, a->data.lines[i].file));
		csink_json_number(&json, "line", a->data.lines[i].line);
		csink_json_number(&json, "self", a->data.lines[i].self);
		csink_json_number(&json, "total", a->data.lines[i].total);
		csink_json_close(&json, '}');
	}
	csink_json_close(&json, ']');
	csink_json_open(&json, "code", '[');
	for (i = 0; i < a->data.nr_addresses; i++) {
		csink_json_open(&json, NULL, '{');
		csink_json_text(&json, "module",
				csink_profile_text(a->r.p, a->r.p->mappings[a->data.addresses[i].mapping].file));
		csink_json_number(&json, "file_offset", (int64_t)a->data.addresses[i].offset);
		csink_json_number(&json, "self", a->data.addresses[i].self);
		csink_json_number(&json, "total", a->data.addresses[i].total);
		csink_json_close(&json, '}');
	}
	csink_json_close(&json, ']');
	csink_json_close(&json, '}');
}

int csink_report_annotate(FILE *out, const struct csink_profile *p, const struct csink_report_options *o,
			  const struct csink_rows *rows, const bool *picked, bool json)
{
	struct annotator a = {.r = {.out = out, .p = p, .o = o}};
	int err = p->nr_types ? csink_annotation_build(&a.data, p, rows, p->default_type, picked) : -EINVAL;

	if (err)
		return err;
	errno = 0;
	if (json) {
		print_json(&a);
	} else {
		print_verdict(&a);
		print_source(&a);
		fflush(out);
		print_code(&a);
	}
	csink_annotation_free(&a.data);
	return csink_report_flush(out);
}
