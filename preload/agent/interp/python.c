/*
 * CPython's frames: 3.6 to 3.14, release builds with a GIL. Runs in the handler of the thread whose frames are read, so
 * only a store of this thread can be unfinished: the newest group is checked, all others are whole.
 * Offsets by version: preload/core/python_layout.h.
 */
#include <elf.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

#include "include/internal/base.h"
#include "preload/agent/interp/interp.h"
#include "preload/core/python_layout.h"

enum {
	CHUNK_SIZE = 8, /* of a chunk of frames: its bytes */
	CHUNK_MAX = 1 << 30,
	MAX_CHECKS = 64, /* system calls for one walk, after which links are taken as wrong */
};

#define UNKNOWN UINTPTR_MAX

/* What find() keeps in csink_interpreter.data. */
enum {
	DATA_LAYOUT,
	DATA_STATE,
	DATA_CURRENT,
	DATA_CODE_TYPE,
	DATA_VARIABLE,    /* from 3.14, for csink_interp_thread_local(); 0: DATA_STATE is called */
	DATA_VARIABLE_AT, /* the state's offset there */
};

typedef uintptr_t (*state_fn)(void);

static const struct csink_python_layout *layout_of(const struct csink_interp_walk *walk)
{
	return (const struct csink_python_layout *)walk->interpreter->data[DATA_LAYOUT];
}

/* ---- finding ----------------------------------------------------------------------------------------------------- */

/* What PyGILState_GetThisThreadState() calls, in one version or another. */
static void find_calls(const struct csink_elf_view *object, int minor, struct csink_interpreter *to)
{
	const char *const names[] = {"pthread_getspecific", minor < 7 ? "PyThread_get_key_value" : "PyThread_tss_get",
				     "PyThread_tss_is_created"};

	for (size_t i = 0; i < CSINK_ARRAY_SIZE(names); i++)
		to->calls[i] = (struct csink_interp_call){csink_elf_slot(object, names[i]),
							  csink_elf_look(object, names[i], STT_FUNC, NULL)};
}

/*
 * From 3.14 on PyGILState_GetThisThreadState() reads a thread-local variable. In a program it does so itself. In a
 * shared library it calls __tls_get_addr(), which may allocate memory: not to be called in a handler, so the variable's
 * place is taken from the instructions. False: they are others.
 */
static bool find_variable(const struct csink_elf_view *object, uintptr_t function, struct csink_interpreter *to)
{
	enum { FIRST = 12, BYTES = 40 }; /* of the function: where they begin, at most; all that are looked at */
	uint8_t code[BYTES];
	int32_t place, offset = 0;

	if (!CSINK_INTERP_HAS_THREAD_LOCAL || !object->copy(code, (void *)function, sizeof(code)))
		return false;
	for (uint32_t i = 0; i < FIRST; i++) {
		const uint8_t *at = code + i;

		if (!memcmp(at, "\x64\x48\x8b\x04\x25", 5)) /* mov %fs:..., %rax */
			return true;
		if (memcmp(at, "\x48\x8d\x3d", 3) != 0) /* lea place(%rip), %rdi */
			continue;
		memcpy(&place, at + 3, sizeof(place));
		to->data[DATA_VARIABLE] = function + i + 7 + (uint64_t)(int64_t)place;
		for (at += 7; at < code + BYTES - 14 && (*at == 0x66 || *at == 0x48);) /* prefixes of the call */
			at++;
		at += *at == 0xe8 ? 5 : 6;
		/* mov offset(%rax), %rax; where the place has the offset, too: mov (%rax), %rax */
		if (!memcmp(at, "\x48\x8b\x80", 3))
			memcpy(&offset, at + 3, sizeof(offset));
		else if (memcmp(at, "\x48\x8b\x00", 3) != 0)
			return false;
		to->data[DATA_VARIABLE_AT] = (uint64_t)(int64_t)offset;
		return true;
	}
	return false;
}

static int find(const struct csink_elf_view *object, struct csink_interpreter *to, const char **why)
{
	uintptr_t state, current;
	struct csink_python python;
	int is = csink_python_find(object, &python, why);

	if (is <= 0)
		return is;
	state = csink_elf_look(object, "PyGILState_GetThisThreadState", STT_FUNC, NULL);
	current = python.layout->minor >= 12 ? state
					     : csink_elf_look(object, "_PyThreadState_UncheckedGet", STT_FUNC, NULL);
	if (!current) {
		*why = csink_python_unsupported;
		return -1;
	}
	to->data[DATA_LAYOUT] = (uintptr_t)python.layout;
	to->data[DATA_STATE] = to->code = state;
	to->data[DATA_CURRENT] = current;
	to->data[DATA_CODE_TYPE] = python.code_type;
	if (python.layout->minor < 14) {
		find_calls(object, python.layout->minor, to);
	} else if (!find_variable(object, state, to)) {
		*why = csink_python_unknown;
		return -1;
	}
	to->evaluator = python.layout->chain == CSINK_PYTHON_COUNT ? python.evaluator : 0;
	to->evaluator_end = python.layout->chain == CSINK_PYTHON_COUNT ? python.evaluator_end : 0;
	return 1;
}

/* ---- functions --------------------------------------------------------------------------------------------------- */

/* A str as UTF-8, cut at CSINK_PYTHON_MAX_TEXT, and a NUL. Returns how many bytes; 0: it cannot be read. */
static uint32_t copy_str(struct csink_interp_walk *walk, uintptr_t str, char *to)
{
	const struct csink_python_layout *layout = layout_of(walk);
	uint64_t length, state, word = 0;
	uint32_t nr = 0, width, have = 0;
	uintptr_t at;

	if (!csink_interp_load(walk, str + CSINK_PYTHON_VAR_SIZE, &length) ||
	    !csink_interp_load(walk, str + CSINK_PYTHON_STR_STATE, &state))
		return 0;
	width = (uint32_t)state >> 2 & 7;
	if (width != 1 && width != 2 && width != 4)
		return 0;
	at = str + (state & CSINK_PYTHON_STR_ASCII ? layout->ascii : layout->compact);
	for (uint64_t i = 0; i < length && nr + 4 < CSINK_PYTHON_MAX_TEXT; i++) {
		uint32_t c;

		if (!have) {
			if (!csink_interp_load(walk, at, &word))
				return 0;
			at += 8;
			have = 8 / width;
		}
		c = width == 1 ? (uint8_t)word : width == 2 ? (uint16_t)word : (uint32_t)word;
		word = width == 4 ? word >> 32 : word >> 8 * width;
		have--;
		nr += csink_python_put_char(to + nr, c);
	}
	to[nr++] = 0;
	return nr;
}

static uint32_t names(struct csink_interp_walk *walk, const struct csink_code_source *source, char *to, uint32_t room)
{
	uint32_t name, file;

	if (room < 2 * CSINK_PYTHON_MAX_TEXT)
		return 0;
	name = copy_str(walk, source->name, to);
	file = name ? copy_str(walk, source->file, to + name) : 0;
	return file ? name + file : 0;
}

static bool describe(struct csink_interp_walk *walk, uintptr_t code, struct csink_code_source *to)
{
	const struct csink_python_layout *layout = layout_of(walk);
	uint64_t name, file, table, bytes, first_line;

	if (!csink_interp_load(walk, code + layout->name, &name) ||
	    !csink_interp_load(walk, code + layout->file, &file) ||
	    !csink_interp_load(walk, code + layout->table, &table) ||
	    !csink_interp_load(walk, code + layout->first_line, &first_line) ||
	    !csink_interp_load(walk, table + CSINK_PYTHON_VAR_SIZE, &bytes))
		return false;
	*to = (struct csink_code_source){.kind = layout->kind,
					 .first_line = (uint32_t)first_line,
					 .names = names,
					 .name = name,
					 .file = file,
					 .table = table + CSINK_PYTHON_BYTES_TEXT,
					 .table_bytes = (uint32_t)CSINK_MIN(bytes, (uint64_t)UINT32_MAX)};
	return true;
}

/* ---- identity: of whole code objects, with plain loads ---- */

/* The two halves of the product of two words: independent of other pairs, so that the processor overlaps them. */
static inline uint64_t mix(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)(a ^ 0x9fb21c651e98df25ULL) * (b ^ 0xc2b2ae3d27d4eb4fULL);

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Before 3.12 code objects have no number, and their addresses are reused at once: the content identifies them. */
static uint64_t mix_content(uintptr_t name, uintptr_t file, uintptr_t table)
{
	uint64_t bytes = csink_load_known(table + CSINK_PYTHON_VAR_SIZE);
	uintptr_t text = table + CSINK_PYTHON_BYTES_TEXT;
	uint64_t h = mix(csink_load_known(name + CSINK_PYTHON_STR_HASH),
			 csink_load_known(file + CSINK_PYTHON_STR_HASH)),
		 last;
	uint32_t at = 0, end = (uint32_t)CSINK_MIN(bytes, (uint64_t)CSINK_PYTHON_TABLE_SEEN);

	for (; at + 16 <= end; at += 16)
		h += mix(csink_load_known(text + at) + at, csink_load_known(text + at + 8));
	if (at + 8 <= end)
		h += mix(csink_load_known(text + at) + at, at);
	/* In a shorter table some of the last eight bytes belong to its object's head, and are shifted out. */
	last = csink_load_known(text + bytes - 8);
	return h + mix(bytes < 8 ? last >> 8 * (8 - bytes) % 64 : last, bytes << 32);
}

/* A hash by which functions differ within a process. The code object is whole, and so are the objects it refers to. */
static inline uint64_t identity_of(const struct csink_interp_walk *walk, const struct csink_python_layout *layout,
				   uintptr_t code)
{
	uintptr_t name = csink_load_known(code + layout->name), file = csink_load_known(code + layout->file);
	uintptr_t table = csink_load_known(code + layout->table);
	uint64_t first_line = (uint32_t)csink_load_known(code + layout->first_line);
	uint32_t version = layout->version ? (uint32_t)csink_load_known(code + layout->version) : 0;
	uint64_t h =
		mix(code, name) + mix(file + 1, table) + mix(first_line << 32 | version, walk->interpreter->module);

	return version ? h : h + mix_content(name, file, table);
}

static bool can_read(struct csink_interp_walk *walk, uintptr_t at, uintptr_t bytes)
{
	uint64_t word;

	return csink_interp_load(walk, at, &word) && csink_interp_load(walk, at + bytes - 8, &word);
}

/* A code object that may be none: the newest frame may be on its way in or out. A live one keeps what it refers to. */
static bool is_code(struct csink_interp_walk *walk, uintptr_t code)
{
	const struct csink_python_layout *layout = layout_of(walk);
	uint64_t references, type;
	uintptr_t table, bytes;

	if (!csink_interp_load(walk, code, &references) || !csink_python_is_alive(references) ||
	    !csink_interp_load(walk, code + CSINK_PYTHON_OBJECT_TYPE, &type) ||
	    type != walk->interpreter->data[DATA_CODE_TYPE] || !can_read(walk, code, layout->bytecode))
		return false;
	if (!walk->is_unsure)
		return true;
	table = csink_load_known(code + layout->table);
	return can_read(walk, csink_load_known(code + layout->name), CSINK_PYTHON_STR_STATE) &&
	       can_read(walk, csink_load_known(code + layout->file), CSINK_PYTHON_STR_STATE) &&
	       csink_interp_load(walk, table + CSINK_PYTHON_VAR_SIZE, &bytes) &&
	       can_read(walk, table, CSINK_PYTHON_BYTES_TEXT + CSINK_MIN(bytes, (uintptr_t)CSINK_PYTHON_TABLE_SEEN)) &&
	       can_read(walk, table + CSINK_PYTHON_BYTES_TEXT, bytes);
}

/* Add one frame. False: the code object cannot be read or is none, or there is no room. */
static bool take_frame(struct csink_interp_walk *walk, uintptr_t frame, uintptr_t code)
{
	const struct csink_python_layout *layout = layout_of(walk);
	uint64_t position;

	if (walk->is_settled && code >> 12 && frame >> 12 &&
	    csink_load_known(code + CSINK_PYTHON_OBJECT_TYPE) == walk->interpreter->data[DATA_CODE_TYPE]) {
		position = csink_load_known(frame + layout->position);
	} else if (walk->is_settled || !is_code(walk, code) ||
		   !csink_interp_load(walk, frame + layout->position, &position)) {
		walk->is_broken = true;
		return false;
	}
	return csink_interp_frame(walk, identity_of(walk, layout, code), code,
				  csink_python_position(layout, code, position));
}

/* ---- groups of several frames: from 3.11 ---- */

/* The frames of one call of the evaluator. */
struct group {
	uintptr_t cframe, previous; /* its CFrame, to 3.12, and that of the next call outwards */
	uintptr_t frame;            /* the newest one */
	uintptr_t last;             /* the entry, or the shim after it */
	uintptr_t outer;            /* the newest frame of the next group outwards; 0: none; UNKNOWN */
};

/* Find where the group of a newest frame ends. Only the links are loaded. False: the links are wrong. */
static bool find_end(struct csink_interp_walk *walk, struct group *group)
{
	const struct csink_python_layout *layout = layout_of(walk);
	uint64_t frame = group->frame, previous, owner;

	for (uint32_t nr = 0; frame && nr < CSINK_PYTHON_MAX_CHAIN; nr++, frame = previous) {
		if (frame % sizeof(void *) || walk->load.nr_checks > MAX_CHECKS ||
		    !csink_interp_load_known(walk, frame + layout->previous, &previous) ||
		    !csink_interp_load_known(walk, frame + layout->owner, &owner) ||
		    (uint8_t)owner > CSINK_PYTHON_OWNER_MAX)
			return false;
		group->last = frame;
		group->outer = previous;
		if (csink_python_is_last(layout, owner))
			return true;
	}
	/* The group has more frames than a stack has room for: its end is not needed. */
	group->outer = UNKNOWN;
	return frame != 0;
}

/* Add the frames of a group, whose links have been followed. Only the first of them can be unfinished. */
static void take_group(struct csink_interp_walk *walk, const struct group *group)
{
	const struct csink_python_layout *layout = layout_of(walk);
	bool has_last = layout->chain == CSINK_PYTHON_ENTRY;
	uint64_t frame = group->frame, code;

	for (bool more = true; more && (has_last || frame != group->last);) {
		more = frame != group->last && !walk->is_full;
		if (!csink_interp_load(walk, frame + layout->code, &code) ||
		    !take_frame(walk, frame, csink_python_untag(code)))
			break;
		walk->is_settled = !walk->is_unsure;
		csink_interp_load(walk, frame + layout->previous, &frame);
	}
	csink_interp_group(walk, has_last ? group->cframe : group->last);
}

/* The state has a CFrame of its own, the root of the list, which belongs to no call of the evaluator. */
static bool is_root(uintptr_t cframe, uintptr_t state)
{
	return cframe - state < CSINK_PYTHON_STATE_BYTES;
}

/* Load what a CFrame has: its newest frame, and the CFrame of the next call outwards. */
static bool load_cframe(struct csink_interp_walk *walk, uintptr_t cframe, struct group *group)
{
	const struct csink_python_layout *layout = layout_of(walk);

	group->cframe = cframe;
	return csink_interp_load(walk, cframe + layout->cframe_frame, &group->frame) &&
	       csink_interp_load(walk, cframe + layout->cframe_previous, &group->previous);
}

/*
 * 3.11 and 3.12 link a CFrame before they store its frame in it. The newest CFrame's frame is valid if the frame beyond
 * the group's end is the one in the next CFrame outwards; if not, the newest group is that of the next one.
 */
static bool leads_on(struct csink_interp_walk *walk, uintptr_t state, const struct group *group)
{
	struct group next;

	return group->outer == UNKNOWN || is_root(group->previous, state) ||
	       (load_cframe(walk, group->previous, &next) && next.frame == group->outer);
}

/*
 * The newest of the chunks that frames are pushed to. A state refers to a chunk only while it is mapped. In a new one,
 * the size may still be 0.
 */
static void know_chunk(struct csink_interp_walk *walk, uintptr_t state)
{
	uintptr_t chunk, bytes;

	if (walk->is_unsure || !csink_interp_load(walk, state + layout_of(walk)->chunk, &chunk) || !(chunk >> 12))
		return;
	bytes = csink_load_known(chunk + CHUNK_SIZE);
	if (bytes < 8 || bytes > CHUNK_MAX)
		return;
	walk->known = chunk;
	walk->known_bytes = bytes - 7; /* addresses of words */
}

/*
 * Does a CFrame refer to a frame? Links alone do not show that: garbage can have links that look right. In 3.12 the
 * shim at the end is a local variable of the same call.
 */
static bool has_frame(struct csink_interp_walk *walk, const struct group *group)
{
	const struct csink_python_layout *layout = layout_of(walk);
	uint64_t code;

	if (layout->chain == CSINK_PYTHON_SHIM &&
	    group->last - group->cframe + CSINK_PYTHON_NEAR >= 2 * CSINK_PYTHON_NEAR)
		return false;
	return (layout->chain == CSINK_PYTHON_SHIM && group->frame == group->last) ||
	       (csink_interp_load(walk, group->frame + layout->code, &code) && is_code(walk, code));
}

/* A CFrame and its group can be followed. */
static bool load_group(struct csink_interp_walk *walk, uintptr_t state, uintptr_t cframe, struct group *group)
{
	return load_cframe(walk, cframe, group) && (group->previous > cframe || is_root(group->previous, state)) &&
	       find_end(walk, group);
}

/* Is the newest CFrame whole? Then its group can be followed, and its link to the previous CFrame is valid. */
static bool is_newest_whole(struct csink_interp_walk *walk, uintptr_t state, uintptr_t cframe, struct group *group)
{
	return load_group(walk, state, cframe, group) && leads_on(walk, state, group) && has_frame(walk, group);
}

/*
 * Where the newest CFrame is not whole yet, even its link to the one before may still be to come. But in one build each
 * CFrame lies at one distance below the CFA of its evaluator's call, which was learnt from those that are whole.
 */
static void learn_distance(struct csink_interp_walk *walk, uintptr_t cframe)
{
	uint64_t *distance = (uint64_t *)&walk->interpreter->learnt;

	if (__atomic_load_n(distance, __ATOMIC_RELAXED))
		return;
	csink_interp_find_cfas(walk);
	for (uint32_t i = 0; i < walk->native->nr_frames; i++) {
		if (walk->room->cfas[i] > cframe && walk->room->cfas[i] != UINTPTR_MAX) {
			__atomic_store_n(distance, walk->room->cfas[i] - cframe, __ATOMIC_RELAXED);
			return;
		}
	}
}

/* The CFrame at @at, in a native frame that begins at @low and ends at @high, is whole. */
static bool is_whole(struct csink_interp_walk *walk, uintptr_t state, uintptr_t at, uintptr_t low, uintptr_t high,
		     struct group *group)
{
	if (!load_cframe(walk, at, group) || !find_end(walk, group))
		return false;
	if (layout_of(walk)->chain == CSINK_PYTHON_SHIM)
		return group->last >= low && group->last < high;
	return leads_on(walk, state, group) && (group->previous >= high || is_root(group->previous, state));
}

/* The group of the call outside the one with @cframe, which is not whole. False: it is not known. */
static bool find_outer(struct csink_interp_walk *walk, uintptr_t state, uintptr_t cframe, struct group *group)
{
	uint64_t distance = __atomic_load_n(&walk->interpreter->learnt, __ATOMIC_RELAXED);
	const uintptr_t *cfas = walk->room->cfas;

	csink_interp_find_cfas(walk);
	for (uint32_t i = 1; i < walk->native->nr_frames && distance; i++) {
		uintptr_t at = cfas[i] - distance;

		if (cfas[i] != UINTPTR_MAX && at > cframe && at >= cfas[i - 1] &&
		    is_whole(walk, state, at, cfas[i - 1], cfas[i], group))
			return true;
	}
	walk->is_broken = true;
	return false;
}

/* 3.11 and 3.12: the newest group that is whole. False: there is none, or it is not known. */
static bool find_newest(struct csink_interp_walk *walk, uintptr_t state, struct group *group)
{
	uintptr_t cframe;

	if (!csink_interp_load(walk, state + layout_of(walk)->newest, &cframe) || is_root(cframe, state))
		return false;
	if (!is_newest_whole(walk, state, cframe, group))
		return find_outer(walk, state, cframe, group);
	learn_distance(walk, cframe);
	return true;
}

/* 3.11: each CFrame has a group, and is its record. */
static void walk_entries(struct csink_interp_walk *walk, uintptr_t state)
{
	struct group group;

	know_chunk(walk, state);
	if (!find_newest(walk, state, &group))
		return;
	for (take_group(walk, &group); !is_root(group.previous, state) && !walk->is_full; take_group(walk, &group)) {
		if (!load_group(walk, state, group.previous, &group)) {
			walk->is_broken = true;
			return;
		}
	}
}

/* From 3.12: the shim at the end of a group is its record. */
static void walk_shims(struct csink_interp_walk *walk, uintptr_t state)
{
	const struct csink_python_layout *layout = layout_of(walk);
	struct group group;
	uint32_t nr = 0;

	know_chunk(walk, state);
	if (layout->minor == 12 ? !find_newest(walk, state, &group)
				: !csink_interp_load(walk, state + layout->newest, &group.frame) || !group.frame ||
					  !find_end(walk, &group))
		return;
	for (take_group(walk, &group); group.outer && !walk->is_full; take_group(walk, &group)) {
		group.frame = group.outer;
		if (nr++ == CSINK_PYTHON_MAX_CHAIN || !find_end(walk, &group)) {
			walk->is_broken = true;
			return;
		}
	}
}

/* ---- 3.10 -------------------------------------------------------------------------------------------------------- */

/* CFrames and frames are two lists of equal length, except while the newest CFrame's frame is not linked. */
static uint32_t count_links(struct csink_interp_walk *walk, uintptr_t from, uint16_t link, uintptr_t state)
{
	uint32_t nr = 0;

	while (from && !is_root(from, state) && nr < CSINK_PYTHON_MAX_CHAIN &&
	       csink_interp_load(walk, from + link, &from))
		nr++;
	return nr;
}

static void walk_cframes(struct csink_interp_walk *walk, uintptr_t state)
{
	const struct csink_python_layout *layout = layout_of(walk);
	uint32_t nr_frames, nr_cframes;
	uintptr_t frame, cframe, code, type;

	if (!csink_interp_load(walk, state + CSINK_PYTHON_STATE_FRAME, &frame) ||
	    !csink_interp_load(walk, state + layout->newest, &cframe) ||
	    !csink_interp_load(walk, frame + layout->code, &code) ||
	    !csink_interp_load(walk, code + CSINK_PYTHON_OBJECT_TYPE, &type) ||
	    type != walk->interpreter->data[DATA_CODE_TYPE])
		return;
	nr_cframes = count_links(walk, cframe, layout->cframe_previous, state);
	/* These frames are on the heap, in hundreds of pages in a deep recursion: the pages are not checked one by one.
	 * The newest frame has been checked. */
	walk->is_settled = !walk->is_unsure;
	nr_frames = count_links(walk, frame, layout->previous, state);
	walk->is_settled = false;
	for (; nr_cframes > nr_frames; nr_cframes--)
		csink_interp_load(walk, cframe + layout->cframe_previous, &cframe);
	while (frame && csink_interp_load(walk, frame + layout->code, &code) && take_frame(walk, frame, code)) {
		csink_interp_group(walk, nr_frames > nr_cframes ? 0 : cframe);
		if (nr_frames-- == nr_cframes && nr_cframes) {
			nr_cframes--;
			csink_interp_load(walk, cframe + layout->cframe_previous, &cframe);
		}
		csink_interp_load(walk, frame + layout->previous, &frame);
		walk->is_settled = !walk->is_unsure;
	}
}

/* ---- to 3.9 ------------------------------------------------------------------------------------------------------ */

static void walk_frames(struct csink_interp_walk *walk, uintptr_t state)
{
	const struct csink_python_layout *layout = layout_of(walk);
	uintptr_t frame, code;

	if (!csink_interp_load(walk, state + CSINK_PYTHON_STATE_FRAME, &frame))
		return;
	while (frame && csink_interp_load(walk, frame + layout->code, &code) && take_frame(walk, frame, code) &&
	       csink_interp_load(walk, frame + layout->previous, &frame)) {
		csink_interp_group(walk, 0);
		walk->is_settled = !walk->is_unsure;
	}
}

/* ---- all versions ---- */

/*
 * To 3.11: the state that holds the GIL, if it belongs to this thread; in a subinterpreter it is not the state that
 * PyGILState has. It may just have been freed. A state belongs to the thread that made it, until another thread takes
 * it: a thread has one state in an interpreter, which is @own.
 */
static uintptr_t current_of(struct csink_interp_walk *walk, uintptr_t own)
{
	uintptr_t now = ((state_fn)walk->interpreter->data[DATA_CURRENT])();
	uint64_t thread, interpreter, its;

	if (now && now != own && csink_interp_load(walk, now + layout_of(walk)->thread_id, &thread) &&
	    thread == (uintptr_t)pthread_self() &&
	    csink_interp_load(walk, own + CSINK_PYTHON_STATE_INTERPRETER, &interpreter) &&
	    csink_interp_load(walk, now + CSINK_PYTHON_STATE_INTERPRETER, &its) && its != interpreter) {
		walk->is_unsure = true;
		return now;
	}
	return own;
}

/* The state of the thread whose frames run here. 0: none. */
static uintptr_t state_of(struct csink_interp_walk *walk)
{
	const uint64_t *data = walk->interpreter->data;
	uintptr_t state = 0;
	uint64_t thread;

	if (!data[DATA_VARIABLE])
		state = ((state_fn)data[DATA_STATE])();
	else
		csink_interp_thread_local(walk, data[DATA_VARIABLE], data[DATA_VARIABLE_AT], &state);
	if (layout_of(walk)->minor >= 14 && state &&
	    (!csink_interp_load(walk, state + layout_of(walk)->thread_id, &thread) ||
	     thread != (uintptr_t)pthread_self()))
		return 0;
	/*
	 * From 3.12 on @own is the state that the thread activated last, in any interpreter. The current state is in a
	 * thread-local variable, for which the loader might allocate memory here.
	 */
	return state && layout_of(walk)->minor < 12 ? current_of(walk, state) : state;
}

static void walk_python(struct csink_interp_walk *walk)
{
	uintptr_t state = state_of(walk);

	if (!state)
		return;
	switch (layout_of(walk)->chain) {
	case CSINK_PYTHON_CFRAME:
		walk_cframes(walk, state);
		break;
	case CSINK_PYTHON_ENTRY:
		walk_entries(walk, state);
		break;
	case CSINK_PYTHON_SHIM:
		walk_shims(walk, state);
		break;
	default:
		walk_frames(walk, state);
		break;
	}
}

const struct csink_language csink_python = {"python", find, walk_python, describe};
