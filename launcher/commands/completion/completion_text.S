/* What the completions of bash and fish have beside what is printed from the tables, as texts of the program. */
	.section .rodata, "a"

	.globl csink_completion_bash, csink_completion_fish
csink_completion_bash:
	.incbin "functions.bash"
	.byte 0
csink_completion_fish:
	.incbin "functions.fish"
	.byte 0

	.section .note.GNU-stack, "", %progbits
