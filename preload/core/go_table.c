/* The header of Go's table, functions by address, and values by address: see go_table.h. Any thread; async-signal-safe.
 */
#include "preload/core/go_table.h"

#include <string.h>

#include "include/internal/base.h"

#define MAX_STEPS (1U << 18)   /* through the values of one function */
#define MAX_LOOKED (64U << 20) /* bytes in which the module is looked for */
#define MAX_TEXT (64U << 10)   /* bytes of a name */
#define MAX_FUNCTIONS (1U << 24)
#define NR_CHECKED 32 /* functions whose order must be that of a table */

static const uint32_t magics[] = {
	[CSINK_GO_1_16] = 0xfffffffa,
	[CSINK_GO_1_18] = 0xfffffff0,
	[CSINK_GO_1_20] = 0xfffffff1,
};

bool csink_go_load(const struct csink_go_bytes *part, uint64_t at, uint32_t bytes, uint64_t *value)
{
	if (at > part->nr || part->nr - at < bytes)
		return false;
	*value = 0;
	memcpy(value, part->at + at, bytes); /* the low bytes come first on all machines that there are */
	return true;
}

bool csink_go_part(const struct csink_go_program *program, uint64_t vaddr, struct csink_go_bytes *part)
{
	for (uint32_t i = 0; i < program->nr_parts; i++) {
		uint64_t before = vaddr - program->parts[i].vaddr;

		if (vaddr < program->parts[i].vaddr || before >= program->parts[i].nr)
			continue;
		*part = (struct csink_go_bytes){vaddr, program->parts[i].at + before, program->parts[i].nr - before};
		return true;
	}
	return false;
}

/* ---- the header ---- */

bool csink_go_is_header(const uint8_t *at, uint64_t bytes)
{
	uint32_t magic;

	if (bytes < 8)
		return false;
	memcpy(&magic, at, sizeof(magic));
	for (uint32_t form = 0; form < CSINK_ARRAY_SIZE(magics); form++)
		if (magic == magics[form])
			return !at[4] && !at[5] && (at[6] == 1 || at[6] == 4) && (at[7] == 4 || at[7] == 8);
	return false;
}

static enum csink_go_form form_of(const uint8_t *header)
{
	uint32_t magic, form = 0;

	memcpy(&magic, header, sizeof(magic));
	while (magic != magics[form])
		form++;
	return (enum csink_go_form)form;
}

static bool take_header(struct csink_go_table *t)
{
	uint64_t *const offsets[] = {&t->names, &t->units, &t->files, &t->values, &t->functions};
	uint64_t at = 8 + 2ULL * t->word, unused;

	if (!csink_go_load(&t->all, 8, t->word, &t->nr_functions) || !t->nr_functions ||
	    t->nr_functions > MAX_FUNCTIONS)
		return false;
	if (t->form != CSINK_GO_1_16) {
		if (!csink_go_load(&t->all, at, t->word, &t->text))
			return false;
		at += t->word;
	}
	for (uint32_t i = 0; i < CSINK_ARRAY_SIZE(offsets); i++, at += t->word)
		if (!csink_go_load(&t->all, at, t->word, offsets[i]) ||
		    !csink_go_load(&t->all, *offsets[i], 1, &unused))
			return false;
	return true;
}

/* The address of the nth function, and where what is known of it is. The one behind the last has an address alone. */
static bool entry_of(const struct csink_go_table *t, uint64_t nr, uint64_t *start, uint64_t *where)
{
	uint32_t bytes = t->form == CSINK_GO_1_16 ? t->word : 4;
	uint64_t at = t->functions + nr * 2 * bytes;

	if (!csink_go_load(&t->all, at, bytes, start))
		return false;
	*start += t->text;
	return nr == t->nr_functions || csink_go_load(&t->all, at + bytes, bytes, where);
}

static bool is_ordered(const struct csink_go_table *t)
{
	uint64_t start, where, last = 0;

	if (!entry_of(t, t->nr_functions, &start, &where))
		return false;
	for (uint64_t nr = 0; nr < CSINK_MIN(t->nr_functions, (uint64_t)NR_CHECKED); nr++, last = start)
		if (!entry_of(t, nr, &start, &where) || (nr && start <= last))
			return false;
	return true;
}

bool csink_go_module(const struct csink_go_table *table, const struct csink_go_program *program,
		     struct csink_go_bytes *module)
{
	const uint32_t word = table->word;
	uint64_t left = MAX_LOOKED / word;

	for (uint32_t i = 0; i < program->nr_parts; i++) {
		const struct csink_go_bytes *part = &program->parts[i];
		uint64_t header, ftab, nr;

		for (uint64_t at = -part->vaddr & (word - 1); at < part->nr && left; at += word, left--) {
			if (!csink_go_load(part, at, word, &header) || header != table->all.vaddr)
				continue;
			if (!csink_go_load(part, at + CSINK_GO_WORD_FTAB * word, word, &ftab) ||
			    ftab != table->all.vaddr + table->functions ||
			    !csink_go_load(part, at + (CSINK_GO_WORD_FTAB + 1) * word, word, &nr) ||
			    nr - table->nr_functions > 1)
				continue;
			*module = (struct csink_go_bytes){part->vaddr + at, part->at + at, part->nr - at};
			return true;
		}
	}
	return false;
}

static bool begin(struct csink_go_table *table, const struct csink_go_bytes *all)
{
	memset(table, 0, sizeof(*table));
	table->all = *all;
	if (!csink_go_is_header(all->at, all->nr))
		return false;
	table->form = form_of(all->at);
	table->quantum = all->at[6];
	table->word = all->at[7];
	return take_header(table);
}

bool csink_go_reopen(struct csink_go_table *table, const struct csink_go_bytes *all, uint64_t text)
{
	if (!begin(table, all))
		return false;
	table->text = text;
	return true;
}

bool csink_go_open(struct csink_go_table *table, const struct csink_go_program *program, uint64_t header)
{
	struct csink_go_bytes module, all;

	if (!csink_go_part(program, header, &all) || !begin(table, &all))
		return false;
	/* From Go 1.26 on, and in programs that are moved when they are loaded, the header may not have it. */
	if (table->form != CSINK_GO_1_16 && !table->text &&
	    (!csink_go_module(table, program, &module) ||
	     !csink_go_load(&module, CSINK_GO_WORD_TEXT * table->word, table->word, &table->text) || !table->text))
		return false;
	return is_ordered(table);
}

/* ---- functions ---- */

/* Each takes a number of four bytes that follows; they are 0 where the table ends. */
static uint32_t take(const struct csink_go_table *t, uint64_t *at)
{
	uint64_t value = 0;

	csink_go_load(&t->all, *at, 4, &value);
	*at += 4;
	return (uint32_t)value;
}

bool csink_go_nth(const struct csink_go_table *t, uint64_t nr, struct csink_go_function *f)
{
	uint64_t at, is_there;

	if (nr >= t->nr_functions || !entry_of(t, nr, &f->start, &at) || !entry_of(t, nr + 1, &f->end, &is_there) ||
	    f->start >= f->end || at > t->all.nr)
		return false;
	at += t->functions + (t->form == CSINK_GO_1_16 ? t->word : 4); /* behind the function's address */
	f->name = take(t, &at);
	at += 8; /* bytes of arguments; of deferred returns */
	f->sp = take(t, &at);
	f->file = take(t, &at);
	f->line = take(t, &at);
	f->nr_values = take(t, &at);
	f->unit = take(t, &at);
	f->start_line = t->form == CSINK_GO_1_20 ? take(t, &at) : 0;
	if (!csink_go_load(&t->all, at, 4, &is_there))
		return false;
	f->id = t->all.at[at];
	f->flag = t->all.at[at + 1];
	f->nr_data = t->all.at[at + 3];
	f->data = at + 4;
	return f->nr_values < 256;
}

bool csink_go_find(const struct csink_go_table *t, uint64_t pc, struct csink_go_function *f)
{
	uint64_t low = 0, high = t->nr_functions, start, where;

	while (low < high) { /* the first that begins behind it */
		uint64_t middle = low + (high - low) / 2;

		if (!entry_of(t, middle, &start, &where))
			return false;
		if (start <= pc)
			low = middle + 1;
		else
			high = middle;
	}
	return low && csink_go_nth(t, low - 1, f) && pc >= f->start && pc < f->end;
}

static const char *text_at(const struct csink_go_table *t, uint64_t at)
{
	if (at >= t->all.nr || !memchr(t->all.at + at, 0, CSINK_MIN(t->all.nr - at, (uint64_t)MAX_TEXT)))
		return NULL;
	return (const char *)t->all.at + at;
}

const char *csink_go_name(const struct csink_go_table *t, uint32_t name)
{
	const char *text = text_at(t, t->names + name);

	return text && *text ? text : NULL;
}

const char *csink_go_file(const struct csink_go_table *t, const struct csink_go_function *f, int32_t file)
{
	uint64_t offset;

	if (file < 0 || !csink_go_load(&t->all, t->units + 4 * ((uint64_t)f->unit + (uint32_t)file), 4, &offset) ||
	    offset == UINT32_MAX)
		return NULL;
	return text_at(t, t->files + offset);
}

/* ---- values ---- */

static bool take_leb(const struct csink_go_table *t, uint64_t *at, uint32_t *value)
{
	uint32_t shift = 0;

	for (*value = 0; *at < t->all.nr && shift < 35; shift += 7) {
		uint8_t byte = t->all.at[(*at)++];

		*value |= shift < 32 ? (uint32_t)(byte & 0x7f) << shift : 0;
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

/* Pairs: how the value changes, in zigzag form, and for how many instructions it is so; it begins at -1. */
bool csink_go_value(const struct csink_go_table *t, const struct csink_go_function *f, uint32_t offset, uint64_t pc,
		    int32_t *value)
{
	uint64_t at = t->values + offset, upto = f->start;
	uint32_t change, instructions;

	if (!offset || pc < f->start)
		return false;
	*value = -1;
	for (uint32_t i = 0; i < MAX_STEPS; i++) {
		if (!take_leb(t, &at, &change) || (!change && i) || !take_leb(t, &at, &instructions))
			return false;
		*value = (int32_t)((uint32_t)*value + (-(change & 1) ^ change >> 1));
		upto += (uint64_t)instructions * t->quantum;
		if (pc < upto)
			return true;
	}
	return false;
}

bool csink_go_sp_offset(const struct csink_go_table *t, const struct csink_go_function *f, uint64_t pc, int32_t *bytes)
{
	return csink_go_value(t, f, f->sp, pc, bytes) && *bytes >= 0;
}

uint32_t csink_go_values_of(const struct csink_go_table *t, const struct csink_go_function *f, uint32_t number)
{
	uint64_t at = 0;

	if (number < f->nr_values)
		csink_go_load(&t->all, f->data + 4ULL * number, 4, &at);
	return (uint32_t)at;
}

bool csink_go_data_of(const struct csink_go_table *t, const struct csink_go_function *f, uint32_t number,
		      uint64_t *data)
{
	uint64_t at = f->data + 4ULL * f->nr_values;

	if (number >= f->nr_data)
		return false;
	if (t->form == CSINK_GO_1_16) {
		/* Pointers, where a pointer may be. */
		at += -(t->all.vaddr + at) & (t->word - 1U);
		return csink_go_load(&t->all, at + (uint64_t)number * t->word, t->word, data) && *data;
	}
	return csink_go_load(&t->all, at + 4ULL * number, 4, data) && *data != UINT32_MAX;
}
