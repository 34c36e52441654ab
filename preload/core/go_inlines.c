/* Inlined calls in Go's table: see go_table.h. Any thread; async-signal-safe. */
#include "preload/core/go_table.h"

#include "include/internal/base.h"

/* Numbers of the runtime: of the values that have the innermost inlined call, of the data that has them all. */
enum { VALUES_INLINED = 2, DATA_INLINED = 3 };

/* The words of the module that may have the base, and how many functions are looked at to find out which has. */
enum { FIRST_WORD = 32, LAST_WORD = 48, NR_TRIED = 64, NR_LEAST = 4, NR_LOOKED = 1 << 16 };

/* One inlined call. */
struct call {
	uint32_t name, start_line;
	int32_t at; /* bytes from the function's start to the call, which has file and line of it; else: */
	int32_t parent, file, line;
};

static uint32_t call_bytes(const struct csink_go_table *t)
{
	return t->form == CSINK_GO_1_20 ? 16 : 20;
}

static int32_t field(const struct csink_go_bytes *calls, uint64_t at)
{
	uint64_t value = 0;

	csink_go_load(calls, at, 4, &value);
	return (int32_t)(uint32_t)value;
}

static bool call_at(const struct csink_go_table *t, const struct csink_go_bytes *calls, int32_t number,
		    struct call *call)
{
	uint64_t at = (uint64_t)(uint32_t)number * call_bytes(t), last;

	if (number < 0 || !csink_go_load(calls, at + call_bytes(t) - 4, 4, &last))
		return false;
	if (t->form == CSINK_GO_1_20)
		*call = (struct call){.name = (uint32_t)field(calls, at + 4),
				      .at = field(calls, at + 8),
				      .start_line = (uint32_t)field(calls, at + 12)};
	else
		*call = (struct call){.parent = (int16_t)field(calls, at),
				      .file = field(calls, at + 4),
				      .line = field(calls, at + 8),
				      .name = (uint32_t)field(calls, at + 12),
				      .at = field(calls, at + 16)};
	return true;
}

/* A function's calls, given what they are counted from. */
static bool calls_of(const struct csink_go_table *t, const struct csink_go_function *f,
		     const struct csink_go_bytes *base, struct csink_go_bytes *calls)
{
	uint64_t data;

	if (!csink_go_values_of(t, f, VALUES_INLINED) || !csink_go_data_of(t, f, DATA_INLINED, &data))
		return false;
	if (t->form == CSINK_GO_1_16)
		data -= base->vaddr;
	if (data >= base->nr)
		return false;
	*calls = (struct csink_go_bytes){base->vaddr + data, base->at + data, base->nr - data};
	return true;
}

/* ---- the base ---- */

/* A name begins behind the end of another one. */
static bool is_plausible(const struct csink_go_table *t, const struct csink_go_function *f,
			 const struct csink_go_bytes *base)
{
	struct csink_go_bytes calls;
	uint64_t before;
	struct call call;

	return calls_of(t, f, base, &calls) && call_at(t, &calls, 0, &call) && call.name &&
	       csink_go_load(&t->all, t->names + call.name - 1, 1, &before) && !before && csink_go_name(t, call.name) &&
	       call.at >= 0 && (uint64_t)call.at < f->end - f->start;
}

/* How many of the functions that have inlined calls have plausible ones; all: how many were looked at. */
static uint32_t count_plausible(const struct csink_go_table *t, const struct csink_go_bytes *base, uint32_t *all)
{
	struct csink_go_function f;
	uint32_t nr = 0;
	uint64_t data;

	*all = 0;
	for (uint64_t i = 0; i < CSINK_MIN(t->nr_functions, (uint64_t)NR_LOOKED) && *all < NR_TRIED; i++) {
		if (!csink_go_nth(t, i, &f) || !csink_go_values_of(t, &f, VALUES_INLINED) ||
		    !csink_go_data_of(t, &f, DATA_INLINED, &data))
			continue;
		++*all;
		nr += is_plausible(t, &f, base);
	}
	return nr;
}

static bool is_base(const struct csink_go_table *t, const struct csink_go_bytes *base)
{
	uint32_t all, nr = count_plausible(t, base, &all);

	return nr >= CSINK_MIN(all, (uint32_t)NR_LEAST) && nr && nr >= all - all / 16;
}

void csink_go_find_inlines(struct csink_go_table *t, const struct csink_go_program *program)
{
	struct csink_go_bytes module, base;
	uint64_t vaddr;

	t->has_inlines = false;
	if (t->form == CSINK_GO_1_16) {
		/* They have addresses, in the part that the table is in. */
		for (uint32_t i = 0; i < program->nr_parts && !t->has_inlines; i++) {
			t->inlines = program->parts[i];
			t->has_inlines = is_base(t, &t->inlines);
		}
		return;
	}
	if (!csink_go_module(t, program, &module))
		return;
	/* Which word it is differs between versions. */
	for (uint32_t word = FIRST_WORD; word <= LAST_WORD && !t->has_inlines; word++) {
		if (!csink_go_load(&module, (uint64_t)word * t->word, t->word, &vaddr) ||
		    !csink_go_part(program, vaddr, &base))
			continue;
		t->inlines = base;
		t->has_inlines = is_base(t, &base);
	}
}

/* ---- frames ---- */

struct position {
	const char *file;
	int32_t line;
};

static struct position position_at(const struct csink_go_table *t, const struct csink_go_function *f, uint64_t pc)
{
	struct position position = {NULL, 0};
	int32_t file;

	if (csink_go_value(t, f, f->file, pc, &file))
		position.file = csink_go_file(t, f, file);
	if (!csink_go_value(t, f, f->line, pc, &position.line) || position.line < 0 || !position.file)
		position.line = 0;
	return position;
}

uint32_t csink_go_frames(const struct csink_go_table *t, const struct csink_go_function *f, uint64_t pc,
			 struct csink_go_frame *frames, uint32_t max_frames)
{
	uint32_t values = csink_go_values_of(t, f, VALUES_INLINED), nr = 0;
	struct position position = position_at(t, f, pc);
	struct csink_go_bytes calls;
	int32_t number = -1;
	struct call call;

	if (!t->has_inlines || !calls_of(t, f, &t->inlines, &calls) || !csink_go_value(t, f, values, pc, &number))
		number = -1;
	/* Whether it ends is up to the table: there is room for so many. */
	while (number >= 0 && nr + 1 < max_frames && call_at(t, &calls, number, &call)) {
		frames[nr++] = (struct csink_go_frame){csink_go_name(t, call.name), position.file, position.line,
						       call.start_line};
		if (t->form == CSINK_GO_1_20) {
			pc = f->start + (uint64_t)(int64_t)call.at;
			if (!csink_go_value(t, f, values, pc, &number))
				number = -1;
			position = position_at(t, f, pc);
		} else {
			number = call.parent;
			position = (struct position){csink_go_file(t, f, call.file), call.line};
			if (!position.file || position.line < 0)
				position.line = 0;
		}
	}
	if (nr < max_frames)
		frames[nr++] =
			(struct csink_go_frame){csink_go_name(t, f->name), position.file, position.line, f->start_line};
	return nr;
}
