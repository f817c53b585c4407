/* SPDX-License-Identifier: GPL-2.0-only
 * One ELF file on disk, and what its symbols and DWARF say about an offset in it.
 * Internal to lib/sym: everything libdw lives behind this header. */
#ifndef MP_SYM_DSO_H
#define MP_SYM_DSO_H

#include "bpf/shared/types.h"

#define DSO_MAX_FRAMES 64 /* deeper inlining is cut at the outer end */

struct dso;

struct dso_frame {
	const char *function; /* NULL unknown. All strings live as long as the dso */
	const char *file; /* NULL unknown */
	u32 line;
	int inlined;
};

/* fd: the file, duplicated, or -1: path is opened. root: where path and debug files are looked up
 * (file_open), must stay open. -ENOMEM, other -errno of the open, -ENOEXEC when it is no ELF we
 * would trust to libdw. */
int dso_open(struct dso **ret_d, int root, int fd, const char *path);
void dso_close(struct dso **d);
const char *dso_build_id(const struct dso *d);
/* Innermost first; ret holds DSO_MAX_FRAMES. Number of frames (>= 1) or -ENOMEM. */
int dso_lookup(struct dso *d, u64 offset, struct dso_frame *ret);
/* enum mp_frame of the code at offset, by .eh_frame. */
int dso_unwind(struct dso *d, u64 offset);
/* What is to be added to an address in the file where offset pgoff of its code is mapped at start.
 * 0, or -ENOEXEC: no ELF we would trust to libdw, or no code there. */
int dso_bias(int fd, u64 pgoff, u64 start, u64 *ret);

#endif
