/*
 * Where HotSpot has its fields: see hotspot.h. libjvm exports tables with the names of types and fields, their offsets,
 * and addresses of static variables (gHotSpotVMStructs ...). Sources: src/hotspot/share/runtime/vmStructs.cpp of JDK 11
 * to 25.
 *
 * find() runs when libjvm is seen, perhaps before it is relocated: it takes the addresses of the tables. They are read
 * by the first handler that finds a virtual machine in their variables. From then on libjvm stays: its threads run.
 */
#include <elf.h>
#include <string.h>

#include "include/internal/base.h"
#include "preload/agent/interp/hotspot.h"
#include "preload/core/interpreter_signs.h"

enum {
	MAX_ROWS = 8192,                  /* of a table of libjvm's */
	MAX_TEXT = 48,                    /* bytes of a text that is compared, its end included */
	MAX_OFFSET = 4096,                /* of a field, and size of a type */
	LAST_STATIC = HOTSPOT_REDEFINES,  /* the rows up to here are static variables, the others are not */
	FIRST_SIZE = HOTSPOT_BLOCK_BYTES, /* the rows from here on are sizes of types, then moved fields */
};

static const char other_version[] =
	"Java frames are not read: the fields of this HotSpot are not known; JDK 11 to 25 are supported";

/* Where other versions have them. */
#define MOVED_FIELDS(X)                                                                                                \
	X(ARRAY_NR, NEEDED, "GenericGrowableArray", "_len")                                                            \
	X(COMPILED_METHOD, NEEDED, "CompiledMethod", "_method")                                                        \
	X(CONST_FLAGS, NEEDED, "ConstMethod", "_flags._flags")                                                         \
	X(THREAD_OS, NEEDED, "Thread", "_osthread")

/* The names, one behind another: of each row its type, which is empty if a row before it has named it, then its field.
 */
#define SAME ""
#define TEXT_BYTES(field, need, type, name) char field[sizeof(type) + sizeof(name)];
#define MOVED_BYTES(field, need, type, name) char moved_##field[sizeof(type) + sizeof(name)];
#define TEXT(field, need, type, name) type "\0" name,

static const struct texts {
	CSINK_HOTSPOT_FIELDS(TEXT_BYTES)
	MOVED_FIELDS(MOVED_BYTES)
} texts = {CSINK_HOTSPOT_FIELDS(TEXT) MOVED_FIELDS(TEXT)};

#define OPTIONAL false
#define NEEDED true
#define ROW(field, need, type, name) {HOTSPOT_##field, need, sizeof(type), offsetof(struct texts, field)},
#define MOVED_ROW(field, need, type, name) {HOTSPOT_##field, need, sizeof(type), offsetof(struct texts, moved_##field)},

/* First one row a field, in their order. */
static const struct row {
	uint8_t field : 7;
	bool is_needed : 1;
	uint8_t type_bytes;
	uint16_t text;
} table[] = {CSINK_HOTSPOT_FIELDS(ROW) MOVED_FIELDS(MOVED_ROW)};
_Static_assert(HOTSPOT_NR_FIELDS <= 128, "a row has seven bits for its field");
_Static_assert(sizeof(texts.HEAPS) > sizeof(SAME) + sizeof("_heaps"), "the first row names its type");
_Static_assert(sizeof(texts.BLOCK_BYTES) > sizeof(SAME) + sizeof(""), "the first row of a size names its type");
#define CHECK_ROW(field, need, type, name)                                                                             \
	_Static_assert((sizeof(name) == sizeof("")) == ((int)HOTSPOT_##field >= (int)FIRST_SIZE),                      \
		       "sizes of types are the last fields");                                                          \
	_Static_assert(sizeof(type) <= MAX_TEXT && sizeof(name) <= MAX_TEXT, "texts of libjvm's are long enough");
CSINK_HOTSPOT_FIELDS(CHECK_ROW)

/* Of each pair, one must be there. */
static const uint8_t pairs[][2] = {
	{HOTSPOT_BLOB_CODE, HOTSPOT_BLOB_CODE_OFFSET},
	{HOTSPOT_POOL_FILE, HOTSPOT_CLASS_FILE},
	{HOTSPOT_COMPILED_SCOPES, HOTSPOT_COMPILED_SCOPES_OFFSET},
	{HOTSPOT_COMPILED_PCS_END, HOTSPOT_COMPILED_SCOPES_OFFSET},
	{HOTSPOT_COMPILED_METADATA_OFFSET, HOTSPOT_BLOB_MUTABLE},
};

/* libjvm's variables that say where its tables are, and how their rows are made. */
#define EXPORTED(X)                                                                                                    \
	X(STRUCTS, "Structs")                                                                                          \
	X(STRUCT_STRIDE, "StructEntryArrayStride")                                                                     \
	X(STRUCT_TYPE, "StructEntryTypeNameOffset")                                                                    \
	X(STRUCT_NAME, "StructEntryFieldNameOffset")                                                                   \
	X(STRUCT_KIND, "StructEntryTypeStringOffset")                                                                  \
	X(STRUCT_OFFSET, "StructEntryOffsetOffset")                                                                    \
	X(STRUCT_ADDRESS, "StructEntryAddressOffset")                                                                  \
	X(TYPES, "Types")                                                                                              \
	X(TYPE_STRIDE, "TypeEntryArrayStride")                                                                         \
	X(TYPE_NAME, "TypeEntryTypeNameOffset")                                                                        \
	X(TYPE_BYTES, "TypeEntrySizeOffset")
#define EXPORTED_ID(id, name) id,
#define EXPORTED_NAME(id, name) name "\0"
#define EXPORTED_PREFIX "gHotSpotVM"

enum exported { EXPORTED(EXPORTED_ID) NR_EXPORTED };
static const char exports[] = EXPORTED(EXPORTED_NAME); /* one behind another, without the prefix */

/* MADE: the machine is being created, without an interpreter yet. Only code of the creating thread can be named. */
enum state { UNKNOWN = CSINK_HOTSPOT_UNKNOWN, BUSY = CSINK_HOTSPOT_BUSY, MADE, READY, REFUSED };

static struct csink_hotspot machine CSINK_COLD;
static uintptr_t exported[NR_EXPORTED] CSINK_COLD; /* addresses of the variables */
int csink_hotspot_state;                           /* atomic: MADE and READY publish `machine` */

#if defined(__x86_64__)
/* Take the addresses of the tables. False: a virtual machine of another object runs, or a handler is looking for one.
 */
static bool keep_exported(const uintptr_t *found)
{
	int now = __atomic_load_n(&csink_hotspot_state, __ATOMIC_ACQUIRE);
	bool is_same = !memcmp(exported, found, sizeof(exported));

	/* Handlers may be reading `machine`, so it is not replaced: only the same library is accepted. */
	if (now == READY || now == BUSY || now == MADE) {
		if (is_same && now != BUSY)
			csink_made_set_stepper(csink_hotspot_step);
		return is_same;
	}
	if (!__atomic_compare_exchange_n(&csink_hotspot_state, &now, BUSY, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return !memcmp(exported, found, sizeof(exported));
	memcpy(exported, found, sizeof(exported));
	memset(&machine, 0, sizeof(machine));
	__atomic_store_n(&csink_hotspot_state, UNKNOWN, __ATOMIC_RELEASE);
	return true;
}
#endif

int csink_hotspot_find(const struct csink_elf_view *object, struct csink_interpreter *to, const char **why)
{
	uintptr_t all[NR_EXPORTED];
	char name[MAX_TEXT];
	const char *from = exports;

	if (!csink_elf_look(object, CSINK_SIGN_HOTSPOT, STT_OBJECT, NULL))
		return 0;
	memcpy(name, EXPORTED_PREFIX, strlen(EXPORTED_PREFIX));
	for (int i = 0; i < NR_EXPORTED; i++) {
		char *to_name = name + strlen(EXPORTED_PREFIX);
		uintptr_t at;

		do
			*to_name++ = *from;
		while (*from++);
		at = csink_elf_look(object, name, STT_OBJECT, NULL);
		*why = other_version;
		if (!at)
			return -1;
		all[i] = at;
	}
	to->code = to->start;
	to->data[0] = all[STRUCTS];
#if defined(__x86_64__)
	*why = "Java frames of a second HotSpot are not read: only one in a process";
	if (!keep_exported(all))
		return -1;
	return 1;
#else
	*why = "Java frames are not read: only x86-64 is supported";
	return -1;
#endif
}

/* Bytes of a C++ type; none of the fields that are read has another one of these sizes. */
static uint8_t bytes_of(const char *type)
{
	static const char sizes[] = "\2u2\0\2int16_t\0\2jushort\0\2unsigned short\0\1u1\0\1char\0\1bool\0"
				    "\10address\0\10intptr_t\0\10pthread_t\0";

	if (!type)
		return 8;
	for (int i = 0; i < MAX_TEXT && type[i]; i++)
		if (type[i] == '*')
			return 8;
	for (const char *size = sizes; *size; size += strlen(size) + 1)
		if (!strcmp(type, size + 1))
			return (uint8_t)*size;
	return 4;
}

/* 0 if it cannot be read. */
static uint64_t word_at(struct csink_interp_walk *walk, uintptr_t at)
{
	uint64_t word = 0;

	csink_interp_load(walk, at, &word);
	return word;
}

/* A word of a table's row. */
static uint64_t word_of(struct csink_interp_walk *walk, uintptr_t row, enum exported column)
{
	return word_at(walk, row + word_at(walk, exported[column]));
}

/*
 * A text of a table's row. NULL: it is none of libjvm's. The tables of a program that only has the names of libjvm's
 * variables, or of a libjvm that is not relocated yet, may point anywhere.
 */
static const char *text_of(struct csink_interp_walk *walk, uintptr_t row, enum exported column)
{
	const struct csink_interpreter *libjvm = walk->interpreter;
	uintptr_t at = word_of(walk, row, column);

	/* Signed: without .eh_frame_hdr no segment is known, both ends are 0, and 0 - MAX_TEXT is not to be large. */
	return (intptr_t)at >= (intptr_t)libjvm->constants && (intptr_t)at <= (intptr_t)libjvm->constants_end - MAX_TEXT
		       ? (const char *)at
		       : NULL;
}

/* Most texts that are compared differ in the first byte. */
static bool is_text(const char *text, const char *other)
{
	return text[0] == other[0] && !strcmp(text, other);
}

static bool names_type(const struct row *row)
{
	return row->type_bytes > sizeof(SAME);
}

/* Empty where a row before it has named the type. */
static const char *type_of(const struct row *row)
{
	return (const char *)&texts + row->text;
}

/* Empty where the size of the type is asked for. */
static const char *name_of(const struct row *row)
{
	return type_of(row) + row->type_bytes;
}

#define TABLE_END (table + CSINK_ARRAY_SIZE(table))

/* The first row with this type; the table's end if there is none. */
static const struct row *row_of(const char *type)
{
	const struct row *row = table;

	while (row < TABLE_END && !(names_type(row) && is_text(type_of(row), type)))
		row++;
	return row;
}

/* @row: the one to begin at, which names its type; before it, SAME has no meaning. */
static void take(struct csink_hotspot *vm, const struct row *row, const char *type, const char *name, uint64_t at,
		 uint8_t bytes)
{
	bool is_type = false;

	for (; row < TABLE_END; row++) {
		is_type = names_type(row) ? is_text(type_of(row), type) : is_type;
		if (is_type && !vm->bytes[row->field] && is_text(name_of(row), name)) {
			vm->at[row->field] = at;
			vm->bytes[row->field] = bytes;
		}
	}
}

/* @all: STRUCTS or TYPES; behind it in EXPORTED are the table's stride and the column of types. */
static void read_table(struct csink_hotspot *vm, struct csink_interp_walk *walk, enum exported all)
{
	uintptr_t row = word_at(walk, exported[all]), stride = word_at(walk, exported[all + 1]);
	const char *type, *last = NULL, *name = "";
	const struct row *first = &table[FIRST_SIZE];

	for (int i = 0; i < MAX_ROWS && (type = text_of(walk, row, all + 2)); i++, row += stride, last = type) {
		if (all == TYPES) {
			take(vm, first, type, name, word_of(walk, row, TYPE_BYTES), 8);
			continue;
		}
		if (type != last)
			first = row_of(type);
		if (first < TABLE_END && (name = text_of(walk, row, STRUCT_NAME))) {
			uint64_t address = word_of(walk, row, STRUCT_ADDRESS);

			take(vm, first, type, name, address ? address : word_of(walk, row, STRUCT_OFFSET),
			     bytes_of(text_of(walk, row, STRUCT_KIND)));
		}
	}
}

/* Are all fields there that are needed? And each that is there, at an address that can be read, or with an offset below
 * MAX_OFFSET? */
static bool is_supported(struct csink_hotspot *vm, struct csink_interp_walk *walk)
{
	uint64_t word;

	for (unsigned int i = 0; i < HOTSPOT_NR_FIELDS; i++) {
		if (!vm->bytes[i]      ? table[i].is_needed
		    : i <= LAST_STATIC ? !csink_interp_load(walk, vm->at[i], &word)
				       : vm->at[i] >= MAX_OFFSET || (i == HOTSPOT_PC_BYTES && !vm->at[i]))
			return false;
	}
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(pairs); i++)
		if (!vm->bytes[pairs[i][0]] && !vm->bytes[pairs[i][1]])
			return false;
	vm->version = (uint32_t)csink_load_known(vm->at[HOTSPOT_VERSION]);
	return vm->version >= 11 && vm->version <= 25;
}

/* The heaps of code. False: they are not there yet. */
static bool read_heaps(struct csink_hotspot *vm, struct csink_interp_walk *walk)
{
	uint64_t list, data, heap, nr;
	bool ok = true;

	list = csink_load_known(vm->at[HOTSPOT_HEAPS]);
	nr = list ? csink_hotspot_load(walk, vm, list, HOTSPOT_ARRAY_NR, &ok) : 0;
	data = nr ? csink_hotspot_load(walk, vm, list, HOTSPOT_ARRAY_DATA, &ok) : 0;
	for (uint64_t i = 0; ok && data && i < CSINK_MIN(nr, (uint64_t)HOTSPOT_MAX_HEAPS); i++) {
		if (csink_interp_load(walk, data + 8 * i, &heap) && heap)
			vm->heaps[vm->nr_heaps++] = heap;
	}
	vm->low = csink_load_known(vm->at[HOTSPOT_CODE_LOW]);
	vm->high = csink_load_known(vm->at[HOTSPOT_CODE_HIGH]);
	return vm->nr_heaps && vm->nr_heaps == nr && vm->low && vm->high > vm->low;
}

/* The interpreter's pieces of code for the entry of methods: they follow each other. False: not there yet. */
static bool read_entries(struct csink_hotspot *vm, struct csink_interp_walk *walk)
{
	static const char entry[] = "method "; /* "method entry point (kind = ...)": no other begins so */
	uint64_t queue = csink_load_known(vm->at[HOTSPOT_INTERPRETER]), at, nr;
	bool ok = queue != 0, is_entry = false;

	at = csink_hotspot_load(walk, vm, queue, HOTSPOT_QUEUE_BUFFER, &ok);
	at += csink_hotspot_load(walk, vm, queue, HOTSPOT_QUEUE_BEGIN, &ok);
	nr = csink_hotspot_load(walk, vm, queue, HOTSPOT_QUEUE_NR, &ok);
	for (uint64_t i = 0; ok && i < CSINK_MIN(nr, (uint64_t)MAX_ROWS); i++) {
		uint64_t bytes = csink_hotspot_load(walk, vm, at, HOTSPOT_CODELET_BYTES, &ok);
		char text[sizeof(entry)] = "";

		csink_interp_text(walk, csink_hotspot_load(walk, vm, at, HOTSPOT_CODELET_TEXT, &ok), sizeof(entry) - 1,
				  text, sizeof(entry) - 1);
		is_entry = !strcmp(text, entry);
		if (ok && is_entry && vm->nr_entries < HOTSPOT_MAX_ENTRIES - 1) {
			vm->entries[vm->nr_entries++] = at;
			vm->entries[vm->nr_entries] = at + bytes;
		}
		at += bytes;
	}
	/* They are made one by one, and the code of bytecodes after them: a sample may come between. */
	return ok && vm->nr_entries && !is_entry;
}

static void read_archive(struct csink_hotspot *vm)
{
	if (!vm->bytes[HOTSPOT_ARCHIVE_LOW] || !vm->bytes[HOTSPOT_ARCHIVE_HIGH])
		return;
	vm->archive = csink_load_known(vm->at[HOTSPOT_ARCHIVE_LOW]);
	vm->archive_bytes = csink_load_known(vm->at[HOTSPOT_ARCHIVE_HIGH]) - vm->archive;
}

const struct csink_hotspot *csink_hotspot_get(void)
{
	int state = __atomic_load_n(&csink_hotspot_state, __ATOMIC_ACQUIRE);

	return state == READY || state == MADE ? &machine : NULL;
}

/*
 * Is there a virtual machine? One of these variables shows it. Until then the tables may have gaps: they are being
 * relocated, or filled in by constructors.
 */
static bool has_begun(const struct csink_hotspot *vm, struct csink_interp_walk *walk)
{
	static const uint8_t variables[] = {HOTSPOT_HEAPS, HOTSPOT_CODE_LOW, HOTSPOT_INTERPRETER};

	for (size_t i = 0; i < sizeof(variables); i++)
		if (word_at(walk, vm->at[variables[i]]))
			return true;
	return false;
}

/* Were all of them found, and none shows one? Then the tables need not be read again: a program may never start it. */
static bool has_not_begun(const struct csink_hotspot *vm, struct csink_interp_walk *walk)
{
	return vm->at[HOTSPOT_HEAPS] && vm->at[HOTSPOT_CODE_LOW] && vm->at[HOTSPOT_INTERPRETER] && !has_begun(vm, walk);
}

/*
 * Find the counters among those that jstat(1) reads: see hotspot.c. The format of these has a version
 * (src/hotspot/share/runtime/perfMemory.hpp): a head, then entries, each with offsets of its name and value.
 */
static void find_counters(struct csink_hotspot *vm, struct csink_interp_walk *walk)
{
	enum { MAGIC = (int)0xc0c0feca, VERSION = 0x000201, FIRST = 24, TYPE = 12, LONG = 'J', MAX_BYTES = 1 << 20 };
	static const char names[][sizeof("java.cls.unloadedClasses")] = {
		[HOTSPOT_UNLOADED] = "java.cls.unloadedClasses",
		[HOTSPOT_SAFEPOINTS] = "sun.rt.safepoints",
		[HOTSPOT_STOP_TIME] = "sun.rt.safepointSyncTime",
	};
	uint64_t head, first, entry, value;
	uintptr_t start = vm->bytes[HOTSPOT_COUNTERS] ? csink_load_known(vm->at[HOTSPOT_COUNTERS]) : 0, at;

	if (!start || !csink_interp_load(walk, start, &head) || !csink_interp_load(walk, start + FIRST, &first))
		return;
	if ((uint32_t)head != (uint32_t)MAGIC || (head >> 32 & 0xffffff) != VERSION)
		return;
	at = start + (uint32_t)first;
	for (uint64_t nr = first >> 32; nr > 0 && at - start < MAX_BYTES; nr--) {
		char name[sizeof(names[0])] = "";
		uintptr_t counter;

		if (!csink_interp_load(walk, at, &entry) || !csink_interp_load(walk, at + TYPE, &value) ||
		    (uint32_t)entry < sizeof(value))
			return;
		counter = value >> 32 <= (uint32_t)entry - sizeof(value) ? at + (value >> 32) : 0;
		csink_interp_text(walk, at + (entry >> 32), sizeof(name) - 1, name, sizeof(name) - 1);
		at += (uint32_t)entry;
		if ((value & 0xff) != LONG || !counter || !csink_interp_load(walk, counter, &value))
			continue;
		for (int i = 0; i < HOTSPOT_NR_COUNTERS; i++)
			if (!strcmp(name, names[i]))
				vm->counters[i] = counter;
	}
}

/* Read the tables. @next: the state, if they are not there or lack something. */
static bool read_tables(struct csink_interp_walk *walk, enum state *next)
{
	*next = UNKNOWN;
	if (has_not_begun(&machine, walk))
		return false;
	memset(&machine, 0, sizeof(machine));
	read_table(&machine, walk, STRUCTS);
	/* Without its variables the other table is not worth its time: samples come again and again while libjvm
	 * starts. */
	if (!has_begun(&machine, walk))
		return false;
	read_table(&machine, walk, TYPES);
	if (!is_supported(&machine, walk)) {
		csink_interp_refuse(walk, other_version);
		*next = REFUSED;
		return false;
	}
	machine.is_read = true;
	return true;
}

/* Returns the next state, which is stored. */
static enum state look(struct csink_interp_walk *walk)
{
	enum state next;

	/* Another object's, which is not loaded any more? */
	if (walk->interpreter->data[0] != exported[STRUCTS])
		return UNKNOWN;
	if (!machine.is_read && !read_tables(walk, &next))
		return next;
	machine.nr_heaps = machine.nr_entries = 0;
	if (!read_heaps(&machine, walk))
		return UNKNOWN;
	if (!read_entries(&machine, walk))
		return MADE;
	read_archive(&machine);
	find_counters(&machine, walk);
	machine.is_whole = true;
	return READY;
}

const struct csink_hotspot *csink_hotspot_look(struct csink_interp_walk *walk)
{
	int state = __atomic_load_n(&csink_hotspot_state, __ATOMIC_RELAXED);
	enum state next;

	if ((state != UNKNOWN && state != MADE) ||
	    !__atomic_compare_exchange_n(&csink_hotspot_state, &state, BUSY, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return csink_hotspot_get();
	/* The tables lie in libjvm's variables: their words, some thousands, are loaded without being asked for. */
	walk->known = walk->interpreter->variables;
	walk->known_bytes = CSINK_MAX(walk->interpreter->variables_end - walk->known, (uintptr_t)7) - 7;
	next = look(walk);
	walk->known = walk->known_bytes = 0;
	__atomic_store_n(&csink_hotspot_state, next, __ATOMIC_RELEASE);
	if (next == READY || next == MADE)
		csink_made_set_stepper(csink_hotspot_step);
	return csink_hotspot_get();
}
