/* The page that launcher/output/html/assemble made of its parts, as bytes of the program. */
	.section .rodata, "a"

	.globl csink_html_head, csink_html_head_end
csink_html_head:
	.incbin "html_head.html"
csink_html_head_end:
	.byte 0

	.globl csink_html_tail, csink_html_tail_end
csink_html_tail:
	.incbin "html_tail.html"
csink_html_tail_end:
	.byte 0

	.section .note.GNU-stack, "", %progbits
