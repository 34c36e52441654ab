/*
 * Looks like HotSpot to those who read its frames: it exports where HotSpot has its fields, and "runs" methods whose
 * records lie at these places: a stub that calls Java, an interpreted method, and a compiled one with an inlined call.
 * Which fields VERSION (tests/rules.mk) exports, with which types, is that of the sources of that JDK (vmStructs.cpp);
 * the places of 11, 17 and 21, and of 24 and 25 are those that 17 and 25 have on x86-64.
 *
 *   hotspot_VERSION MS [again | stubs | stub | astray N]     works that long in code that these call
 *
 * again: after half of that time a class is "unloaded", and another method is where the interpreted one was.
 * stubs: before there is a virtual machine, then in code that compiled methods enter with arguments pushed, in two
 * places of an adapter, and in a stub that native code calls. stub: in that alone. astray: a word of what is exported
 * points where no memory is. Macros: VERSION (default: 17); SHOWN_VERSION: what is exported as the version; MISSING: no
 * compiled code has scopes; COUNTS: 0: nothing is counted, 3: safepoints, too, not only unloaded classes;
 * REDEFINES: methods are replaced in a class that stays.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define SHOWN __attribute__((visibility("default"), used))

#ifndef VERSION
#define VERSION 17
#endif
#ifndef SHOWN_VERSION
#define SHOWN_VERSION VERSION
#endif
#ifndef COUNTS
#define COUNTS 1
#endif
#ifndef REDEFINES
#define REDEFINES 0
#endif

enum {
	IS_24 = VERSION >= 24, /* as 23: lists of compiled code are in memory of their own */
	IS_25 = VERSION >= 25,
	HAS_NEW_NUMBERS = VERSION >= 20,
	SEGMENT_SHIFT = 7,
	HEAP_MEMORY = IS_24 ? 0 : 8,
	HEAP_MAP = IS_24 ? 112 : 120,
	HEAP_SHIFT = IS_24 ? 248 : 256,
	LOW = 16,
	HIGH = 24,
	USED = IS_24 ? 4 : 8,
	HEADER_BYTES = 16,
	BLOB_NAME = IS_24 ? 8 : 96,
	FRAME_WORDS = IS_24 ? 44 : 28,
	COMPLETE = IS_24 ? 54 : 20,
	CODE = IS_24 ? 36 : 32,
	BLOB_METHOD = IS_24 ? 80 : 112,
	ID = IS_24 ? 212 : 304,
	SCOPES_PCS = IS_24 ? 196 : 268,
	DEOPT = IS_24 ? 176 : 128,
	BLOB_BYTES = 320, /* then code */
	CODE_BYTES = 320,
	DATA = BLOB_BYTES + CODE_BYTES,
	METADATA = DATA + (IS_24 ? 16 : 0),
	PCS = DATA + 64,
	SCOPES = DATA + 128,
	CONST_BYTES = 56,
	NAME_INDEX = IS_24 ? 36 : 34,
	CODE_SIZE = IS_24 ? 34 : 32,
	POOL_BYTES = 72,
	CLASS_NAME = 24,
	CLASS_FILE = 140,
	POOL_FILE = 54,
	FIELDS_IN_CLASS = VERSION < 15,
};

static struct {
	uint64_t heaps, low, high, interpreter, call_return, counters;
	int version;
	char redefines;
} vm;

/* As HotSpot has it: a static variable's address, or a field's offset. */
struct row {
	const char *type, *name, *kind;
	int32_t is_static, padding;
	uint64_t offset;
	void *address;
};

#define FIELD(type, name, kind, offset)                                                                                \
	{                                                                                                              \
		type, name, kind, 0, 0, offset, NULL                                                                   \
	}
#define VARIABLE(type, name, kind, variable)                                                                           \
	{                                                                                                              \
		type, name, kind, 1, 0, 0, &(variable)                                                                 \
	}

static struct row rows[] = {
	VARIABLE("CodeCache", "_heaps", "GrowableArray<CodeHeap*>*", vm.heaps),
	VARIABLE("CodeCache", "_low_bound", "address", vm.low),
	VARIABLE("CodeCache", "_high_bound", "address", vm.high),
	VARIABLE("Abstract_VM_Version", "_vm_major_version", "int", vm.version),
	VARIABLE("AbstractInterpreter", "_code", "StubQueue*", vm.interpreter),
	VARIABLE("StubRoutines", "_call_stub_return_address", "address", vm.call_return),
	VARIABLE("PerfMemory", "_start", "char*", vm.counters),
	VARIABLE("JvmtiExport", "_can_hotswap_or_post_breakpoint", "bool", vm.redefines),
	FIELD(FIELDS_IN_CLASS ? "GenericGrowableArray" : "GrowableArrayBase", "_len", "int", 0),
	FIELD("GrowableArray<int>", "_data", "int*", 8),
	FIELD("CodeHeap", "_memory", "VirtualSpace", HEAP_MEMORY),
	FIELD("CodeHeap", "_segmap", "VirtualSpace", HEAP_MAP),
	FIELD("CodeHeap", "_log2_segment_size", "int", HEAP_SHIFT),
	FIELD("VirtualSpace", "_low", "char*", LOW),
	FIELD("VirtualSpace", "_high", "char*", HIGH),
	FIELD("HeapBlock", "_header", "HeapBlock::Header", 0),
	FIELD("HeapBlock::Header", "_used", "bool", USED),
	FIELD("CodeBlob", "_name", "const char*", BLOB_NAME),
	FIELD("CodeBlob", "_frame_size", "int", FRAME_WORDS),
	FIELD("CodeBlob", "_frame_complete_offset", IS_24 ? "int16_t" : "int", COMPLETE),
	FIELD("CodeBlob", IS_24 ? "_code_offset" : "_code_begin", IS_24 ? "int" : "address", CODE),
	FIELD(IS_24 ? "nmethod" : "CompiledMethod", "_method", "Method*", BLOB_METHOD),
	FIELD("nmethod", "_compile_id", "int", ID),
#if !defined(MISSING)
	FIELD("nmethod", "_scopes_pcs_offset", "int", SCOPES_PCS),
#endif
#if VERSION >= 23
	FIELD("CodeBlob", "_data_offset", "int", 40),
	FIELD("nmethod", "_scopes_data_offset", "int", 200),
	FIELD("nmethod", "_immutable_data", "address", 96),
	FIELD("nmethod", "_deopt_handler_offset", "int", DEOPT),
#else
	FIELD("nmethod", "_dependencies_offset", "int", 272),
	FIELD("CompiledMethod", "_scopes_data_begin", "address", 120),
	FIELD("CompiledMethod", "_deopt_handler_begin", "address", DEOPT),
#endif
#if VERSION >= 25
	FIELD("CodeBlob", "_relocation_size", "int", 28),
	FIELD("CodeBlob", "_mutable_data", "address", 16),
#else
	FIELD("nmethod", "_metadata_offset", IS_24 ? "u2" : "int", IS_24 ? 190 : 260),
#endif
	FIELD("Method", "_constMethod", "ConstMethod*", 8),
	FIELD("ConstMethod", "_constants", "ConstantPool*", 8),
	FIELD("ConstMethod", "_name_index", "u2", NAME_INDEX),
	FIELD("ConstMethod", VERSION >= 21 ? "_flags._flags" : "_flags", VERSION >= 21 ? "u4" : "u2", 28),
	FIELD("ConstMethod", "_code_size", "u2", CODE_SIZE),
	FIELD("ConstantPool", "_pool_holder", "InstanceKlass*", 24),
	FIELD("ConstantPool", "_length", "int", 60),
	FIELD(FIELDS_IN_CLASS ? "InstanceKlass" : "ConstantPool", "_source_file_name_index", "u2",
	      FIELDS_IN_CLASS ? CLASS_FILE : POOL_FILE),
	FIELD("Klass", "_name", "Symbol*", CLASS_NAME),
	FIELD("Symbol", "_length", FIELDS_IN_CLASS ? "unsigned short" : "u2", 4),
	FIELD("Symbol", "_body", NULL, 6),
	FIELD("StubQueue", "_stub_buffer", "address", 8),
	FIELD("StubQueue", "_queue_begin", "int", 24),
	FIELD("StubQueue", "_number_of_stubs", "int", 32),
	FIELD("InterpreterCodelet", "_size", "int", 8),
	FIELD("InterpreterCodelet", "_description", "const char*", 0),
	FIELD("PcDesc", "_pc_offset", "int", 0),
	FIELD("PcDesc", "_scope_decode_offset", "int", 4),
	FIELD("JavaThread", "_anchor", "JavaFrameAnchor", 656),
	FIELD(VERSION == 17 ? "JavaThread" : "Thread", "_osthread", "OSThread*", 560),
	FIELD("OSThread", "_pthread_id", "pthread_t", 24),
	FIELD("JavaFrameAnchor", "_last_Java_sp", "intptr_t*", 0),
	FIELD("JavaFrameAnchor", "_last_Java_pc", "address", 8),
	FIELD("JavaFrameAnchor", "_last_Java_fp", "intptr_t*", 16),
	{0},
};

static struct {
	const char *name;
	uint64_t bytes;
} types[] = {
	{"HeapBlock", HEADER_BYTES}, {"ConstantPool", POOL_BYTES}, {"ConstMethod", CONST_BYTES}, {"PcDesc", 16}, {0}};

SHOWN void *gHotSpotVMStructs = rows, *gHotSpotVMTypes = types;
SHOWN uint64_t gHotSpotVMStructEntryArrayStride = sizeof(struct row), gHotSpotVMTypeEntryArrayStride = sizeof(types[0]);
SHOWN uint64_t gHotSpotVMStructEntryTypeNameOffset = 0, gHotSpotVMStructEntryFieldNameOffset = 8;
SHOWN uint64_t gHotSpotVMStructEntryTypeStringOffset = 16, gHotSpotVMStructEntryOffsetOffset = 32;
SHOWN uint64_t gHotSpotVMStructEntryAddressOffset = 40;
SHOWN uint64_t gHotSpotVMTypeEntryTypeNameOffset = 0, gHotSpotVMTypeEntrySizeOffset = 8;

/* ---- records ----------------------------------------------------------------------------------------------------- */

static char memory[1 << 14] __attribute__((aligned(16)));
static size_t used;

static char *new_record(size_t bytes)
{
	char *record = memory + used;

	used += (bytes + 15) & ~(size_t)15;
	return record;
}

static void put(char *record, size_t offset, uint64_t value, size_t bytes)
{
	memcpy(record + offset, &value, bytes);
}

static void put_address(char *record, size_t offset, const void *value)
{
	put(record, offset, (uint64_t)(uintptr_t)value, 8);
}

static char *new_symbol(const char *text)
{
	char *symbol = new_record(64);

	put(symbol, 4, strlen(text), 2);
	memcpy(symbol + 6, text, strlen(text));
	return symbol;
}

/* A method of a class of its own, with six bytes of code; lines 5 and, from the third byte on, 7. */
static char *new_method(const char *class_name, const char *name, const char *file)
{
	static const char lines[] = {0 << 3 | 5, 2 << 3 | 2, 0};
	char *class = new_record(160), *pool = new_record(POOL_BYTES + 4 * 8), *constant = new_record(CONST_BYTES + 16);
	char *method = new_record(96);

	put_address(class, CLASS_NAME, new_symbol(class_name));
	put_address(pool, 24, class);
	put(pool, 60, 4, 4);
	put(FIELDS_IN_CLASS ? class : pool, FIELDS_IN_CLASS ? CLASS_FILE : POOL_FILE, 3, 2);
	put_address(pool, POOL_BYTES + 8, new_symbol(name));
	put_address(pool, POOL_BYTES + 24, new_symbol(file));
	put_address(constant, 8, pool);
	put(constant, 28, 1, 2);
	put(constant, NAME_INDEX, 1, 2);
	put(constant, CODE_SIZE, 6, 2);
	memcpy(constant + CONST_BYTES + 6, lines, sizeof(lines));
	put_address(method, 8, constant);
	return method;
}

static volatile int64_t *counters[3]; /* in the order of new_counters(); NULL: it is not counted */

/* What jstat(1) reads. */
static void new_counters(void)
{
	enum { HEAD = 32, ENTRY = 56, VALUE = 48 };
	static const char *const names[] = {"java.cls.unloadedClasses", "sun.rt.safepointSyncTime",
					    "sun.rt.safepoints"};
	char *head = new_record(HEAD + 3 * ENTRY);

	put(head, 0, 0x00000201c0c0fecaULL, 8);
	put(head, 24, HEAD, 4);
	put(head, 28, COUNTS, 4);
	for (int i = 0; i < COUNTS; i++) {
		char *entry = head + HEAD + i * ENTRY;

		put(entry, 0, ENTRY, 4);
		put(entry, 4, 20, 4);
		put(entry, 12, 'J', 1);
		put(entry, 16, VALUE, 4);
		memcpy(entry + 20, names[i], strlen(names[i]) + 1);
		counters[i] = (volatile int64_t *)(entry + VALUE);
	}
	vm.counters = (uint64_t)(uintptr_t)head;
}

/* ---- code -------------------------------------------------------------------------------------------------------- */

static char *code_memory, *code_map;

enum { NR_SEGMENTS = 512 };

/* A block with a blob; returns the blob. */
static char *new_blob(const char *name, uint32_t frame_words)
{
	static size_t nr;
	size_t nr_segments = (HEADER_BYTES + DATA + 256) >> SEGMENT_SHIFT;
	char *block = code_memory + (nr << SEGMENT_SHIFT), *blob = block + HEADER_BYTES;

	for (size_t i = 0; i < nr_segments; i++)
		code_map[nr + i] = (char)i;
	nr += nr_segments;
	put(block, USED, 1, 1);
	put_address(blob, BLOB_NAME, name);
	put(blob, FRAME_WORDS, frame_words, 4);
	put(blob, COMPLETE, 5, IS_24 ? 2 : 4);
	if (IS_24)
		put(blob, CODE, BLOB_BYTES, 4);
	else
		put_address(blob, CODE, blob + BLOB_BYTES);
	return blob;
}

static void new_heap(void)
{
	static struct {
		int length, room;
		char **data;
	} heaps;
	static char *heap;
	size_t bytes = NR_SEGMENTS << SEGMENT_SHIFT;

	code_memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (code_memory == MAP_FAILED)
		exit(2);
	code_map = new_record(NR_SEGMENTS);
	memset(code_map, 0xff, NR_SEGMENTS);
	heap = new_record(272);
	put_address(heap, HEAP_MEMORY + LOW, code_memory);
	put_address(heap, HEAP_MEMORY + HIGH, code_memory + bytes);
	put_address(heap, HEAP_MAP + LOW, code_map);
	put_address(heap, HEAP_MAP + HIGH, code_map + NR_SEGMENTS);
	put(heap, HEAP_SHIFT, SEGMENT_SHIFT, 4);
	heaps.length = heaps.room = 1;
	heaps.data = &heap;
	vm.heaps = (uint64_t)(uintptr_t)&heaps;
	vm.low = (uint64_t)(uintptr_t)code_memory;
	vm.high = vm.low + bytes;
}

typedef void run(void (*then)(void), const char *method, const char *bytecode);

/* push %rbp; mov %rsp, %rbp; call *%rdi; leave; ret. Calls are not looked for in a blob's first bytes. */
static run *new_stub(void)
{
	static const unsigned char bytes[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0xc9, 0xc3};
	char *code = new_blob("StubRoutines (1)", 0) + BLOB_BYTES + 16;

	memcpy(code, bytes, sizeof(bytes));
	vm.call_return = (uint64_t)(uintptr_t)code + 6;
	return (run *)(uintptr_t)code;
}

/* Two pieces: of the first, methods are entered by. */
static run *new_interpreter(void)
{
	/* push %rbp; mov %rsp, %rbp; sub $80, %rsp; the caller's stack pointer, the method and the bytecode's address
	 * are stored; call *%rdi; leave; ret */
	static const unsigned char bytes[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x50, 0x48, 0x8d,
					      0x45, 0x10, 0x48, 0x89, 0x45, 0xf8, 0x48, 0x89, 0x75, 0xe8,
					      0x48, 0x89, 0x55, 0xc0, 0xff, 0xd7, 0xc9, 0xc3};
	char *first = new_blob("Interpreter", 0) + BLOB_BYTES, *second = first + 64, *queue = new_record(48);

	put_address(first, 0, "method entry point (kind = zerolocals)");
	put(first, 8, 64, 4);
	put_address(second, 0, "nop");
	put(second, 8, 64, 4);
	memcpy(second + 16, bytes, sizeof(bytes));
	put_address(queue, 8, first);
	put(queue, 32, 2, 4);
	vm.interpreter = (uint64_t)(uintptr_t)queue;
	return (run *)(uintptr_t)(second + 16);
}

static void put_number(char **at, uint32_t number)
{
	*(*at)++ = (char)(number + HAS_NEW_NUMBERS);
}

/* Of compiled code: push %rbp; sub $32, %rsp; ... call *%rdi; ... add $32, %rsp; pop %rbp; ret */
struct code {
	int32_t return_at; /* where it returns to behind the call */
	unsigned char bytes[32];
};

static const struct code plain = {7, {0x55, 0x48, 0x83, 0xec, 0x20, 0xff, 0xd7, 0x48, 0x83, 0xc4, 0x20, 0x5d, 0xc3}};

/* nop; push %rax and pop %rax, twice each, around the call */
static const struct code pushing = {13, {0x55, 0x48, 0x83, 0xec, 0x20, 0x0f, 0x1f, 0x40, 0x00, 0x50, 0x50,
					 0xff, 0xd7, 0x58, 0x58, 0x48, 0x83, 0xc4, 0x20, 0x5d, 0xc3}};

/* %r13 is saved, and has some other place in the stack: lea 256(%rsp), %r13 */
static const struct code with_r13 = {19, {0x55, 0x48, 0x83, 0xec, 0x20, 0x4c, 0x89, 0x2c, 0x24, 0x4c,
					  0x8d, 0xac, 0x24, 0x00, 0x01, 0x00, 0x00, 0xff, 0xd7, 0x4c,
					  0x8b, 0x2c, 0x24, 0x48, 0x83, 0xc4, 0x20, 0x5d, 0xc3}};

/* One method, into which the other one was inlined. */
static run *new_compiled(const struct code *code, const char *method, const char *inlined)
{
	/* Offset in the code, and of the scope. */
	const int32_t pcs[][4] = {{-1, 0, 0, 0}, {code->return_at, 8, 0, 0}, {INT32_MAX, 0, 0, 0}};
	char *blob = new_blob("nmethod", 6), *lists = IS_24 ? new_record(DATA + 256) : blob, *at = lists + SCOPES + 1;
	char *metadata = IS_25 ? new_record(64) : blob;

	memcpy(blob + BLOB_BYTES, code->bytes, sizeof(code->bytes));
	put_address(blob, BLOB_METHOD, method);
	put(blob, ID, 1, 4);
	put(blob, SCOPES_PCS, PCS, 4);
	memcpy(lists + PCS, pcs, sizeof(pcs));
	/* Scope 1, and scope 8, which was inlined into it: where it was, the method's number, the bytecode's and one.
	 */
	put_number(&at, 0);
	put_number(&at, 1);
	put_number(&at, 3);
	at = lists + SCOPES + 8;
	put_number(&at, 1);
	put_number(&at, 2);
	put_number(&at, 1);
	if (IS_24) {
		put_address(blob, 96, lists);
		put(blob, 200, SCOPES, 4);
		put(blob, 40, DATA, 4);
	} else {
		put(blob, 272, PCS + sizeof(pcs), 4);
		put_address(blob, 120, blob + SCOPES);
	}
	if (IS_25) {
		put_address(blob, 16, metadata);
		put(blob, 28, 16, 4);
	} else if (IS_24) {
		put(blob, 190, METADATA - DATA, 2);
	} else {
		put(blob, 260, METADATA, 4);
	}
	metadata += IS_25 ? 16 : METADATA;
	put_address(metadata, 0, method);
	put_address(metadata, 8, inlined);
	return (run *)(uintptr_t)(blob + BLOB_BYTES);
}

/* ---- the chain --------------------------------------------------------------------------------------------------- */

static struct {
	run *run;
	const char *method;
} chain[8];
static size_t nr_chain, next;
static long until_ms;
static char *replaced; /* the name of the interpreted method */

static long now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void work(long end)
{
	volatile uint64_t sum = 0;

	while (now_ms() < end)
		for (int i = 0; i < 10000; i++)
			sum += (uint64_t)i;
}

static void go_on(void)
{
	if (next < nr_chain) {
		const char *method = chain[next].method;

		next++;
		chain[next - 1].run(go_on, method,
				    method ? *(const char *const *)(method + 8) + CONST_BYTES + 2 : NULL);
		__asm__ volatile(""); /* no jump in place of the call */
		return;
	}
	work(until_ms / 2);
	if (replaced) {
		memcpy(replaced + 6, "other", 5);
		/* Of a class that stays, at a safepoint. */
		if (counters[REDEFINES])
			++*counters[REDEFINES];
	}
	work(until_ms);
	__asm__ volatile("");
}

static void add(run *code, const char *method)
{
	chain[nr_chain].run = code;
	chain[nr_chain++].method = method;
}

/* ---- stubs ------------------------------------------------------------------------------------------------------- */

/* mov $20000000, %ecx; dec %ecx; jne */
#define SPIN 0xb9, 0x00, 0x2d, 0x31, 0x01, 0xff, 0xc9, 0x75, 0xfc

static void (*new_code(const char *name, uint32_t frame_words, const unsigned char *bytes, size_t nr,
		       size_t entry))(void)
{
	char *code = new_blob(name, frame_words) + BLOB_BYTES;

	memcpy(code, bytes, nr);
	return (void (*)(void))(uintptr_t)(code + entry);
}

static __attribute__((noinline)) void in_virtual_machine(void)
{
	work(until_ms);
	__asm__ volatile("");
}

static void run_until(long end, run *compiled, void (*stub)(void))
{
	while (now_ms() < end)
		compiled(stub, (const char *)(uintptr_t)in_virtual_machine, NULL);
}

static void run_stubs(const char *outer, const char *inner, int nr_parts)
{
	/* Four registers are pushed, and popped. */
	static const unsigned char four[] = {0x57, 0x56, 0x51, 0x50, SPIN, 0x58, 0x59, 0x5e, 0x5f, 0xc3};
	/* jmp *%r11, with which the first part of adapters ends */
	static const unsigned char adapter[] = {0x41, 0xff, 0xe3, SPIN, 0xc3};
	/* mov %rsp, %r13; mov (%rsp), %rax; and $-16, %rsp; pushf; sub $8, %rsp; sub $128, %rsp; mov %r13, 16(%rsp);
	 * sub $2688, %rsp; call *%rsi; mov %r13, %rsp; ret */
	static const unsigned char calls[] = {0x41, 0xff, 0xe3, 0x4c, 0x8b, 0xec, 0x48, 0x8b, 0x04, 0x24, 0x48,
					      0x83, 0xe4, 0xf0, 0x9c, 0x48, 0x83, 0xec, 0x08, 0x48, 0x81, 0xec,
					      0x80, 0x00, 0x00, 0x00, 0x4c, 0x89, 0x6c, 0x24, 0x10, 0x48, 0x81,
					      0xec, 0x80, 0x0a, 0x00, 0x00, 0xff, 0xd6, 0x49, 0x8b, 0xe5, 0xc3};
	/* push %rdx; sub $24, %rsp; mov 32(%rsp), %rax; add $32, %rsp; pop %rdx; mov %rax, %r8; ... jmp *%r8 */
	static const unsigned char handler[] = {0x52, 0x48, 0x83, 0xec, 0x18, 0x48, 0x8b, 0x44, 0x24, 0x20, 0x48,
						0x83, 0xc4, 0x20, 0x5a, 0x4c, 0x8b, 0xc0, SPIN, 0x41, 0xff, 0xe0};
	/* push %rbp; mov %rsp, %rbp; ... and push %rbp; mov %rdi, %rbp; push %rbx; ... */
	static const unsigned char framed[] = {0x55, 0x48, 0x89, 0xe5, SPIN, 0x5d, 0xc3};
	static const unsigned char bare[] = {0x55, 0x48, 0x89, 0xfd, 0x53, SPIN, 0x5b, 0x5d, 0xc3};
	void (*stub)(void) = nr_parts == 1 ? new_code("VM_Version stub", 0, framed, sizeof(framed), 0)
					   : new_code("VM_Version stub", 0, bare, sizeof(bare), 0);
	long start = now_ms(), part = (until_ms - start) / nr_parts;

	while (now_ms() < start + part)
		stub();
	if (nr_parts == 1)
		return;
	run_until(start + 2 * part, new_compiled(&pushing, outer, inner),
		  new_code("C1 Runtime slow_subtype_check_blob", 5, four, sizeof(four), 0));
	run_until(start + 3 * part, new_compiled(&pushing, outer, inner),
		  new_code("ExceptionBlob", 4, handler, sizeof(handler), 0));
	run_until(start + 4 * part, new_compiled(&with_r13, outer, inner),
		  new_code("I2C/C2I adapters", 0, adapter, sizeof(adapter), 3));
	run_until(until_ms, new_compiled(&with_r13, outer, inner),
		  new_code("I2C/C2I adapters", 0, calls, sizeof(calls), 3));
}

/* Until there is a virtual machine, only the table of its variables is read. */
static void run_before(void)
{
	void *table = gHotSpotVMTypes, *none = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (none == MAP_FAILED)
		exit(2);
	gHotSpotVMTypes = none;
	work(now_ms() + 50);
	gHotSpotVMTypes = table;
}

/* @n: which word; those of the first row and of the next ones follow those that are exported. False: there is none. */
static int lead_astray(long n)
{
	void *const nowhere = (void *)0x1234567;
	void **words[] = {&gHotSpotVMStructs,
			  &gHotSpotVMTypes,
			  (void **)&gHotSpotVMStructEntryArrayStride,
			  (void **)&gHotSpotVMStructEntryTypeNameOffset,
			  (void **)&gHotSpotVMStructEntryFieldNameOffset,
			  (void **)&gHotSpotVMStructEntryTypeStringOffset,
			  (void **)&gHotSpotVMStructEntryOffsetOffset,
			  (void **)&gHotSpotVMStructEntryAddressOffset,
			  (void **)&gHotSpotVMTypeEntryArrayStride,
			  (void **)&gHotSpotVMTypeEntryTypeNameOffset,
			  (void **)&gHotSpotVMTypeEntrySizeOffset,
			  (void **)&types[0].name,
			  (void **)&types[0].bytes};
	const long nr_words = sizeof(words) / sizeof(words[0]), nr_rows = sizeof(rows) / sizeof(rows[0]) - 1;
	struct row *row = rows + (n - nr_words) / 5;

	if (n < nr_words) {
		*words[n] = nowhere;
		return 1;
	}
	if (row >= rows + nr_rows)
		return 0;
	switch ((n - nr_words) % 5) {
	case 0:
		row->type = nowhere;
		break;
	case 1:
		row->name = nowhere;
		break;
	case 2:
		row->kind = nowhere;
		break;
	case 3:
		row->address = nowhere;
		break;
	case 4: /* of a variable, its address; of a field, its offset */
		row->address = NULL;
		row->offset = row->is_static ? 16 : (uint64_t)nowhere;
		break;
	}
	return 1;
}

int main(int argc, char **argv)
{
	int has_stub = argc > 2 && !strcmp(argv[2], "stub"), has_stubs = argc > 2 && !strcmp(argv[2], "stubs");
	int is_replaced = argc > 2 && !strcmp(argv[2], "again");

	char *alpha = new_method("made/Alpha", "first", "Alpha.java"),
	     *outer = new_method("made/Outer", "outer", "Outer.java");
	char *inner = new_method("Inner$$Lambda+0x00007f0012345678", "inner", "Inner.java");

	until_ms = argc > 1 ? strtol(argv[1], NULL, 10) : 100;
	if (has_stubs)
		run_before();
	else if (is_replaced) {
		char *constant = *(char **)(alpha + 8), *pool = *(char **)(constant + 8);

		replaced = *(char **)(pool + POOL_BYTES + 8);
	}
	if (argc > 3 && !strcmp(argv[2], "astray") && !lead_astray(strtol(argv[3], NULL, 10)))
		return 2;
	vm.version = SHOWN_VERSION;
	vm.redefines = REDEFINES;
	if (COUNTS)
		new_counters();
	new_heap();
	add(new_stub(), NULL);
	add(new_interpreter(), alpha);
	if (has_stub || has_stubs) {
		run_stubs(outer, inner, has_stub ? 1 : 5);
		return 3;
	}
	add(new_compiled(&plain, outer, inner), outer);
	go_on();
	return 3;
}
