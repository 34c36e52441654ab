/*
 * Java's frames: see hotspot.h. Runs in the handler of the thread whose frames are read.
 *
 * The native walk steps over Java's frames by hotspot_step.c. Here each frame of a blob gets a name in place of its
 * address: of the interpreter, the method that the frame has; of compiled code, the method and those that were inlined
 * into it; of other code, the blob's. A method that has a frame is not unloaded.
 *
 * No object of the program is read: what the collector does meanwhile is of no matter. What methods refer to is in
 * memory that is unmapped with a class loader, so it is loaded checked. Sources: src/hotspot/share/oops/method.hpp,
 * constMethod.hpp, constantPool.hpp, symbol.hpp of JDK 11 to 25.
 */
#include <string.h>

#include "include/internal/base.h"
#include "preload/agent/interp/hotspot.h"
#include "preload/core/private_memory.h"

enum {
	IS_BLOB = 1, /* set in the address of what is described: a blob, not a method */
	IS_OWN = 2,  /* no address, but one of own_names */
	OWN_SHIFT = 3,
	MAX_PLACES = 64,
	MAX_TEXT = 900,   /* bytes of a class's name, of a method's */
	HASHED_TEXT = 48, /* bytes of them that are part of an identity */
	HAS_LINES = 1,    /* flag of a method */
	MAX_LINES = 64 * 1024,
	NR_LINE_NUMBERS = 2, /* behind a byte of 255 */
};

static const char internal[] = "[jvm]"; /* in place of a file */

enum own_name { NAME_NONE, NAME_INTERPRETER, NAME_CALL, NAME_HEAP };
static const char own_names[][24] = {
	[NAME_INTERPRETER] = "interpreter",
	[NAME_CALL] = "call stub",           /* native code calls Java */
	[NAME_HEAP] = "callers in the heap", /* of a virtual thread that has been suspended */
};

/* ---- methods ----------------------------------------------------------------------------------------------------- */

struct method {
	uint64_t constant, pool, holder;
	uint64_t name, class_name; /* symbols */
};

static uint64_t symbol_at(struct csink_interp_walk *walk, const struct csink_hotspot *vm, uint64_t pool, uint64_t index,
			  bool *ok)
{
	uint64_t symbol = 0;

	*ok = *ok && index && csink_interp_load(walk, pool + vm->at[HOTSPOT_POOL_BYTES] + 8 * index, &symbol);
	return symbol & ~1UL;
}

static bool read_method(struct csink_interp_walk *walk, const struct csink_hotspot *vm, uint64_t method,
			struct method *to)
{
	bool ok = method && method % 8 == 0;
	uint64_t index;

	to->constant = csink_hotspot_load(walk, vm, method, HOTSPOT_METHOD_CONST, &ok);
	to->pool = csink_hotspot_load(walk, vm, to->constant, HOTSPOT_CONST_POOL, &ok);
	index = csink_hotspot_load(walk, vm, to->constant, HOTSPOT_CONST_NAME, &ok);
	to->holder = csink_hotspot_load(walk, vm, to->pool, HOTSPOT_POOL_HOLDER, &ok);
	ok = ok && index < csink_hotspot_load(walk, vm, to->pool, HOTSPOT_POOL_LENGTH, &ok);
	to->name = symbol_at(walk, vm, to->pool, index, &ok);
	to->class_name = csink_hotspot_load(walk, vm, to->holder, HOTSPOT_CLASS_NAME, &ok);
	return ok && to->name && to->class_name;
}

/* Append a symbol's text. Returns its length, or -1. */
static int32_t put_symbol(struct csink_interp_walk *walk, const struct csink_hotspot *vm, uint64_t symbol, char *to,
			  uint32_t room)
{
	bool ok = symbol != 0;
	uint64_t bytes = csink_hotspot_load(walk, vm, symbol, HOTSPOT_SYMBOL_LENGTH, &ok);

	return ok ? csink_interp_text(walk, symbol + vm->at[HOTSPOT_SYMBOL_TEXT], bytes, to, room) : -1;
}

/* Mix the first bytes of a symbol's text into an identity. */
static bool mix_symbol(struct csink_interp_walk *walk, const struct csink_hotspot *vm, uint64_t symbol,
		       uint64_t *identity)
{
	bool ok = true;
	uint64_t bytes = csink_hotspot_load(walk, vm, symbol, HOTSPOT_SYMBOL_LENGTH, &ok);

	*identity = csink_interp_mix(*identity, symbol + bytes);
	return ok && csink_interp_mix_text(walk, symbol + vm->at[HOTSPOT_SYMBOL_TEXT],
					   CSINK_MIN(bytes, (uint64_t)HASHED_TEXT), identity);
}

/*
 * The collector of classes frees methods and names, and others are made where they were. But those of the archive that
 * the virtual machine maps when it starts stay.
 */
static bool identify(struct csink_interp_walk *walk, const struct csink_hotspot *vm, uint64_t address,
		     uint64_t *identity)
{
	struct method method;

	*identity = csink_interp_mix(walk->interpreter->module, address);
	if (address - vm->archive < vm->archive_bytes)
		return true;
	return read_method(walk, vm, address, &method) && mix_symbol(walk, vm, method.name, identity) &&
	       mix_symbol(walk, vm, method.class_name, identity);
}

/* A hidden class has its address in its name, and before that, up to JDK 20, a number. */
static uint32_t fold_class(char *text, uint32_t nr)
{
	static const char lambda[] = "$$Lambda";

	for (uint32_t i = 0; i + 3 < nr; i++) {
		if ((text[i] == '+' || text[i] == '/') && text[i + 1] == '0' && text[i + 2] == 'x')
			nr = i;
		else if (!memcmp(text + i, lambda, CSINK_MIN(sizeof(lambda) - 1, (size_t)(nr - i))) &&
			 nr - i >= sizeof(lambda) - 1)
			return i + (uint32_t)sizeof(lambda) - 1;
	}
	return nr;
}

/* The path of the source: the class's package as directories, and the name of the file. False: it cannot be read. */
static bool put_file(struct csink_interp_walk *walk, const struct csink_hotspot *vm, const struct method *method,
		     const char *class_name, uint32_t nr_class, char *to, uint32_t *nr)
{
	bool ok = true, has_none;
	uint64_t index = vm->bytes[HOTSPOT_POOL_FILE]
				 ? csink_hotspot_load(walk, vm, method->pool, HOTSPOT_POOL_FILE, &ok)
				 : csink_hotspot_load(walk, vm, method->holder, HOTSPOT_CLASS_FILE, &ok);
	int32_t bytes;

	/* A method handle's intrinsic has the number of its class's, and a pool of its own. */
	has_none = ok && (!index || index >= csink_hotspot_load(walk, vm, method->pool, HOTSPOT_POOL_LENGTH, &ok));
	while (nr_class > 0 && class_name[nr_class - 1] != '/')
		nr_class--;
	*nr = 0;
	if (has_none)
		return true;
	memcpy(to, class_name, nr_class);
	bytes = put_symbol(walk, vm, symbol_at(walk, vm, method->pool, index, &ok), to + nr_class, MAX_TEXT);
	*nr = bytes > 0 ? nr_class + (uint32_t)bytes : 0;
	return ok && bytes >= 0;
}

static uint32_t method_names(struct csink_interp_walk *walk, const struct csink_code_source *source, char *to,
			     uint32_t room)
{
	const struct csink_hotspot *vm = csink_hotspot_get();
	struct method method;
	char class_name[MAX_TEXT / 2];
	int32_t nr_class, nr_name;
	uint32_t nr = 0, nr_file;

	if (room < 2 * MAX_TEXT || !vm || !read_method(walk, vm, source->name, &method))
		return 0;
	nr_class = put_symbol(walk, vm, method.class_name, class_name, sizeof(class_name));
	if (nr_class < 0)
		return 0;
	nr = fold_class(class_name, (uint32_t)nr_class);
	for (uint32_t i = 0; i < nr; i++)
		to[i] = class_name[i] == '/' ? '.' : class_name[i];
	to[nr++] = '.';
	nr_name = put_symbol(walk, vm, method.name, to + nr, MAX_TEXT / 2);
	if (nr_name < 0)
		return 0;
	nr += (uint32_t)nr_name;
	to[nr++] = 0;
	if (room - nr <= MAX_TEXT + sizeof(class_name) ||
	    !put_file(walk, vm, &method, class_name, (uint32_t)nr_class, to + nr, &nr_file))
		return 0;
	if (!nr_file) {
		memcpy(to + nr, internal, sizeof(internal) - 1);
		nr_file = sizeof(internal) - 1;
	}
	nr += nr_file;
	to[nr++] = 0;
	return nr;
}

static uint32_t byte_at(struct csink_interp_walk *walk, uintptr_t at, bool *ok)
{
	uint64_t word = 0;

	*ok = *ok && csink_interp_load(walk, at & ~(uintptr_t)7, &word);
	return (uint32_t)(word >> 8 * (at & 7)) & 0xff;
}

/* The length of a table of lines, which ends with a byte of 0; behind a byte of 255 there are two numbers. */
static uint32_t lines_bytes(struct csink_interp_walk *walk, uintptr_t table)
{
	uintptr_t at = table;
	uint32_t byte;
	bool ok = true;

	while ((byte = byte_at(walk, at, &ok)) && ok && at - table < MAX_LINES) {
		at++;
		for (int i = 0; byte == 255 && i < NR_LINE_NUMBERS; i++) {
			int nr = 1;

			while (byte_at(walk, at++, &ok) >= 192 && ok && nr < 5)
				nr++;
		}
	}
	return ok ? (uint32_t)(at - table) : 0;
}

/* ---- blobs ------------------------------------------------------------------------------------------------------- */

/* What has no method. */
static uint32_t blob_names(struct csink_interp_walk *walk, const struct csink_code_source *source, char *to,
			   uint32_t room)
{
	uint32_t nr = 0;
	int32_t bytes;

	if (room < 2 * MAX_TEXT)
		return 0;
	to[nr++] = '[';
	bytes = csink_interp_text(walk, source->name, MAX_TEXT, to + nr, MAX_TEXT);
	if (bytes < 0)
		return 0;
	nr += (uint32_t)bytes;
	to[nr++] = ']';
	to[nr++] = 0;
	memcpy(to + nr, internal, sizeof(internal));
	return nr + (uint32_t)sizeof(internal);
}

static bool describe(struct csink_interp_walk *walk, uintptr_t code, struct csink_code_source *to)
{
	const struct csink_hotspot *vm = csink_hotspot_get();
	struct method method;
	bool ok = true;
	uint64_t flags;

	if (!vm)
		return false;
	*to = (struct csink_code_source){.kind = vm->version >= 20 ? CSINK_CODE_HOTSPOT_20 : CSINK_CODE_HOTSPOT};
	if (code & (IS_BLOB | IS_OWN)) {
		to->name = code & IS_OWN ? (uintptr_t)own_names[code >> OWN_SHIFT]
					 : csink_hotspot_known(vm, code & ~(uintptr_t)IS_BLOB, HOTSPOT_BLOB_NAME);
		to->names = blob_names;
		return true;
	}
	if (!read_method(walk, vm, code, &method))
		return false;
	to->name = code;
	to->names = method_names;
	flags = csink_hotspot_load(walk, vm, method.constant, HOTSPOT_CONST_FLAGS, &ok);
	if (flags & HAS_LINES) {
		to->table = method.constant + vm->at[HOTSPOT_CONST_BYTES] +
			    csink_hotspot_load(walk, vm, method.constant, HOTSPOT_CONST_CODE_BYTES, &ok);
		to->table_bytes = ok ? lines_bytes(walk, to->table) : 0;
	}
	return ok;
}

/* ---- what compiled frames came to -------------------------------------------------------------------------------- */

/*
 * The frames of an address of compiled code, as words of a stack. One table for the process, without locks: a row whose
 * words do not fit its check was torn, and is not used. A key has the number of the compilation, which is new each
 * time: code that is made where other code was has other keys.
 */
struct row {
	uint64_t check, words[7]; /* 0: the list has ended; seven without a 0: it goes on in the next row */
};

enum { NR_ROWS = 4096, MAX_ROWS = 8, NR_WORDS = CSINK_ARRAY_SIZE(((struct row *)0)->words) };

static struct row *rows;    /* atomic; NULL: none yet */
static uint64_t generation; /* of recordings: references of earlier ones have no meaning in this one */

static uint64_t check_of(uint64_t key, const uint64_t *words)
{
	for (size_t i = 0; i < NR_WORDS; i++)
		key = csink_interp_mix(key, words[i]);
	return key;
}

static struct row *row_of(uint64_t key)
{
	struct row *all = __atomic_load_n(&rows, __ATOMIC_RELAXED);

	return all ? &all[key >> 40 & (NR_ROWS - 1)] : NULL;
}

/* Returns how many words were copied to @words; 0: they are not known. */
static uint32_t recall(uint64_t key, uint64_t *words, uint32_t max)
{
	uint32_t nr = 0;

	for (uint32_t k = 0; k < MAX_ROWS; k++) {
		uint64_t at = csink_interp_mix(key, k), copy[NR_WORDS];
		const struct row *row = row_of(at);
		uint64_t check = row ? __atomic_load_n(&row->check, __ATOMIC_RELAXED) : 0;

		for (size_t i = 0; i < NR_WORDS; i++)
			copy[i] = row ? __atomic_load_n(&row->words[i], __ATOMIC_RELAXED) : 0;
		if (!row || check != check_of(at, copy))
			return 0;
		for (size_t i = 0; i < NR_WORDS; i++) {
			if (!copy[i] || nr == max)
				return nr;
			words[nr++] = copy[i];
		}
	}
	return 0;
}

static void remember(uint64_t key, const uint64_t *words, uint32_t nr)
{
	for (uint32_t k = 0; k * NR_WORDS <= nr && k < MAX_ROWS; k++) {
		uint64_t at = csink_interp_mix(key, k), copy[NR_WORDS] = {0};
		struct row *row = row_of(at);

		for (uint32_t i = 0; i < NR_WORDS && k * NR_WORDS + i < nr; i++)
			copy[i] = words[k * NR_WORDS + i];
		if (!row)
			return;
		for (size_t i = 0; i < NR_WORDS; i++)
			__atomic_store_n(&row->words[i], copy[i], __ATOMIC_RELAXED);
		__atomic_store_n(&row->check, check_of(at, copy), __ATOMIC_RELAXED);
	}
}

static int find(const struct csink_elf_view *object, struct csink_interpreter *to, const char **why)
{
	int found = csink_hotspot_find(object, to, why);

	if (found == 1) {
		__atomic_add_fetch(&generation, 1, __ATOMIC_RELAXED);
		if (!rows)
			__atomic_store_n(&rows, csink_private_get(NR_ROWS * sizeof(*rows)), __ATOMIC_RELAXED);
	}
	return found;
}

/* ---- the walk ---------------------------------------------------------------------------------------------------- */

/* A frame of the native walk. */
struct native {
	uintptr_t pc, sp, fp;
	bool is_leaf;
};

/*
 * A method, and where its bytecodes are. NULL: it cannot be read. What a thread has seen of it holds until a class is
 * unloaded: no other method is made at the same address before. HotSpot counts unloaded classes; where it does not
 * (-XX:-UsePerfData), what was seen holds for one walk, in which the frames keep their methods.
 *
 * Where classes may be redefined, former methods that have no frame are freed, too, but at safepoints alone. Two
 * counters enclose the stopping. With the number of safepoints alone, a sample taken while the threads stop would store
 * a method under the new number, and find it there after it was freed.
 */
static const struct csink_interp_seen *see(struct csink_interp_walk *walk, const struct csink_hotspot *vm,
					   uint64_t method)
{
	struct csink_interp_seen *seen = csink_interp_seen_at(walk, method);
	uint64_t identity, constant, bytes;
	bool ok = true;
	csink_ref_t ref;

	if (seen->code == method && seen->walk == walk->room->epoch)
		return seen;
	if (!identify(walk, vm, method, &identity))
		return NULL;
	ref = csink_code_id(walk, identity, method);
	constant = csink_hotspot_load(walk, vm, method, HOTSPOT_METHOD_CONST, &ok);
	bytes = csink_hotspot_load(walk, vm, constant, HOTSPOT_CONST_CODE_BYTES, &ok);
	if (!ref || !ok)
		return NULL;
	*seen = (struct csink_interp_seen){method, walk->room->epoch, ref, (uint32_t)bytes,
					   constant + vm->at[HOTSPOT_CONST_BYTES]};
	return seen;
}

static bool may_redefine(const struct csink_hotspot *vm)
{
	return !vm->bytes[HOTSPOT_REDEFINES] ||
	       __atomic_load_n((const uint8_t *)vm->at[HOTSPOT_REDEFINES], __ATOMIC_RELAXED);
}

/*
 * Set until when what was seen holds. JDK 25 lets classes be redefined in every process, others once an agent comes
 * that may. The counters are read unchecked: HotSpot never unmaps them.
 */
static void set_epoch(struct csink_interp_walk *walk, const struct csink_hotspot *vm)
{
	uint64_t epoch = __atomic_load_n(&generation, __ATOMIC_RELAXED);
	int nr = may_redefine(vm) ? HOTSPOT_NR_COUNTERS : HOTSPOT_UNLOADED + 1;

	walk->room->epoch = walk->room->nr_walks;
	for (int i = 0; i < nr; i++) {
		if (!vm->counters[i])
			return;
		epoch = csink_interp_mix(epoch, csink_load_known(vm->counters[i]));
	}
	walk->room->epoch = csink_interp_mix(epoch, (uint64_t)nr) | 1UL << 63;
}

/* Add the frame of a method. False: it cannot be read, or no frame may follow. */
static bool add_method(struct csink_interp_walk *walk, const struct csink_hotspot *vm, uint64_t method, uint32_t bci)
{
	const struct csink_interp_seen *seen = see(walk, vm, method);

	return seen && csink_interp_add(walk, seen->ref, bci);
}

/* Add a frame of code that has no method. */
static bool add_blob(struct csink_interp_walk *walk, const struct csink_hotspot *vm,
		     const struct csink_hotspot_blob *blob, const struct native *native)
{
	uint64_t identity = walk->interpreter->module;
	enum own_name own = NAME_NONE;

	if (blob->kind == HOTSPOT_CODE_OF_INTERPRETER)
		own = NAME_INTERPRETER;
	else if (vm->bytes[HOTSPOT_CALL_RETURN] && csink_load_known(vm->at[HOTSPOT_CALL_RETURN]) == native->pc)
		own = NAME_CALL;
	else if (blob->kind == HOTSPOT_STUBS && !native->is_leaf &&
		 (csink_hotspot_is_thaw(blob) || !csink_hotspot_is_called(blob, native->pc)))
		own = NAME_HEAP;
	identity = csink_interp_mix(identity, own ? own : ~blob->name);
	return csink_interp_frame(walk, identity, own ? (uintptr_t)own << OWN_SHIFT | IS_OWN : blob->at | IS_BLOB,
				  CSINK_CODE_NOT_BEGUN);
}

static bool add_compiled(struct csink_interp_walk *walk, const struct csink_hotspot *vm,
			 const struct csink_hotspot_blob *blob, uintptr_t pc)
{
	uint64_t method = csink_hotspot_known(vm, blob->at, HOTSPOT_COMPILED_METHOD);
	uint64_t key = csink_interp_mix(__atomic_load_n(&generation, __ATOMIC_RELAXED), pc);
	uint64_t words[MAX_PLACES];
	struct csink_hotspot_place places[MAX_PLACES];
	uint32_t nr, first = walk->nr_frames;

	key = csink_interp_mix(key, method ^ csink_hotspot_known(vm, blob->at, HOTSPOT_COMPILED_ID) << 48);
	key = csink_interp_mix(key, csink_hotspot_known(vm, blob->at, HOTSPOT_COMPILED_ID));
	nr = recall(key, words, MAX_PLACES);
	for (uint32_t i = 0; i < nr; i++)
		if (!csink_interp_add(walk, (csink_ref_t)(words[i] >> 32 & ((CSINK_FRAME_CODE >> 32) - 1)),
				      (uint32_t)words[i]))
			return false;
	if (nr)
		return true;
	if (blob->kind == HOTSPOT_COMPILED)
		nr = csink_hotspot_scopes(walk, vm, blob, pc, places, MAX_PLACES);
	if (!nr)
		places[nr++] = (struct csink_hotspot_place){method, CSINK_CODE_NOT_BEGUN};
	for (uint32_t i = 0; i < nr; i++)
		if (!add_method(walk, vm, places[i].method, places[i].bci))
			return walk->nr_frames > first;
	remember(key, walk->room->frames + first, nr);
	return true;
}

/* Where in an interpreted method its frame is: the address of the instruction is in a register or in the frame. */
static uint32_t bci_of(struct csink_interp_walk *walk, const struct native *native,
		       const struct csink_interp_seen *method)
{
	uint64_t at = 0;

#if defined(__x86_64__)
	at = (uint64_t)walk->context->uc_mcontext.gregs[REG_R13];
#endif
	if (native->is_leaf && at - method->own < method->own_bytes)
		return (uint32_t)(at - method->own);
	if (csink_interp_load(walk, native->fp + (uintptr_t)HOTSPOT_BYTECODE, &at) &&
	    at - method->own < method->own_bytes)
		return (uint32_t)(at - method->own);
	return CSINK_CODE_NOT_BEGUN;
}

static bool add_interpreted(struct csink_interp_walk *walk, const struct csink_hotspot *vm,
			    const struct csink_hotspot_blob *blob, const struct native *native)
{
	const struct csink_interp_seen *seen;
	uint64_t method = 0;
	bool has_frame = true;

	if (native->is_leaf) {
		struct csink_made_frame frame = {native->pc, native->sp, native->fp, &walk->context->uc_mcontext,
						 &walk->load};
		struct csink_hotspot_leaf leaf;

		has_frame =
			csink_hotspot_leaf(vm, blob, &frame, &leaf) && leaf.way == HOTSPOT_INTERPRETED && !leaf.method;
		method = leaf.method;
	}
	if (has_frame)
		csink_interp_load(walk, native->fp + (uintptr_t)HOTSPOT_METHOD, &method);
	seen = method ? see(walk, vm, method) : NULL;
	return seen && csink_interp_add(walk, seen->ref,
					has_frame ? bci_of(walk, native, seen) : (uint32_t)CSINK_CODE_NOT_BEGUN);
}

/* Add what a frame of a blob runs, as a group. False: no frame may follow. */
static bool take_frame(struct csink_interp_walk *walk, const struct csink_hotspot *vm,
		       const struct csink_hotspot_blob *blob, const struct native *native)
{
	uint32_t before = walk->nr_frames;
	bool is_broken = walk->is_broken, is_added = false;
	uintptr_t pc = native->pc;

	if (blob->kind == HOTSPOT_COMPILED && !native->is_leaf)
		pc = csink_hotspot_original_pc(walk, vm, blob, native->pc, native->sp);
	if (blob->kind == HOTSPOT_COMPILED || blob->kind == HOTSPOT_WRAPPER)
		is_added = add_compiled(walk, vm, blob, pc);
	else if (blob->kind == HOTSPOT_CODE_OF_INTERPRETER)
		is_added = add_interpreted(walk, vm, blob, native);
	if (!is_added && !walk->is_full) {
		/* The stack itself is whole: it is this name that is not known. */
		walk->nr_frames = before;
		walk->is_broken = is_broken;
		is_added = add_blob(walk, vm, blob, native);
	}
	csink_interp_group(walk, native->sp);
	return is_added && !walk->is_full;
}

static void walk_hotspot(struct csink_interp_walk *walk)
{
	const struct csink_hotspot *vm = csink_hotspot_get();
	const struct csink_walk *native = walk->native;
	struct csink_hotspot_blob blob;
	bool has_any;

	if (!vm || !vm->is_whole)
		vm = csink_hotspot_look(walk);
	if (!vm)
		return;
	has_any = csink_hotspot_blob(vm, csink_context_pc(walk->context), &blob);
	for (uint32_t i = 0; i < native->nr_frames && !has_any; i++)
		has_any = (native->frames[i] & ~CSINK_FRAME_EXACT) - vm->low < vm->high - vm->low;
	if (!has_any)
		return;
	set_epoch(walk, vm);
	csink_interp_find_cfas(walk);
	for (uint32_t i = 0; i <= native->nr_frames; i++) {
		struct native at = {.is_leaf = i == 0};

		at.pc = i ? native->frames[i - 1] & ~CSINK_FRAME_EXACT : csink_context_pc(walk->context);
		at.sp = i ? walk->room->cfas[i - 1] : csink_context_sp(walk->context);
		at.fp = i ? walk->room->fps[i - 1] : csink_context_fp(walk->context);
		if (at.sp != UINTPTR_MAX && csink_hotspot_blob(vm, at.pc, &blob) && !take_frame(walk, vm, &blob, &at))
			break;
	}
}

const struct csink_language csink_hotspot = {"hotspot", find, walk_hotspot, describe};
