/* SPDX-License-Identifier: MIT */
/* page: the style and the script of the HTML page, as they stand in tools/export/page. */
	.section .rodata
	.global tm_page_style, tm_page_style_end, tm_page_script, tm_page_script_end
tm_page_style:
	.incbin "tools/export/page/page.css"
tm_page_style_end:
tm_page_script:
	.incbin "tools/export/page/util.js"
	.incbin "tools/export/page/data.js"
	.incbin "tools/export/page/overview.js"
	.incbin "tools/export/page/timeline.js"
	.incbin "tools/export/page/flame.js"
	.incbin "tools/export/page/sites.js"
	.incbin "tools/export/page/pages.js"
	.incbin "tools/export/page/devices.js"
	.incbin "tools/export/page/main.js"
tm_page_script_end:
	.section .note.GNU-stack, "", %progbits
