/* SPDX-License-Identifier: MIT */
/*
 * H10 H28: in a list with a 32-bit library, a file that is no library and one that is missing,
 * the loader warns of those and we work; and children in which nothing of the list works run
 * all the same. Failure: the process does not start, or we are not in it.
 */
#include "claim.h"

#include <elf.h>

static void write_file(const char *name, const void *bytes, size_t count)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0755);

	claim(fd >= 0 && write(fd, bytes, count) == (ssize_t)count, "write %s", name);
	close(fd);
}

int main(int argc, char **argv)
{
	static struct claim_output out;
	static char image[8192];
	char list[3 * PATH_MAX];
	Elf32_Ehdr head = {.e_type = ET_DYN,
			   .e_machine = EM_386,
			   .e_version = EV_CURRENT,
			   .e_ehsize = sizeof(head),
			   .e_phentsize = sizeof(Elf32_Phdr),
			   .e_phnum = 1,
			   .e_phoff = sizeof(head)};

	(void)argv;
	if (argc > 1) {
		free(malloc(10));
		puts(claim_ours() ? "with us" : "without us");
		return 0;
	}
	memcpy(head.e_ident, ELFMAG, SELFMAG);
	head.e_ident[EI_CLASS] = ELFCLASS32;
	head.e_ident[EI_DATA] = ELFDATA2LSB;
	head.e_ident[EI_VERSION] = EV_CURRENT;
	memcpy(image, &head, sizeof(head));
	write_file("fake32.so", image, sizeof(image));
	write_file("text.so", "no library\n", 11);
	const char *orders[] = {"./fake32.so:./text.so:./missing.so:%s", "%s:./fake32.so ./text.so",
				"./fake32.so %s ./missing.so", "./fake32.so:./missing.so"};
	for (int i = 0; i < 4; i++) {
		char format[64];
		snprintf(format, sizeof(format), "%s", orders[i]);
		char *mark = strstr(format, "%s");
		snprintf(list, sizeof(list), "%.*s%s%s", mark ? (int)(mark - format) : 64, format,
			 mark ? claim_preload() : "", mark ? mark + 2 : "");
		int status = claim_again(list, "child", &out);
		claim(status == 0, "'%s': %d, %.300s", list, status, out.text);
		claim(strstr(out.text, mark && claim_ours() ? "with us" : "without us"),
		      "'%s': %.300s", list, out.text);
	}
	return claim_end();
}
