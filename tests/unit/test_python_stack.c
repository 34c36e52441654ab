/*
 * Python frames of another process: images of each version's records, made here by the layouts and read from
 * this process itself; then the same with random words changed, after which each read must end.
 */
#include "launcher/attach/codes.h"
#include "launcher/attach/python_stack.h"
#include "tests/unit/tap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/clock.h"

#define NR_CHANGES 20000
#define IMAGE_BYTES (64 << 10)

enum { NR_FUNCTIONS = 3, NR_FRAMES = 7 }; /* of the frames, 1, 4 and 2 are a call's of the evaluator, from outside in */

static char *image; /* all that is read lies here */
static size_t used;
static const struct csink_python_layout *layout;
static struct csink_python python;
static uint64_t state, codes[NR_FUNCTIONS];
static struct csink_remote remote;
static struct csink_python_stack stack;

/* What 3.14.0's _PyRuntime begins with, of it what is read. */
static const uint64_t words_314[CSINK_PYTHON_NR_WORDS] = {
	[CSINK_PYTHON_WORD_COOKIE] = CSINK_PYTHON_COOKIE,
	[CSINK_PYTHON_WORD_VERSION] = 0x030e00f0,
	[CSINK_PYTHON_WORD_NEXT] = 8,
	[CSINK_PYTHON_WORD_INTERPRETER] = 16,
	[CSINK_PYTHON_WORD_NEWEST] = 72,
	[CSINK_PYTHON_WORD_THREAD_ID] = 152,
	[CSINK_PYTHON_WORD_CHUNK] = 232,
	[CSINK_PYTHON_WORD_FRAME_PREVIOUS] = 8,
	[CSINK_PYTHON_WORD_FRAME_POSITION] = 56,
	[CSINK_PYTHON_WORD_FRAME_OWNER] = 74,
	[CSINK_PYTHON_WORD_FILE] = 112,
	[CSINK_PYTHON_WORD_NAME] = 128,
	[CSINK_PYTHON_WORD_TABLE] = 136,
	[CSINK_PYTHON_WORD_FIRST_LINE] = 68,
	[CSINK_PYTHON_WORD_VARIABLES] = 96,
	[CSINK_PYTHON_WORD_BYTECODE] = 208,
	[CSINK_PYTHON_WORD_TYPE] = 8,
	[CSINK_PYTHON_WORD_BYTES_SIZE] = 16,
	[CSINK_PYTHON_WORD_BYTES_TEXT] = 32,
	[CSINK_PYTHON_WORD_STR_STATE] = 32,
	[CSINK_PYTHON_WORD_STR_LENGTH] = 16,
	[CSINK_PYTHON_WORD_ASCII] = 40,
};

static const struct csink_python_layout *layout_for(int minor)
{
	return minor == 14 ? csink_python_layout_read(words_314) : csink_python_layout_of(minor);
}

static uint64_t take(size_t bytes)
{
	uint64_t at = (uint64_t)(uintptr_t)image + used;

	used += CSINK_ALIGN_UP(bytes, (size_t)16);
	return at;
}

static void put_word(uint64_t at, uint64_t word)
{
	memcpy((void *)(uintptr_t)at, &word, sizeof(word));
}

static void put_half(uint64_t at, uint32_t half)
{
	memcpy((void *)(uintptr_t)at, &half, sizeof(half));
}

static uint64_t make_str(const char *text)
{
	uint64_t at = take(128);

	put_word(at, 1);
	put_word(at + CSINK_PYTHON_VAR_SIZE, strlen(text));
	put_word(at + CSINK_PYTHON_STR_HASH, strlen(text) * 7919 + (unsigned char)text[0]);
	put_word(at + CSINK_PYTHON_STR_STATE, CSINK_PYTHON_STR_ASCII | 1 << 2);
	strcpy((char *)(uintptr_t)at + layout->ascii, text);
	return at;
}

static uint64_t make_bytes(size_t bytes, int value)
{
	uint64_t at = take(CSINK_PYTHON_BYTES_TEXT + bytes);

	put_word(at, 1);
	put_word(at + CSINK_PYTHON_VAR_SIZE, bytes);
	memset((char *)(uintptr_t)at + CSINK_PYTHON_BYTES_TEXT, value, bytes);
	return at;
}

static uint64_t make_code(const char *name, uint32_t line)
{
	uint64_t at = take(layout->bytecode + 256u);

	put_word(at, layout->minor >= 14 ? 1ULL << 48 | 1 : 1); /* flags, and the count of references */
	put_word(at + CSINK_PYTHON_OBJECT_TYPE, python.code_type);
	put_word(at + layout->name, make_str(name));
	put_word(at + layout->file, make_str("made.py"));
	put_word(at + layout->table, make_bytes(40 * line, (int)line));
	put_half(at + layout->first_line, line);
	if (layout->version)
		put_half(at + layout->version, line);
	return at;
}

static uint64_t make_frame(uint64_t previous, uint32_t i)
{
	uint64_t at = take(160), code = codes[i % NR_FUNCTIONS];

	put_word(at + layout->previous, previous);
	put_word(at + layout->code, code | (layout->minor >= 14 && i % 2)); /* a borrowed reference, or not */
	if (layout->minor >= 11)
		put_word(at + layout->position, code + layout->bytecode + 2 * i);
	else
		put_half(at + layout->position, layout->minor == 10 ? i : 2 * i);
	return at;
}

static bool is_outermost(uint32_t i)
{
	return i == 0 || i == 1 || i == 5;
}

/* Frames 0 (outermost) to NR_FRAMES - 1, and what lies in the native frames of the evaluator. */
static void make_frames(void)
{
	uint64_t frame = 0, root = state + 256, cframe = root, stack_at = take(8192) + 4096, shim;

	for (uint32_t i = 0; i < NR_FRAMES; i++) {
		if (layout->chain == CSINK_PYTHON_SHIM && is_outermost(i)) {
			shim = stack_at += -256ULL;
			put_word(shim + layout->previous, frame);
			((char *)(uintptr_t)shim)[layout->owner] = CSINK_PYTHON_OWNED_BY_C_STACK;
			frame = shim;
		}
		frame = make_frame(frame, i);
		if (layout->chain == CSINK_PYTHON_ENTRY)
			((char *)(uintptr_t)frame)[layout->owner] = is_outermost(i);
		if (layout->chain == CSINK_PYTHON_CFRAME || (layout->minor < 13 && is_outermost(i))) {
			uint64_t at = layout->minor == 12 ? stack_at + 128 : (stack_at += -256ULL);

			put_word(at + layout->cframe_previous, cframe);
			cframe = at;
		}
		if (layout->chain == CSINK_PYTHON_ENTRY || layout->minor == 12)
			put_word(cframe + layout->cframe_frame, frame);
	}
	if (layout->minor <= 10)
		put_word(state + CSINK_PYTHON_STATE_FRAME, frame);
	if (layout->minor >= 10)
		put_word(state + layout->newest, layout->minor >= 13 ? frame : cframe);
}

static void make_image(void)
{
	static const char *const names[NR_FUNCTIONS] = {"first", "second", "third"};

	used = 4096;
	memset(image, 0, IMAGE_BYTES);
	python = (struct csink_python){.layout = layout, .code_type = take(64)};
	state = take(CSINK_PYTHON_STATE_BYTES);
	for (uint32_t i = 0; i < NR_FUNCTIONS; i++)
		codes[i] = make_code(names[i], i + 1);
	make_frames();
}

static int walk(void)
{
	csink_remote_begin(&remote, getpid());
	return csink_python_walk(&stack, &python, &remote, state);
}

static bool are_frames_right(void)
{
	for (uint32_t i = 0; i < stack.nr_frames; i++) {
		uint32_t made = NR_FRAMES - 1 - i;

		if (stack.codes[i] != codes[made % NR_FUNCTIONS] || stack.positions[i] != 2 * made)
			return false;
	}
	return stack.nr_frames == NR_FRAMES;
}

static bool are_groups_right(void)
{
	bool is_several = layout->minor >= 11;

	if (stack.nr_groups != (is_several ? 3 : NR_FRAMES))
		return false;
	for (uint32_t i = 0; i < stack.nr_groups; i++) {
		if (!stack.groups[i].record != (layout->chain == CSINK_PYTHON_COUNT))
			return false;
		if (i && layout->chain != CSINK_PYTHON_COUNT && stack.groups[i].record <= stack.groups[i - 1].record)
			return false;
	}
	return !is_several || (stack.groups[0].nr == 2 && stack.groups[1].nr == 4 && stack.groups[2].nr == 1);
}

static bool are_codes_right(struct csink_attach_codes *found, const uint32_t *ids)
{
	static const char *const names[NR_FUNCTIONS] = {"first\0made.py", "second\0made.py", "third\0made.py"};

	for (uint32_t i = 0; i < stack.nr_frames; i++) {
		uint32_t made = (NR_FRAMES - 1 - i) % NR_FUNCTIONS;
		const struct csink_attach_code *code = ids[i] ? &found->at[ids[i] - 1] : NULL;

		if (!code || code->first_line != made + 1 || code->nr_table != 40 * (made + 1) ||
		    code->nr_names != strlen(names[made]) + 9 || memcmp(code->text, names[made], code->nr_names) ||
		    (uint32_t)code->text[code->nr_names] != made + 1)
			return false;
	}
	return found->nr == NR_FUNCTIONS;
}

static const struct csink_attach_python none; /* an interpreter without variables of its own */

/* The image as the variables of an interpreter's file, which two processes run. */
static void check_common(int minor, struct csink_attach_codes_room *room)
{
	struct csink_attach_python file = {.file = &file, .data = (uintptr_t)image, .data_bytes = IMAGE_BYTES};
	struct csink_attach_python other = {.file = &other, .data = (uintptr_t)image, .data_bytes = IMAGE_BYTES};
	struct csink_attach_codes found;
	uint32_t ids[CSINK_MAX_DEPTH] = {0}, again[CSINK_MAX_DEPTH] = {0};

	layout = layout_for(minor);
	make_image();
	ok(!walk() && !csink_attach_codes_init(&found) &&
		   !csink_attach_codes_take(&found, room, &stack, &file, 1, ids) && are_codes_right(&found, ids),
	   "CPython 3.%d: functions among the interpreter's variables are read", minor);
	for (uint32_t i = 0; i < NR_FUNCTIONS; i++) /* whatever is read of them now is wrong */
		put_word(codes[i] + CSINK_PYTHON_OBJECT_TYPE, python.code_type + 8);
	ok(!csink_attach_codes_take(&found, room, &stack, &file, 2, again) && are_codes_right(&found, again) &&
		   !memcmp(ids, again, sizeof(ids)),
	   "CPython 3.%d: in another process that runs the file they are not read again", minor);
	ok(csink_attach_codes_take(&found, room, &stack, &other, 3, again) == -EAGAIN,
	   "CPython 3.%d: in a process that runs another file they are read", minor);
	csink_attach_codes_free(&found);
}

static void check_version(int minor, struct csink_attach_codes_room *room)
{
	struct csink_attach_codes found;
	uint32_t ids[CSINK_MAX_DEPTH] = {0};

	layout = layout_for(minor);
	make_image();
	ok(walk() == 0, "CPython 3.%d: a stack is walked", minor);
	ok(are_frames_right(), "CPython 3.%d: all frames are found, with their positions (%u)", minor, stack.nr_frames);
	ok(are_groups_right(), "CPython 3.%d: they are grouped by the calls of the evaluator (%u)", minor,
	   stack.nr_groups);
	ok(!csink_attach_codes_init(&found) && !csink_attach_codes_take(&found, room, &stack, &none, 1, ids) &&
		   are_codes_right(&found, ids),
	   "CPython 3.%d: their functions have names, files, lines and tables", minor);
	if (layout->minor < 12) { /* the same address, name, file and lines */
		uint64_t table = *(uint64_t *)(uintptr_t)(codes[0] + layout->table);

		((char *)(uintptr_t)table)[CSINK_PYTHON_BYTES_TEXT + 39] = 9;
		ok(!csink_attach_codes_take(&found, room, &stack, &none, 1, ids) && found.nr == NR_FUNCTIONS + 1,
		   "CPython 3.%d: a function at the address of a former one differs from it by its content", minor);
	}
	put_word(codes[1] + CSINK_PYTHON_OBJECT_TYPE, python.code_type + 8);
	ok(csink_attach_codes_take(&found, room, &stack, &none, 1, ids) == -EAGAIN,
	   "CPython 3.%d: an object that is no code object is refused", minor);
	csink_attach_codes_free(&found);
}

/* Change words to what a search for trouble would try: other addresses of the image, small numbers, anything. */
static void change_some(void)
{
	uint32_t nr = 1 + (uint32_t)random() % 3;

	while (nr--) {
		uint64_t at = (uint64_t)(uintptr_t)image + 4096 + 8 * ((uint64_t)random() % ((used - 4096) / 8));
		uint64_t to = (uint64_t)(uintptr_t)image + 8 * ((uint64_t)random() % (used / 8));

		put_word(at, random() % 3 ? to : random() % 2 ? (uint64_t)random() % 16 : (uint64_t)random() << 32);
	}
}

static void check_changed(int minor, struct csink_attach_codes_room *room)
{
	struct csink_attach_codes found;
	uint32_t ids[CSINK_MAX_DEPTH], nr_walked = 0;
	uint64_t longest_ns = 0, from_ns;

	layout = layout_for(minor);
	csink_attach_codes_init(&found);
	for (uint32_t i = 0; i < NR_CHANGES; i++) {
		make_image();
		change_some();
		from_ns = csink_monotonic_ns();
		if (!walk()) {
			nr_walked++;
			csink_attach_codes_take(&found, room, &stack, &none, 1, ids);
		}
		longest_ns = CSINK_MAX(longest_ns, csink_monotonic_ns() - from_ns);
	}
	csink_attach_codes_free(&found);
	ok(nr_walked > 0,
	   "CPython 3.%d: of %d stacks with wrong words each read ends (%u were walked, at most %llu us)", minor,
	   NR_CHANGES, nr_walked, (unsigned long long)longest_ns / 1000);
}

/* Variables that all refer to what looks like an interpreter, but for its threads. */
static void check_search(void)
{
	enum { RUNTIME_BYTES = 1 << 20 };
	struct csink_attach_python made = {.object.runtime_bytes = RUNTIME_BYTES};
	uint64_t took_ns, interpreter, *words = calloc(1, RUNTIME_BYTES);
	int err;

	used = 4096;
	memset(image, 0, IMAGE_BYTES);
	made.object.layout = csink_python_layout_of(9);
	made.object.runtime = (uintptr_t)words;
	state = take(4096);
	interpreter = take(4096);
	put_word(state + CSINK_PYTHON_STATE_INTERPRETER, interpreter);
	put_word(state + made.object.layout->thread_id, interpreter);
	for (uint32_t i = 0; i < 8; i++)
		put_word(interpreter + 8 * i, state);
	for (uint32_t i = 0; i < RUNTIME_BYTES / 8; i++)
		words[i] = interpreter;
	/* By the thread's own clock: on a busy machine it waits for a CPU, too. */
	took_ns = csink_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	err = csink_python_find_roots(&made, getpid());
	took_ns = csink_clock_ns(CLOCK_THREAD_CPUTIME_ID) - took_ns;
	ok(err == -ENOENT && took_ns < CSINK_NS_PER_S, "a search of variables that are made up ends in time (%llu ms)",
	   (unsigned long long)took_ns / 1000000);
	free(words);
}

/* One wrong word: refused, or a layout whose offsets are in bounds. */
static bool is_refused_or_sane(uint32_t i, uint64_t word)
{
	uint64_t words[CSINK_PYTHON_NR_WORDS];
	struct csink_python_layout read;

	memcpy(words, words_314, sizeof(words));
	words[i] = word;
	return !csink_python_layout_take(words, &read) ||
	       (read.newest <= CSINK_PYTHON_STATE_BYTES && read.thread_id <= CSINK_PYTHON_STATE_BYTES &&
		read.chunk <= CSINK_PYTHON_STATE_BYTES && read.previous <= 256 && read.code <= 256 &&
		read.position <= 256 && read.owner <= 256 && read.file <= 136 && read.name <= 136 &&
		read.table <= 136 && read.first_line <= 136 && read.version <= 136 && read.bytecode >= 144 &&
		read.bytecode <= 4096 && read.ascii <= 144);
}

static void check_words(void)
{
	static const uint64_t wrong[] = {1, 137, 257, 4097, 65535, 65536 + 72, UINT64_MAX};
	static const uint8_t constants[] = {
		CSINK_PYTHON_WORD_COOKIE,    CSINK_PYTHON_WORD_VERSION,    CSINK_PYTHON_WORD_FREE_THREADED,
		CSINK_PYTHON_WORD_PREVIOUS,  CSINK_PYTHON_WORD_NEXT,       CSINK_PYTHON_WORD_INTERPRETER,
		CSINK_PYTHON_WORD_TYPE,      CSINK_PYTHON_WORD_BYTES_SIZE, CSINK_PYTHON_WORD_BYTES_TEXT,
		CSINK_PYTHON_WORD_STR_STATE, CSINK_PYTHON_WORD_STR_LENGTH};
	uint64_t words[CSINK_PYTHON_NR_WORDS];
	uint32_t nr_refused = 0, nr_wrong = 0, nr_sane = 0, nr_kept = 0;
	struct csink_python_layout read;

	ok(layout_for(14) && layout_for(14) == layout_for(14), "CPython 3.14: equal offsets are one layout");
	for (uint32_t i = 0; i < sizeof(constants); i++) {
		memcpy(words, words_314, sizeof(words));
		words[constants[i]] += constants[i] == CSINK_PYTHON_WORD_VERSION ? 1 << 16 : 1;
		nr_refused += !csink_python_layout_take(words, &read);
	}
	ok(nr_refused == sizeof(constants), "CPython 3.14: each word that must have one value is looked at (%u)",
	   nr_refused);
	for (uint32_t i = 0; i < CSINK_PYTHON_NR_WORDS; i++) {
		for (uint32_t k = 0; k < CSINK_ARRAY_SIZE(wrong); k++, nr_wrong++)
			nr_sane += is_refused_or_sane(i, wrong[k]);
	}
	ok(nr_sane == nr_wrong, "CPython 3.14: of %u wrong words none gives an offset out of bounds", nr_wrong);
	memcpy(words, words_314, sizeof(words));
	for (uint32_t i = 1; i <= 4; i++) {
		words[CSINK_PYTHON_WORD_NEWEST] = 72 + 8 * i;
		nr_kept += csink_python_layout_read(words) != NULL;
	}
	ok(nr_kept == 3 && layout_for(14), "CPython 3.14: a fifth layout in a process is refused, the first one stays");
}

int main(void)
{
	struct csink_attach_codes_room *room = csink_attach_codes_room_new();

	image = mmap(NULL, IMAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ok(room && image != MAP_FAILED, "there is memory for an image");
	srandom(18);
	for (int minor = 7; minor <= 14; minor++)
		check_version(minor, room);
	for (int minor = 7; minor <= 14; minor++)
		check_common(minor, room);
	for (int minor = 9; minor <= 14; minor++)
		check_changed(minor, room);
	check_search();
	check_words();
	ok(!csink_python_layout_of(5) && !csink_python_layout_of(14), "other versions have no layout");
	free(room);
	return done();
}
