/* The modules that are loaded into node (tasks.h) and pytest (harness_pytest.c), as texts of the program. */
	.section .rodata, "a"

	.globl csink_tasks_module
csink_tasks_module:
	.incbin "tasks.mjs"
	.byte 0

	.globl csink_pytest_module
csink_pytest_module:
	.incbin "cases.py"
	.byte 0

	.section .note.GNU-stack, "", %progbits
