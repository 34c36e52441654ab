/* The pages that html/assemble made of their parts, as texts of the program. */
	.section .rodata, "a"

	.globl csink_html_head, csink_html_tail, csink_history_head, csink_history_tail
csink_html_head:
	.incbin "html_head.html"
	.byte 0
csink_html_tail:
	.incbin "html_tail.html"
	.byte 0
csink_history_head:
	.incbin "history_head.html"
	.byte 0
csink_history_tail:
	.incbin "history_tail.html"
	.byte 0

	.section .note.GNU-stack, "", %progbits
