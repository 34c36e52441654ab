/* The page that launcher/output/html/assemble made of page/, as bytes of the program. */
	.section .rodata, "a"

	.globl csink_history_head, csink_history_head_end
csink_history_head:
	.incbin "history_head.html"
csink_history_head_end:
	.byte 0

	.globl csink_history_tail, csink_history_tail_end
csink_history_tail:
	.incbin "history_tail.html"
csink_history_tail_end:
	.byte 0

	.section .note.GNU-stack, "", %progbits
