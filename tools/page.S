/* SPDX-License-Identifier: MIT */
/* page: the style and the script of the HTML page, as they stand in tools/page. */
	.section .rodata
	.global tm_page_style, tm_page_style_end, tm_page_script, tm_page_script_end
tm_page_style:
	.incbin "tools/page/page.css"
tm_page_style_end:
tm_page_script:
	.incbin "tools/page/util.js"
	.incbin "tools/page/data.js"
	.incbin "tools/page/overview.js"
	.incbin "tools/page/timeline.js"
	.incbin "tools/page/flame.js"
	.incbin "tools/page/sites.js"
	.incbin "tools/page/pages.js"
	.incbin "tools/page/devices.js"
	.incbin "tools/page/main.js"
tm_page_script_end:
	.section .note.GNU-stack, "", %progbits
