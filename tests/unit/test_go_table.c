/* Tables of Go in each form: true ones, and such as are damaged. */
#include "preload/core/go_table.h"

#include <stdio.h>
#include <stdlib.h>

#include "include/internal/base.h"
#include "tests/unit/made_go.h"
#include "tests/unit/tap.h"

#define NR_DAMAGED 200000

static uint8_t *image; /* not one byte more than the table has */
static const struct csink_go_bytes *part_of_image(void)
{
	static struct csink_go_bytes part;

	part = (struct csink_go_bytes){MADE_GO_VADDR, image, MADE_GO_BYTES};
	return &part;
}

static bool open_made(struct csink_go_table *table)
{
	struct csink_go_program program = {part_of_image(), 1};

	if (!csink_go_open(table, &program, MADE_GO_VADDR))
		return false;
	csink_go_find_inlines(table, &program);
	return true;
}

static const char *describe(const struct csink_go_table *table, uint64_t pc)
{
	static char text[512];
	struct csink_go_function function;
	struct csink_go_frame frames[8];
	uint32_t nr, used = 0;

	if (!csink_go_find(table, pc, &function))
		return "none";
	nr = csink_go_frames(table, &function, pc, frames, CSINK_ARRAY_SIZE(frames));
	text[0] = 0;
	for (uint32_t i = 0; i < nr && used < sizeof(text); i++)
		used += (uint32_t)snprintf(text + used, sizeof(text) - used, "%s%s:%d", i ? " " : "",
					   frames[i].name ? frames[i].name : "?", frames[i].line);
	return text;
}

static void check_true(enum csink_go_form form, bool with_text, const char *what)
{
	struct csink_go_function function;
	struct csink_go_frame frames[8];
	struct csink_go_table table;
	int32_t bytes = -1;

	made_go_make(image, form, with_text);
	if (!ok(open_made(&table), "%s: the table is opened", what))
		return;
	ok(!strcmp(describe(&table, MADE_GO_TEXT + 1), "main.main:10"),
	   "%s: an address in a function has its name and line", what);
	ok(!strcmp(describe(&table, MADE_GO_TEXT + MADE_GO_FUNCTION + 0x50), "main.leaf:41 main.mid:31 main.outer:21"),
	   "%s: inlined calls, innermost first", what);
	ok(!strcmp(describe(&table, MADE_GO_TEXT + MADE_GO_FUNCTION + 0x70), "main.outer:22"),
	   "%s: behind inlined calls, the function itself", what);
	ok(!strcmp(describe(&table, MADE_GO_TEXT - 1), "none"), "%s: an address before the first function has no name",
	   what);
	ok(!strcmp(describe(&table, MADE_GO_TEXT + 3 * MADE_GO_FUNCTION), "none"),
	   "%s: an address behind the last function has no name", what);
	ok(csink_go_find(&table, MADE_GO_TEXT + 0x20, &function) &&
		   csink_go_sp_offset(&table, &function, MADE_GO_TEXT + 0x20, &bytes) && bytes == 32,
	   "%s: how far the stack pointer moved", what);
	ok(csink_go_sp_offset(&table, &function, MADE_GO_TEXT + 0xff, &bytes) && bytes == 0,
	   "%s: at the return it is where it was", what);
	ok(csink_go_frames(&table, &function, MADE_GO_TEXT, frames, 1) == 1 && frames[0].file &&
		   !strcmp(frames[0].file, "/src/main.go") && frames[0].start_line == (form == CSINK_GO_1_20 ? 10 : 0),
	   "%s: file and first line", what);
}

/* How frames are left: by the function's name, by what its compiler says of it, and by the stack pointer. */
static void check_rules(enum csink_go_form form)
{
	const uint64_t main_main = MADE_GO_TEXT + 0x20, goexit = MADE_GO_TEXT + 2 * MADE_GO_FUNCTION + 1;
	struct csink_go_table table, again;
	struct csink_go_rule rule;

	made_go_make(image, form, true);
	if (!ok(open_made(&table) && csink_go_reopen(&again, &table.all, table.text), "form %d: opened again",
		(int)form))
		return;
	ok(csink_go_rule_at(&again, main_main, &rule) && rule.start == MADE_GO_TEXT && rule.offset == 32 && !rule.role,
	   "form %d: a plain frame", (int)form);
	ok(csink_go_rule_at(&again, goexit, &rule) && rule.role == CSINK_GO_OUTERMOST, "form %d: an outermost one",
	   (int)form);
	ok(!csink_go_rule_at(&again, MADE_GO_TEXT - 1, &rule), "form %d: none before the first function", (int)form);
	image[7] = 5;
	ok(!csink_go_reopen(&again, &table.all, table.text), "form %d: not opened again if it is another", (int)form);
}

static void check_refused(void)
{
	struct csink_go_table table;

	made_go_make(image, CSINK_GO_1_20, true);
	image[6] = 3;
	ok(!open_made(&table), "instructions of three bytes: no table");
	made_go_make(image, CSINK_GO_1_20, false);
	memset(image + MADE_GO_MODULE, 0, 64);
	ok(!open_made(&table), "neither the header nor a record has the code's address: no table");
	made_go_make(image, CSINK_GO_1_18, true);
	memset(image + 8, 0xff, 4);
	ok(!open_made(&table), "more functions than the table has bytes: no table");
	made_go_make(image, CSINK_GO_1_18, true);
	memset(image + 32, 0xff, 8);
	ok(!open_made(&table), "names beyond the end: no table");
	made_go_make(image, CSINK_GO_1_20, true);
	memset(image + MADE_GO_MODULE + 40 * 8, 0, 8);
	ok(open_made(&table) && !table.has_inlines, "no base of inlined calls: none are shown");
	is_str(describe(&table, MADE_GO_TEXT + MADE_GO_FUNCTION + 0x50), "main.outer:41",
	       "no base of inlined calls: the function itself is shown");
}

/* Everything is asked of tables with a few other bytes. */
static void check_damaged(void)
{
	struct csink_go_function function;
	struct csink_go_table table;
	struct csink_go_rule rule;
	uint64_t nr_opened = 0, nr_named = 0;
	int32_t bytes;

	srandom(11);
	for (uint32_t i = 0; i < NR_DAMAGED; i++) {
		made_go_make(image, (enum csink_go_form)(i % 3), i % 2);
		for (uint32_t k = 0; k < 1 + i % 4; k++)
			image[(size_t)random() % MADE_GO_BYTES] = (uint8_t)(random() % 3 ? random() : 0xff);
		if (!open_made(&table))
			continue;
		nr_opened++;
		for (uint32_t k = 0; k < 3; k++) {
			uint64_t pc = MADE_GO_TEXT + k * MADE_GO_FUNCTION + 0x50;

			nr_named += strcmp(describe(&table, pc), "none") != 0;
			if (csink_go_find(&table, pc, &function))
				csink_go_sp_offset(&table, &function, pc, &bytes);
			csink_go_rule_at(&table, pc, &rule);
		}
	}
	ok(nr_opened > NR_DAMAGED / 2 && nr_named > nr_opened, "damaged tables: %llu opened, %llu functions found",
	   (unsigned long long)nr_opened, (unsigned long long)nr_named);
}

int main(void)
{
	image = malloc(MADE_GO_BYTES);
	if (!image)
		return 1;
	check_true(CSINK_GO_1_16, true, "Go 1.16");
	check_true(CSINK_GO_1_18, true, "Go 1.18");
	check_true(CSINK_GO_1_20, true, "Go 1.20");
	check_true(CSINK_GO_1_18, false, "Go 1.18, no address of code in the header");
	check_true(CSINK_GO_1_20, false, "Go 1.26");
	check_rules(CSINK_GO_1_16);
	check_rules(CSINK_GO_1_18);
	check_rules(CSINK_GO_1_20);
	check_refused();
	check_damaged();
	free(image);
	return done();
}
