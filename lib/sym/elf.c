/* SPDX-License-Identifier: GPL-2.0-only */
#include <stddef.h>
#include "lib/sym/elf.h"

#define MAX_SEGMENTS 512

Elf *elf_open_native(int fd)
{
	GElf_Ehdr eh;
	Elf *elf;

	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	if (elf && elf_kind(elf) == ELF_K_ELF && gelf_getehdr(elf, &eh) &&
	    eh.e_machine == EM_X86_64 && eh.e_ident[EI_CLASS] == ELFCLASS64)
		return elf;
	elf_end(elf);
	return NULL;
}

s64 elf_file_offset(Elf *elf, u64 addr, u32 flags)
{
	size_t n = 0, i;
	GElf_Phdr ph;

	elf_getphdrnum(elf, &n);
	for (i = 0; i < n && i < MAX_SEGMENTS; i++)
		if (gelf_getphdr(elf, (int)i, &ph) && ph.p_type == PT_LOAD &&
		    (ph.p_flags & flags) == flags && addr >= ph.p_vaddr &&
		    addr - ph.p_vaddr < ph.p_filesz)
			return (s64)(addr - ph.p_vaddr + ph.p_offset);
	return -1;
}
