/* How frames of Go's functions are left, by name and flag: see go_table.h. Any thread; async-signal-safe. */
#include "preload/core/go_table.h"

#include <string.h>

#include "include/internal/base.h"

/* What Go's compiler says of a function: of this runtime's since Go 1.17, of which those before have the names alone.
 */
enum { FLAG_OUTERMOST = 1, FLAG_SWITCHES = 2 };

#define RUNTIME "runtime."
#define NAME_BYTES 15

static uint32_t role_of(const char *name)
{
	static const struct {
		char name[NAME_BYTES]; /* so much of it, and no more, is compared */
		uint8_t role;
	} functions[] = {
		/* What mcall calls does not return to it: it gives the thread to other goroutines. */
		{"mcall", CSINK_GO_OUTERMOST},
		{"goexit", CSINK_GO_OUTERMOST},
		{"mstart", CSINK_GO_OUTERMOST},
		{"rt0_go", CSINK_GO_OUTERMOST},
		{"systemstack", CSINK_GO_SWITCHES},
		{"morestack", CSINK_GO_SWITCHES | CSINK_GO_GROWS},
		{"asmcgocall", CSINK_GO_SWITCHES | CSINK_GO_CALLS_C},
		{"cgocallback", CSINK_GO_SWITCHES},
		{"nanotime1", CSINK_GO_SWITCHES},
		{"walltime1", CSINK_GO_SWITCHES},
		{"gogo", CSINK_GO_SWITCHES},
		{"schedule", CSINK_GO_SCHEDULES},
		{"asyncPreempt", CSINK_GO_INTERRUPTS},
		{"sigpanic", CSINK_GO_INTERRUPTS},
		{"sigtramp", CSINK_GO_HANDLES},
		{"sigreturn", CSINK_GO_RETURNS},
		{"sigreturn__sig", CSINK_GO_RETURNS}, /* sigreturn__sigaction */
	};

	if (!name || strncmp(name, RUNTIME, sizeof(RUNTIME) - 1))
		return 0;
	for (uint32_t i = 0; i < CSINK_ARRAY_SIZE(functions); i++)
		if (!strncmp(name + sizeof(RUNTIME) - 1, functions[i].name, NAME_BYTES - 1))
			return functions[i].role;
	return 0;
}

bool csink_go_rule_at(const struct csink_go_table *table, uint64_t pc, struct csink_go_rule *rule)
{
	struct csink_go_function function;

	if (!csink_go_find(table, pc, &function))
		return false;
	rule->start = function.start;
	rule->role = role_of(csink_go_name(table, function.name));
	if (table->form != CSINK_GO_1_16) {
		rule->role |= function.flag & FLAG_OUTERMOST ? CSINK_GO_OUTERMOST : 0;
		rule->role |= function.flag & FLAG_SWITCHES ? CSINK_GO_SWITCHES : 0;
	}
	return csink_go_sp_offset(table, &function, pc, &rule->offset) || rule->role & CSINK_GO_OUTERMOST;
}
