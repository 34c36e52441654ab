/*
 * The frames of one recording become locations: each is looked up in the modules of its time, which processes that
 * have them share.
 */
#include "launcher/collect/collect_frames.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "include/internal/base.h"
#include "include/internal/grow.h"
#include "launcher/base/hash.h"
#include "launcher/base/path.h"
#include "launcher/collect/code_lines.h"
#include "launcher/collect/jit_images.h"
#include "launcher/collect/v8_positions.h"
#include "launcher/profile/jvm_name.h"

#define CACHE_SLOTS 8192
#define MAX_TABLE_BYTES (1ULL << 30) /* of line tables, which are read anew for each position: seconds */
#define NOT_SHOWN UINT32_MAX         /* in place of a location */

/* Where frames were found, whatever their time. */
struct csink_frame_place {
	uint64_t frame;
	uint32_t location;
};

/* Where the file of a function was found, and of all that have the same names of a file and directories. */
struct csink_script_place {
	const struct csink_rec_code *code; /* the first one */
	csink_str_t file;
};

/* ---- modules ---- */

static csink_str_t hex_id(struct csink_profile *p, const uint8_t *id, uint32_t len)
{
	char text[2 * 20 + 1] = "";

	for (uint32_t i = 0; i < len; i++)
		sprintf(text + 2 * i, "%02x", id[i]);
	return csink_profile_str(p, text);
}

/* Returns its index + 1; 0 without memory. */
static uint32_t add_module(struct collector *c, const struct module *module, struct csink_profile_mapping mapping)
{
	if (CSINK_GROW(c->modules, c->nr_modules, c->cap_modules))
		return 0;
	mapping.file = module->path;
	mapping.build_id = hex_id(c->p, module->build_id, module->build_id_len);
	c->modules[c->nr_modules] = *module;
	c->modules[c->nr_modules].mapping = csink_profile_mapping_add(c->p, &mapping);
	return c->modules[c->nr_modules].mapping ? ++c->nr_modules : 0;
}

/* Code in no object is looked up by process, and never found here. */
static bool is_same_module(const struct module *a, const struct module *b)
{
	return a->path == b->path && !strcmp(a->root, b->root) && !a->anon_pid && !b->anon_pid &&
	       a->build_id_len == b->build_id_len && !memcmp(a->build_id, b->build_id, sizeof(a->build_id)) &&
	       a->nr_image == b->nr_image && (!a->nr_image || !memcmp(a->image, b->image, a->nr_image));
}

static uint32_t hash_module(const struct module *module)
{
	uint64_t hash = csink_hash_pair(module->path, csink_hash_bytes(module->build_id, sizeof(module->build_id)));

	hash = csink_hash_pair(hash, csink_hash_bytes(module->root, strlen(module->root)));
	return (uint32_t)csink_hash_pair(hash, csink_hash_bytes(module->image, module->nr_image));
}

static bool is_one_file(const char *a, const char *b)
{
	struct stat first, second;

	return !stat(a, &first) && !stat(b, &second) && first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

/*
 * The kernel names a file by its place, the loader by the symbolic links that it came along: the library's module is
 * the one that samples from outside belong to.
 */
static csink_str_t loaders_path(const struct collector *c, const struct module *module)
{
	for (uint32_t i = 0; i < c->nr_modules && module->build_id_len && !*module->root; i++) {
		const struct module *other = &c->modules[i];

		if (other->path != module->path && !*other->root && other->build_id_len == module->build_id_len &&
		    !memcmp(other->build_id, module->build_id, sizeof(module->build_id)) &&
		    is_one_file(csink_profile_text(c->p, other->path), csink_profile_text(c->p, module->path)))
			return other->path;
	}
	return module->path;
}

/* Returns the index + 1 of our module for the recording's; 0 without memory. */
static uint32_t find_module(struct collector *c, const struct csink_rec_module *from, int32_t pid, bool is_outside)
{
	struct csink_profile_mapping mapping = {.start = from->start, .limit = from->end, .offset = from->file_offset};
	struct module module = {.bias = from->bias, .is_vdso = from->is_vdso, .build_id_len = from->build_id_len};
	size_t root_len = csink_root_len(from->path);
	uint32_t ours;

	memcpy(module.root, from->path, root_len);
	module.path = csink_profile_str(c->p, from->is_vdso ? "[vdso]" : from->path + root_len);
	memcpy(module.build_id, from->build_id, from->build_id_len);
	if (is_outside)
		module.path = loaders_path(c, &module);
	module.is_library = !strncmp(csink_base_name(csink_profile_text(c->p, module.path)), "libcountersink.so", 17);
	ours = CSINK_TABLE_INTERN(c->module_table, hash_module(&module), is_same_module(&c->modules[id - 1], &module),
				  add_module(c, &module, mapping));
	if (ours)
		c->modules[ours - 1].pid = pid; /* the latest: the likeliest to be there still */
	return ours;
}

/* Code in no object: made at run time, or of an object that was never sighted. It is this process's alone. */
static uint32_t anon_module(struct csink_frames *f)
{
	struct module module = {.path = csink_profile_str(f->c->p, "[anon]"), .anon_pid = f->pid ? f->pid : -1};

	if (!f->anon)
		f->anon = add_module(f->c, &module, (struct csink_profile_mapping){.limit = INT64_MAX});
	return f->anon;
}

/* Returns the index + 1 of our module for an image that a just-in-time compiler registered; 0 without memory. Forked
 * processes share it. */
static uint32_t image_module(struct csink_frames *f, uint32_t index)
{
	const struct csink_rec_image *from = f->rec->images[index];
	struct module module = {.path = csink_profile_str(f->c->p, "[jit]"), .nr_image = from->nr_image};
	struct csink_profile_mapping mapping = {.start = from->base, .limit = from->base + CSINK_IMAGE_MAX_SPAN};
	struct collector *c = f->c;

	if (f->images[index])
		return f->images[index];
	module.image = malloc(module.nr_image + 1);
	if (!module.image)
		return 0;
	memcpy(module.image, from->image, module.nr_image);
	csink_jit_image_link(module.image, module.nr_image); /* what is none has no names */
	f->images[index] =
		CSINK_TABLE_INTERN(c->module_table, hash_module(&module), is_same_module(&c->modules[id - 1], &module),
				   add_module(c, &module, mapping));
	if (!f->images[index] || c->modules[f->images[index] - 1].image != module.image)
		free(module.image);
	return f->images[index];
}

/* ---- locations ---- */

static bool is_at(const struct csink_profile_location *location, uint32_t mapping, uint64_t address)
{
	return location->address == address && location->mapping == mapping;
}

/* A new one is put on the list to be named. */
static uint32_t add_location(struct collector *c, struct module *module, uint64_t address)
{
	uint32_t location = 0;

	if (!CSINK_GROW(module->wants, module->nr_wants, module->cap_wants))
		location = csink_profile_location_add(c->p, module->mapping, address + module->bias, NULL, 0);
	if (location)
		module->wants[module->nr_wants++] = (struct csink_want){address, location};
	return location;
}

/* The location at an address as the module's headers count it. 0 without memory. */
static uint32_t module_location(struct collector *c, struct module *module, uint64_t address)
{
	uint64_t biased = address + module->bias;

	return CSINK_TABLE_INTERN(c->location_table, (uint32_t)csink_hash_pair(biased, module->mapping),
				  is_at(&c->p->locations[id], module->mapping, biased),
				  add_location(c, module, address));
}

/* ---- functions of interpreters ---- */

/* The mapping that stands for a source file: the module of the file's functions. 0 without memory. */
static uint32_t source_mapping(struct collector *c, csink_str_t file)
{
	struct csink_profile_mapping mapping = {.file = file, .has_functions = 1, .has_filenames = 1, .has_lines = 1};

	return CSINK_TABLE_INTERN(c->source_table, csink_hash_number(file), c->p->mappings[id].file == file,
				  csink_profile_mapping_add(c->p, &mapping));
}

static bool is_line(const struct csink_profile *p, uint32_t location, const struct csink_profile_line *line)
{
	const struct csink_profile_line *has = &p->lines[p->locations[location].first_line];

	return has->function == line->function && has->line == line->line;
}

/* The location of a line of an interpreted function; processes share it. 0 without memory. */
static uint32_t line_location(struct collector *c, uint32_t mapping, const struct csink_profile_line *line)
{
	if (!mapping || !line->function)
		return 0;
	return CSINK_TABLE_INTERN(c->line_table, (uint32_t)csink_hash_pair(line->function, (uint64_t)line->line),
				  is_line(c->p, id, line), csink_profile_location_add(c->p, mapping, 0, line, 1));
}

/* Whether a function's line table may be read once more. */
static bool may_read_table(struct csink_frames *f, const struct csink_rec_code *code)
{
	if (code->nr_table <= MAX_TABLE_BYTES - f->table_bytes) {
		f->table_bytes += code->nr_table;
		return true;
	}
	if (!f->has_unread_tables)
		csink_collect_tally(f->c, CSINK_FACT_WARNING,
				    "a recording has more positions in long line tables than are looked up: "
				    "lines of some functions are not known");
	f->has_unread_tables = true;
	return false;
}

static int64_t table_line(struct csink_frames *f, const struct csink_rec_code *code, uint32_t position)
{
	return may_read_table(f, code) ? csink_code_line(code, position) : 0;
}

/*
 * JavaScript: the path of the script, the function's first line, and that of the position: the first one if it is not
 * known. False without memory.
 */
static bool place_script(struct csink_frames *f, const struct csink_rec_code *code, uint32_t position,
			 struct csink_profile_function *function, int64_t *line)
{
	char path[4096];
	const char *name = csink_profile_text(f->c->p, function->file);
	struct csink_v8_source source = {0};
	const struct csink_script *script;

	if (may_read_table(f, code))
		source = csink_v8_source(code, position);
	function->file = csink_profile_str(f->c->p, csink_script_path(name, path, sizeof(path)));
	script = csink_scripts_find(&f->c->scripts, function->file, csink_profile_text(f->c->p, function->file));
	if (!script)
		return false;
	*line = function->start_line = csink_script_line(script, source.start, source.length);
	if (source.is_known)
		*line = csink_script_line(script, source.place, source.length);
	return true;
}

/*
 * The file of a function. A relative name is that of a file in one of the directories that the process was in, the
 * first one that has it; where none has it, the name stays as it is. RubyGems has its functions left out of warnings by
 * the name "<internal:/path>", where Ruby's own, "<internal:kernel>", is of no file.
 */
static csink_str_t find_script_file(struct csink_frames *f, const struct csink_rec_code *code)
{
	static const char internal[] = "<internal:/";
	const char *name = code->text + strlen(code->text) + 1, *directory = name + strlen(name) + 1;
	const char *end = code->text + code->nr_names;
	char path[PATH_MAX];
	struct stat st;

	if (code->head.aux == CSINK_CODE_RUBY && !strncmp(name, internal, sizeof(internal) - 1))
		return csink_profile_strn(f->c->p, name + sizeof(internal) - 2,
					  strcspn(name + sizeof(internal) - 2, ">"));
	for (; directory < end && *name != '/'; directory += strlen(directory) + 1) {
		const char *below = name;

		while (!strncmp(below, "./", 2))
			below += 2;
		if (*directory == '/' && snprintf(path, sizeof(path), "%s/%s", directory, below) < (int)sizeof(path) &&
		    !stat(path, &st) && S_ISREG(st.st_mode))
			return csink_profile_str(f->c->p, path);
	}
	return csink_profile_str(f->c->p, name);
}

/* The function's file, NUL, and its directories, each ended by NUL. */
static const char *script_names(const struct csink_rec_code *code, size_t *bytes)
{
	const char *names = code->text + strlen(code->text) + 1;

	*bytes = (size_t)(code->text + code->nr_names - names);
	return names;
}

static bool has_names(const struct csink_rec_code *code, const struct csink_rec_code *same)
{
	size_t bytes, same_bytes;
	const char *names = script_names(code, &bytes), *same_names = script_names(same, &same_bytes);

	return code->head.aux == same->head.aux && bytes == same_bytes && !memcmp(names, same_names, bytes);
}

/* Find the file of a function, once for all functions of that file: each search costs a system call for each
 * directory. 0 without memory. */
static csink_str_t script_file(struct csink_frames *f, const struct csink_rec_code *code)
{
	size_t bytes;
	const char *names = script_names(code, &bytes);
	uint32_t at = CSINK_TABLE_INTERN(f->script_table, (uint32_t)csink_hash_bytes(names, bytes),
					 has_names(f->scripts[id - 1].code, code),
					 CSINK_APPEND(f->scripts, f->nr_scripts, f->cap_scripts,
						      (struct csink_script_place){code, find_script_file(f, code)}));

	return at ? f->scripts[at - 1].file : 0;
}

/* The location of a frame in registered code. 0 without memory. */
static uint32_t image_location(struct csink_frames *f, uint32_t image, uint32_t position)
{
	uint32_t ours = image_module(f, image);
	/* As of native frames: of a caller, inside its call. */
	uint64_t address = f->rec->images[image]->base + (position >> 1) - !(position & 1);

	return ours ? module_location(f->c, &f->c->modules[ours - 1], address) : 0;
}

/* From 3.13 on there is such a frame below each inlined call of a class, to check what __init__() returned. */
static bool is_cleanup(const struct csink_rec_code *code)
{
	static const char names[] = "__init__\0__init__";

	return code->head.aux == CSINK_CODE_PYTHON_LOCATIONS && code->nr_names >= sizeof(names) &&
	       !memcmp(code->text, names, sizeof(names));
}

/* In place of what the recording does not describe. 0 without memory. */
static uint32_t anon_location(struct csink_frames *f)
{
	return anon_module(f) ? module_location(f->c, &f->c->modules[anon_module(f) - 1], 0) : 0;
}

/* The location of an interpreter's frame, or NOT_SHOWN; [anon] if the recording lacks its function. 0 without memory.
 */
static uint32_t code_location(struct csink_frames *f, uint64_t frame)
{
	const struct csink_rec_code *code =
		csink_recorded_code_at(f->rec, (csink_ref_t)(frame >> 32 & ((CSINK_FRAME_CODE >> 32) - 1)));
	uint32_t image = csink_recorded_image_at(f->rec, (csink_ref_t)(frame >> 32 & ((CSINK_FRAME_CODE >> 32) - 1)));
	struct csink_profile *p = f->c->p;
	struct csink_profile_function function = {0};
	struct csink_profile_line line = {0};
	char name[4096];

	if (image != CSINK_RECORDED_NONE)
		return image_location(f, image, (uint32_t)frame);
	if (!code)
		return anon_location(f);
	if (is_cleanup(code))
		return NOT_SHOWN;
	function.name = function.system_name = csink_profile_str(p, code->text);
	function.file = script_file(f, code);
	function.language = csink_profile_str(p, csink_code_language(code));
	function.start_line = code->first_line <= INT32_MAX ? code->first_line : 0;
	if (code->head.aux != CSINK_CODE_V8)
		line.line = table_line(f, code, (uint32_t)frame);
	else if (!place_script(f, code, (uint32_t)frame, &function, &line.line))
		return 0;
	/* The table of a method has no first line of its own: it is the one that its code begins with. */
	if (csink_code_has_no_first_line(code)) {
		function.start_line = table_line(f, code, 0);
		function.name = csink_profile_str(
			p, csink_jvm_name(code->text, csink_profile_text(p, function.file), name, sizeof(name)));
	}
	line.function = csink_profile_function_add(p, &function);
	return line_location(f->c, source_mapping(f->c, function.file), &line);
}

/* Our module for the recording's: index + 1. 0 without memory. */
static uint32_t module_at(struct csink_frames *f, uint32_t index)
{
	if (!f->modules[index])
		f->modules[index] = find_module(f->c, f->rec->modules[index], f->pid,
						f->rec->header.engine == CSINK_ENGINE_OUTSIDE);
	return f->modules[index];
}

/*
 * A frame as recorded. Returns its location; 0 with f->err set; or NOT_SHOWN for a caller that is our library (the
 * first frame of a thread, an interposed call) and for Python's clean-up code. The program's own stacks are without
 * them.
 */
static uint32_t frame_location(struct csink_frames *f, uint64_t frame, uint64_t time_ns)
{
	struct csink_frame_place *cached = &f->cache[(frame ^ frame >> 13) % CACHE_SLOTS];
	uint64_t address = frame & ~CSINK_FRAME_EXACT;
	uint32_t index, ours, location;
	bool is_sole;

	if (cached->frame == frame && cached->location)
		return cached->location;
	if (frame & CSINK_FRAME_CODE) {
		location = code_location(f, frame);
		f->err = location ? f->err : -ENOMEM;
		*cached = (struct csink_frame_place){frame, location};
		return location;
	}
	/* A return address may be that of the next function or line: the call itself is what is meant. */
	if (!(frame & CSINK_FRAME_EXACT))
		address--;
	index = csink_epochs_find(&f->epochs, address, time_ns, &is_sole);
	ours = index == CSINK_NO_MODULE ? anon_module(f) : module_at(f, index);
	if (index != CSINK_NO_MODULE)
		address -= f->rec->modules[index]->bias;
	if (ours && !(frame & CSINK_FRAME_EXACT) && f->c->modules[ours - 1].is_library)
		location = NOT_SHOWN;
	else
		location = ours ? module_location(f->c, &f->c->modules[ours - 1], address) : 0;
	if (!location)
		f->err = -ENOMEM;
	else if (is_sole)
		*cached = (struct csink_frame_place){frame, location};
	return location;
}

/* ---- stacks ---- */

/* The location of a caller, as frame_location() has it. */
static inline uint32_t node_location(struct csink_frames *f, uint32_t index)
{
	const struct csink_recorded_node *node = &f->rec->nodes[index];

	if (!f->locations[index])
		f->locations[index] = node->pc & ~CSINK_FRAME_EXACT
					      ? frame_location(f, node->pc, f->rec->nodes[node->root].pc)
					      : NOT_SHOWN;
	return f->locations[index];
}

uint32_t csink_frames_leaf(struct csink_frames *f, uint64_t address, uint64_t time_ns)
{
	uint32_t location = frame_location(f, address | CSINK_FRAME_EXACT, time_ns);

	/* No library writes such a leaf, but a recording may have any. */
	if (location == NOT_SHOWN) {
		location = anon_location(f);
		f->err = location ? f->err : -ENOMEM;
	}
	return location;
}

uint32_t csink_frames_callers(struct csink_frames *f, uint32_t node, uint32_t *callers)
{
	const struct csink_recorded_node *nodes = f->rec->nodes;
	uint32_t nr = 0, location;
	bool is_shown = true; /* whether the next frame inwards is shown; at first: the leaf */

	f->leaf_is_evaluator = false;
	for (; node != CSINK_RECORDED_NONE && nodes[node].parent != CSINK_RECORDED_NONE && !f->err;
	     node = nodes[node].parent) {
		location = node_location(f, node);
		/* This frame replaces the native frame that ran it. */
		if ((nodes[node].pc & (CSINK_FRAME_CODE | CSINK_FRAME_EVALUATED)) ==
			    (CSINK_FRAME_CODE | CSINK_FRAME_EVALUATED) &&
		    is_shown) {
			f->leaf_is_evaluator |= !nr;
			nr -= nr > 0;
		}
		is_shown = location != NOT_SHOWN;
		if (is_shown)
			callers[nr++] = location;
	}
	return nr;
}

/* ---- all together ---- */

/* The program itself comes first: readers of pprof files take the first mapping for it. */
static void take_program(struct csink_frames *f)
{
	for (uint32_t i = 0; i < f->rec->nr_modules; i++) {
		const char *path = f->rec->modules[i]->path;

		if (!strcmp(path + csink_root_len(path), f->rec->header.exe)) {
			module_at(f, i);
			return;
		}
	}
}

int csink_frames_open(struct csink_frames *f, struct collector *c, const struct csink_recorded *rec, int32_t pid)
{
	int err;

	*f = (struct csink_frames){.c = c, .rec = rec, .pid = pid};
	err = csink_epochs_build(&f->epochs, rec);
	if (err == -E2BIG) {
		csink_collect_tally(c, CSINK_FACT_WARNING,
				    "a recording has modules that lie over each other without end: "
				    "its addresses are not named");
		err = 0; /* an empty index finds nothing */
	}
	f->modules = calloc(rec->nr_modules + 1, sizeof(*f->modules));
	f->images = calloc(rec->nr_images + 1, sizeof(*f->images));
	f->locations = calloc(rec->nr_nodes + 1, sizeof(*f->locations));
	f->cache = calloc(CACHE_SLOTS, sizeof(*f->cache));
	if (err || !f->modules || !f->images || !f->locations || !f->cache)
		return f->err = -ENOMEM;
	if (!c->nr_modules)
		take_program(f);
	return 0;
}

void csink_frames_close(struct csink_frames *f)
{
	csink_epochs_free(&f->epochs);
	free(f->modules);
	free(f->images);
	free(f->locations);
	free(f->cache);
	free(f->scripts);
	csink_table_free(&f->script_table);
}
