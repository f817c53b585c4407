/* SPDX-License-Identifier: GPL-2.0-only
 * ELF files, as the jailed children that look into them open and address them. */
#ifndef MP_SYM_ELF_H
#define MP_SYM_ELF_H

#include <gelf.h>
#include "bpf/shared/types.h"

/* The file behind fd when it is a 64-bit one of this machine, else NULL. */
Elf *elf_open_native(int fd);
/* Where addr, as it was linked, lies in the file: in a loaded segment that has all these PF_ flags.
 * -1: nowhere. */
s64 elf_file_offset(Elf *elf, u64 addr, u32 flags);

#endif
