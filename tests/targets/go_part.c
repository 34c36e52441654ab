/*
 * An object that is laid out as libraries by Go are: with the mark of Go, a table of its functions, and for good. While
 * it is loaded, half_loaded.c runs; then it refers to a function that there is not, so that loading fails, unless it is
 * built with WHOLE.
 */
#if defined(__x86_64__)
void half_loaded_meanwhile(void);
void (*go_part_meanwhile)(void) = half_loaded_meanwhile;

#ifndef WHOLE
void go_part_there_is_none(void);

void go_part_call(void);
void go_part_call(void)
{
	go_part_there_is_none();
}
#endif

__asm__(".text\n"
	"	.p2align 4\n"
	"go_part_text:\n"
	"main.work:	ret\n"
	"	.p2align 4\n"
	"go_part_etext:\n"
	".section .note.go.buildid, \"a\", @note\n	.p2align 2\n	.long 4, 4, 4\n	.ascii \"Go\\0\\0made\"\n"
	/* As that of made_go.c. */
	".section .gopclntab, \"aw\", @progbits\n"
	"	.p2align 5\n"
	"go_part_table:	.long 0xfffffff1\n	.byte 0, 0, 1, 8\n"
	"	.quad 1, 0, go_part_text, go_part_names - go_part_table, go_part_units - go_part_table\n"
	"	.quad go_part_units - go_part_table, go_part_values - go_part_table, go_part_ftab - go_part_table\n"
	"go_part_names:	.byte 0\n"
	"go_part_name:	.asciz \"main.work\"\n"
	"go_part_units:	.byte 0\n"
	"go_part_values:	.byte 0\n"
	"go_part_sp:	.byte 2\n	.uleb128 0x4000\n	.byte 0\n"
	"	.p2align 2\n"
	"go_part_ftab:	.long 0, go_part_info - go_part_ftab\n	.long go_part_etext - go_part_text\n"
	"go_part_info:	.long 0, go_part_name - go_part_names, 0, 0, go_part_sp - go_part_values, 0\n"
	"	.long go_part_sp - go_part_values, 0, 0, 1\n	.byte 0, 0, 0, 0\n"
	".text\n");
#endif
