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
	MAX_LINK_CHECKS = 64, /* system calls for one walk, after which links are taken as wrong */
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
	DATA_EVALUATOR,
	DATA_EVALUATOR_BYTES,
	DATA_IS_ENDING, /* from 3.11; 0: not known */
	NR_DATA
};
_Static_assert(NR_DATA <= CSINK_ARRAY_SIZE(((struct csink_interpreter *)0)->data),
	       "an interpreter has room for the data");

typedef uintptr_t (*state_fn)(void);
typedef int (*is_ending_fn)(void);

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
	enum { FIRST = 12, BYTES = 48 }; /* of the function: where they begin, at most; all that are looked at */
	uint8_t code[BYTES];
	int32_t place, offset = 0;

	if (!CSINK_INTERP_HAS_THREAD_LOCAL || !object->copy(code, (void *)function, sizeof(code)))
		return false;
	for (uint32_t i = 0; i < FIRST; i++) {
		const uint8_t *at = code + i;

		/* mov %fs:..., %rax; or, with -ftls-model=initial-exec, mov place(%rip), %rax; mov %fs:(%rax), %rax */
		if (!memcmp(at, "\x64\x48\x8b\x04\x25", 5) ||
		    (!memcmp(at, "\x48\x8b\x05", 3) && !memcmp(at + 7, "\x64\x48\x8b\x00", 4)))
			return true;
		if (memcmp(at, "\x48\x8d\x3d", 3) != 0) /* lea place(%rip), %rdi */
			continue;
		memcpy(&place, at + 3, sizeof(place));
		to->data[DATA_VARIABLE] = function + i + 7 + (uint64_t)(int64_t)place;
		for (at += 7; at < code + BYTES - 22 && (*at == 0x66 || *at == 0x48);) /* prefixes of the call */
			at++;
		at += *at == 0xe8 ? 5 : 6;
		/* The stack pointer and the frame pointer may be restored first: add $8, %rsp; pop %rbp */
		at += !memcmp(at, "\x48\x83\xc4\x08", 4) ? 4 : 0;
		at += *at == 0x5d;
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

static CSINK_RARE int find(const struct csink_elf_view *object, struct csink_interpreter *to, const char **why)
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
	to->data[DATA_EVALUATOR] = python.evaluator;
	to->data[DATA_EVALUATOR_BYTES] = python.evaluator_end - python.evaluator;
	if (python.layout->minor >= 11)
		to->data[DATA_IS_ENDING] = csink_elf_look(
			object, python.layout->minor < 13 ? "_Py_IsFinalizing" : "Py_IsFinalizing", STT_FUNC, NULL);
	if (python.layout->minor < 14) {
		find_calls(object, python.layout->minor, to);
	} else if (!find_variable(object, state, to)) {
		*why = CSINK_INTERP_HAS_THREAD_LOCAL ? csink_python_unknown
						     : "Python frames are not read: of CPython 3.14 only for x86-64, "
						       "or by countersink attach";
		return -1;
	}
	to->evaluator = python.layout->chain == CSINK_PYTHON_COUNT ? python.evaluator : 0;
	to->evaluator_end = python.layout->chain == CSINK_PYTHON_COUNT ? python.evaluator_end : 0;
	return 1;
}

/* ---- functions --------------------------------------------------------------------------------------------------- */

/* A str as UTF-8, cut at CSINK_PYTHON_MAX_TEXT, and a NUL. Returns how many bytes; 0: it cannot be read. */
static CSINK_RARE uint32_t copy_str(struct csink_interp_walk *walk, uintptr_t str, char *to)
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

static CSINK_RARE uint32_t names(struct csink_interp_walk *walk, const struct csink_code_source *source, char *to,
				 uint32_t room)
{
	uint32_t name, file;

	if (room < 2 * CSINK_PYTHON_MAX_TEXT)
		return 0;
	name = copy_str(walk, source->name, to);
	file = name ? copy_str(walk, source->file, to + name) : 0;
	return file ? name + file : 0;
}

static CSINK_RARE bool describe(struct csink_interp_walk *walk, uintptr_t code, struct csink_code_source *to)
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
					 .is_path = true,
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

/* A name's hash, or one of its text where CPython has not computed it yet. Whole words lie within its object. */
static uint64_t hash_of(const struct csink_python_layout *layout, uintptr_t name)
{
	uint64_t bytes, last, h = csink_load_known(name + CSINK_PYTHON_STR_HASH);
	uintptr_t text;

	if (CSINK_LIKELY(csink_python_has_hash(h)))
		return h;
	bytes = csink_load_known(name + CSINK_PYTHON_VAR_SIZE);
	text = name + csink_python_text(layout, (uint32_t)csink_load_known(name + CSINK_PYTHON_STR_STATE), &bytes);
	for (uint64_t at = 0; at + 8 <= CSINK_MIN(bytes, (uint64_t)CSINK_PYTHON_NAME_SEEN); at += 8)
		h += mix(csink_load_known(text + at) + at, bytes);
	/* In a shorter text some of the last eight bytes belong to its object's head, and are shifted out. */
	last = csink_load_known(text + bytes - 8);
	return h + mix(bytes < 8 ? last >> 8 * (8 - bytes) % 64 : last, bytes);
}

/* Before 3.12 code objects have no number, and their addresses are reused at once: the content identifies them. */
static uint64_t mix_content(const struct csink_python_layout *layout, uintptr_t name, uintptr_t file, uintptr_t table)
{
	uint64_t bytes = csink_load_known(table + CSINK_PYTHON_VAR_SIZE);
	uintptr_t text = table + CSINK_PYTHON_BYTES_TEXT;
	uint64_t h = mix(hash_of(layout, name), csink_load_known(file + CSINK_PYTHON_STR_HASH)), last;
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

	return version ? h : h + mix_content(layout, name, file, table);
}

static bool can_read(struct csink_interp_walk *walk, uintptr_t at, uintptr_t bytes)
{
	uint64_t word;

	return csink_interp_load(walk, at, &word) && csink_interp_load(walk, at + bytes - 8, &word);
}

/* All that hash_of() reads of a str. */
static bool can_read_name(struct csink_interp_walk *walk, uintptr_t name)
{
	uint64_t bytes, hash, state;
	uintptr_t text;

	if (!csink_interp_load(walk, name + CSINK_PYTHON_VAR_SIZE, &bytes) ||
	    !csink_interp_load(walk, name + CSINK_PYTHON_STR_HASH, &hash))
		return false;
	if (csink_python_has_hash(hash))
		return true;
	if (!csink_interp_load(walk, name + CSINK_PYTHON_STR_STATE, &state))
		return false;
	text = name + csink_python_text(layout_of(walk), (uint32_t)state, &bytes);
	return can_read(walk, text - 8, 8 + CSINK_MIN(bytes, (uint64_t)CSINK_PYTHON_NAME_SEEN)) &&
	       can_read(walk, text - 8, 8 + bytes);
}

/* A code object that may be none: the newest frame may be on its way in or out. A live one keeps what it refers to. */
static bool is_code(struct csink_interp_walk *walk, uintptr_t code)
{
	const struct csink_python_layout *layout = layout_of(walk);
	uint64_t references, type;
	uintptr_t table, bytes;

	if (!csink_interp_load(walk, code, &references) || !csink_python_is_alive(references) ||
	    !csink_interp_load(walk, code + CSINK_PYTHON_OBJECT_TYPE, &type) ||
	    type != walk->interpreter->data[DATA_CODE_TYPE] || !can_read(walk, code, layout->table + sizeof(uint64_t)))
		return false;
	if (!walk->is_unsure)
		return true;
	table = csink_load_known(code + layout->table);
	return can_read_name(walk, csink_load_known(code + layout->name)) &&
	       can_read(walk, csink_load_known(code + layout->file), CSINK_PYTHON_STR_STATE) &&
	       csink_interp_load(walk, table + CSINK_PYTHON_VAR_SIZE, &bytes) &&
	       can_read(walk, table, CSINK_PYTHON_BYTES_TEXT + CSINK_MIN(bytes, (uintptr_t)CSINK_PYTHON_TABLE_SEEN)) &&
	       can_read(walk, table + CSINK_PYTHON_BYTES_TEXT, bytes);
}

/* The entry of a code object in the recording; its page can be read. 0: it is none, or the recording is full. */
static __attribute__((noinline)) csink_ref_t ref_of(struct csink_interp_walk *walk, uintptr_t code)
{
	csink_ref_t ref = 0;

	if (code >> 12 && csink_load_known(code + CSINK_PYTHON_OBJECT_TYPE) == walk->interpreter->data[DATA_CODE_TYPE])
		ref = csink_code_id(walk, identity_of(walk, layout_of(walk), code), code);
	*csink_interp_seen_at(walk, code) =
		(struct csink_interp_seen){.code = code, .walk = walk->room->nr_walks, .ref = ref};
	return ref;
}

/*
 * Add a frame that is whole. False: its code object is none, or there is no room. A code object that this walk has had
 * is not looked at again: its frame keeps it alive, and it does not change.
 */
static inline bool take_whole(struct csink_interp_walk *walk, uintptr_t frame)
{
	const struct csink_python_layout *layout = layout_of(walk);
	uintptr_t code = csink_python_untag(csink_load_known(frame + layout->code));
	uint64_t position = csink_load_known(frame + layout->position);
	const struct csink_interp_seen *seen = csink_interp_seen_at(walk, code);
	bool is_seen = seen->code == code && seen->walk == walk->room->nr_walks;

	return csink_interp_add(walk, is_seen ? seen->ref : ref_of(walk, code),
				csink_python_position(layout, code, position));
}

/* The same of a frame that may be none. */
static __attribute__((noinline)) bool take_unsure(struct csink_interp_walk *walk, uintptr_t frame)
{
	const struct csink_python_layout *layout = layout_of(walk);
	uint64_t code, position;

	if (csink_interp_load(walk, frame + layout->code, &code) && is_code(walk, code = csink_python_untag(code)) &&
	    csink_interp_load(walk, frame + layout->position, &position))
		return csink_interp_add(walk, ref_of(walk, code), csink_python_position(layout, code, position));
	walk->is_broken = true;
	return false;
}

/*
 * Add frames by their links, to @end or to before it; each as a group if @alone. The first one may be none, if nothing
 * is settled yet; those outside of it are whole.
 */
static __attribute__((noinline)) void take_frames(struct csink_interp_walk *walk, uintptr_t frame, uintptr_t end,
						  bool with_end, bool alone)
{
	uint16_t previous = layout_of(walk)->previous;

	while (frame != end || with_end) {
		bool is_end = frame == end;

		if (!(walk->is_settled ? take_whole(walk, frame) : take_unsure(walk, frame)))
			return;
		walk->is_settled = !walk->is_unsure;
		if (alone)
			csink_interp_group_of_one(walk, 0);
		if (is_end)
			return;
		if (CSINK_LIKELY(walk->is_settled))
			frame = csink_load_known(frame + previous);
		else if (!csink_interp_load(walk, frame + previous, &frame)) {
			walk->is_broken = true;
			return;
		}
	}
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
		if (frame % sizeof(void *) || walk->load.nr_checks > MAX_LINK_CHECKS ||
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
	bool has_last = layout_of(walk)->chain == CSINK_PYTHON_ENTRY;

	take_frames(walk, group->frame, group->last, has_last, false);
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
static CSINK_RARE void learn_distance(struct csink_interp_walk *walk, uintptr_t cframe)
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
static CSINK_RARE bool is_whole(struct csink_interp_walk *walk, uintptr_t state, uintptr_t at, uintptr_t low,
				uintptr_t high, struct group *group)
{
	if (!load_cframe(walk, at, group) || !find_end(walk, group))
		return false;
	if (layout_of(walk)->chain == CSINK_PYTHON_SHIM)
		return group->last >= low && group->last < high;
	return leads_on(walk, state, group) && (group->previous >= high || is_root(group->previous, state));
}

/* The group of the call outside the one with @cframe, which is not whole. False: it is not known. */
static CSINK_RARE bool find_outer(struct csink_interp_walk *walk, uintptr_t state, uintptr_t cframe,
				  struct group *group)
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
static bool find_newest(struct csink_interp_walk *walk, uintptr_t state, uintptr_t cframe, struct group *group)
{
	if (is_root(cframe, state))
		return false;
	if (!is_newest_whole(walk, state, cframe, group))
		return find_outer(walk, state, cframe, group);
	learn_distance(walk, cframe);
	return true;
}

/* 3.11: each CFrame has a group, and is its record. */
static void walk_entries(struct csink_interp_walk *walk, uintptr_t state, uintptr_t newest)
{
	struct group group;

	if (!find_newest(walk, state, newest, &group))
		return;
	for (take_group(walk, &group); !is_root(group.previous, state) && !walk->is_full; take_group(walk, &group)) {
		if (!load_group(walk, state, group.previous, &group)) {
			walk->is_broken = true;
			return;
		}
	}
}

/* From 3.12: the shim at the end of a group is its record. */
static void walk_shims(struct csink_interp_walk *walk, uintptr_t state, uintptr_t newest)
{
	struct group group = {.frame = newest};
	uint32_t nr = 0;

	if (layout_of(walk)->minor == 12 ? !find_newest(walk, state, newest, &group)
					 : !newest || !find_end(walk, &group))
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
	       csink_interp_load_known(walk, from + link, &from))
		nr++;
	return nr;
}

/* The frames first, then the CFrames that belong to them. */
static void walk_cframes(struct csink_interp_walk *walk, uintptr_t state, uintptr_t frame)
{
	const struct csink_python_layout *layout = layout_of(walk);
	uint32_t nr_frames, nr_cframes;
	uintptr_t cframe, code, type;

	if (!csink_interp_load(walk, state + layout->newest, &cframe) ||
	    !csink_interp_load(walk, frame + layout->code, &code) ||
	    !csink_interp_load(walk, code + CSINK_PYTHON_OBJECT_TYPE, &type) ||
	    type != walk->interpreter->data[DATA_CODE_TYPE])
		return;
	take_frames(walk, frame, 0, false, true);
	nr_frames =
		walk->is_full || walk->is_broken ? count_links(walk, frame, layout->previous, state) : walk->nr_groups;
	/* CFrames are on the thread's stack. The link of the newest one may not be stored yet. */
	walk->is_settled = false;
	walk->known = walk->load.low;
	walk->known_bytes = CSINK_MAX(walk->load.high - walk->load.low, (uintptr_t)7) - 7;
	nr_cframes = count_links(walk, cframe, layout->cframe_previous, state);
	for (; nr_cframes > nr_frames; nr_cframes--)
		csink_interp_load(walk, cframe + layout->cframe_previous, &cframe);
	for (uint32_t i = 0; i < walk->nr_groups; i++) {
		walk->room->groups[i].record = nr_frames > nr_cframes ? 1 : cframe;
		if (nr_frames-- == nr_cframes && nr_cframes) {
			nr_cframes--;
			csink_interp_load_known(walk, cframe + layout->cframe_previous, &cframe);
		}
	}
}

/* ---- all versions ---- */

/*
 * If the thread's native stack has a call of the evaluator, the state is in use and can be read without a check. Where
 * there is none, the state may just have been freed: to 3.8 the thread still refers to it at that moment. To 3.10 the
 * newest frame needs no check, either: it is linked by the call of the evaluator that runs it, after it was made by
 * another function, and unlinked before it is freed.
 */
static void know_state(struct csink_interp_walk *walk, uintptr_t state)
{
	const struct csink_walk *native = walk->native;
	const uint64_t *data = walk->interpreter->data;

	for (uint32_t i = 0; i < native->nr_frames; i++) {
		uintptr_t pc = (native->frames[i] & ~CSINK_FRAME_EXACT) - 1;

		if (pc - data[DATA_EVALUATOR] < data[DATA_EVALUATOR_BYTES]) {
			walk->known = state;
			walk->known_bytes = layout_of(walk)->chunk + 1; /* the last of what is loaded from it */
			walk->is_settled = layout_of(walk)->chain < CSINK_PYTHON_ENTRY;
			return;
		}
	}
}

/*
 * At its end the interpreter frees the states and frames of all other threads. Those that run C code then, without the
 * GIL, go on with what is freed: their calls of the evaluator are still on their stacks, and PyGILState still has their
 * states.
 */
static bool is_ending(const struct csink_interp_walk *walk)
{
	uint64_t function = walk->interpreter->data[DATA_IS_ENDING];

	return function && ((is_ending_fn)function)();
}

/*
 * To 3.11: the state that holds the GIL, if it belongs to this thread; in a subinterpreter it is not the state that
 * PyGILState has. It may just have been freed. A state belongs to the thread that made it, until another thread takes
 * it: a thread has one state in an interpreter, which is @own.
 */
static uintptr_t current_of(struct csink_interp_walk *walk, uintptr_t own)
{
	uintptr_t now = ((state_fn)walk->interpreter->data[DATA_CURRENT])();
	uint64_t thread, interpreter, its;

	if (now == own) {
		know_state(walk, own);
	} else if (is_ending(walk)) {
		walk->is_unsure = true;
	} else if (now && csink_interp_load(walk, now + layout_of(walk)->thread_id, &thread) &&
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
	uint8_t minor = layout_of(walk)->minor;
	uintptr_t state = 0;
	uint64_t thread;

	if (!data[DATA_VARIABLE])
		state = ((state_fn)data[DATA_STATE])();
	else
		csink_interp_thread_local(walk, data[DATA_VARIABLE], data[DATA_VARIABLE_AT], &state);
	if (!state || (minor >= 14 && (!csink_interp_load(walk, state + layout_of(walk)->thread_id, &thread) ||
				       thread != (uintptr_t)pthread_self())))
		return 0;
	if (minor < 12)
		return current_of(walk, state);
	/*
	 * From 3.12 on it is the state that the thread activated last, in any interpreter. The current state is in a
	 * thread-local variable, for which the loader might allocate memory here.
	 */
	if (is_ending(walk))
		walk->is_unsure = true;
	else if (!data[DATA_VARIABLE])
		know_state(walk, state);
	return state;
}

static void walk_python(struct csink_interp_walk *walk)
{
	const struct csink_python_layout *layout = layout_of(walk);
	uintptr_t state = state_of(walk), newest;

	if (!state ||
	    !csink_interp_load(walk,
			       state + (layout->chain < CSINK_PYTHON_ENTRY ? CSINK_PYTHON_STATE_FRAME : layout->newest),
			       &newest))
		return;
	switch (layout->chain) {
	case CSINK_PYTHON_CFRAME:
		walk_cframes(walk, state, newest);
		break;
	case CSINK_PYTHON_ENTRY:
		know_chunk(walk, state);
		walk_entries(walk, state, newest);
		break;
	case CSINK_PYTHON_SHIM:
		know_chunk(walk, state);
		walk_shims(walk, state, newest);
		break;
	default:
		take_frames(walk, newest, 0, false, true);
		break;
	}
}

const struct csink_language csink_python = {"python", find, walk_python, describe};
