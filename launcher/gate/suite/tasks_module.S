/* The module that is loaded into node, as a text of the program: see tasks.h. */
	.section .rodata, "a"

	.globl csink_tasks_module
csink_tasks_module:
	.incbin "tasks.mjs"
	.byte 0

	.section .note.GNU-stack, "", %progbits
