/* SPDX-License-Identifier: GPL-2.0-only
 * Names for addresses: libdw, from the files that were mapped, never from a running process. */
#ifndef MP_SYM_SYM_H
#define MP_SYM_SYM_H

#include "bpf/shared/event.h"

struct sym_space; /* the executable mappings of one address space */

struct sym_frame {
	const char *function; /* demangled; NULL unknown. Lives as long as the space */
	const char *module; /* path as given to sym_space_map */
	const char *build_id; /* lower-case hex, NULL none */
	const char *file; /* NULL unknown */
	u32 line; /* 0 unknown */
	u64 offset; /* of the address in the module file */
	int inlined; /* 1: inlined into the next frame */
};

int sym_space_new(struct sym_space **ret_s);
void sym_space_free(struct sym_space **s);
/* [start, end) maps path from file offset pgoff. root: prefix under which path is opened ("" or
 * /proc/PID/root). Later maps win where they overlap. 0, -ENOMEM, -EINVAL. A file that cannot be
 * read or is no ELF is remembered and gives module and offset only. "[vdso]" and other bracket
 * names: no file. */
int sym_space_map(struct sym_space *s, u64 start, u64 end, u64 pgoff, const char *root,
		  const char *path);
/* Frames of one address, innermost inline first. is_return: addr is a return address, look up addr
 * - 1. At most max frames. Returns the number (>= 1 when addr lies in a known map, else 0) or
 * -errno. */
int sym_resolve(struct sym_space *s, u64 addr, int is_return, struct sym_frame *ret, int max);
/* enum mp_frame: how the caller of the code at addr is found. */
int sym_unwind(struct sym_space *s, u64 addr, int is_return);

#endif
