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
#define SYM_BY_PATH -1
#define SYM_NO_FILE -2
/* The path of code made at run time: fd is a perf-PID.map or SYM_NO_FILE, and offsets are
 * addresses.
 */
#define SYM_JIT "[jit]"

/* [start, end) maps path from file offset pgoff. Later maps win where they overlap. 0, -ENOMEM,
 * -EINVAL. fd: the file, or SYM_BY_PATH: path is opened below root, or SYM_NO_FILE: module and
 * offset only. root: a directory that no name can leave, -1 for "/". Both must stay open as long as
 * the space. Files are read when first asked for; one that cannot be read or is no ELF is
 * remembered and gives module and offset only, as "[vdso]" and other bracket names do. */
int sym_space_map(struct sym_space *s, u64 start, u64 end, u64 pgoff, int root, int fd,
		  const char *path);
/* Module and offset of an address, reading no file. 1, or 0 when addr lies in no known map. ret_fd
 * as given to sym_space_map. */
int sym_locate(const struct sym_space *s, u64 addr, int is_return, struct sym_frame *ret,
	       int *ret_fd);
/* The file of this fd is not read any more: module and offset only. */
void sym_space_forget(struct sym_space *s, int fd);
/* Frames of one address, innermost inline first. is_return: addr is a return address, look up addr
 * - 1. At most max frames. Returns the number (>= 1 when addr lies in a known map, else 0) or
 * -errno. */
int sym_resolve(struct sym_space *s, u64 addr, int is_return, struct sym_frame *ret, int max);
/* enum mp_frame: how the caller of the code at addr is found. */
int sym_unwind(struct sym_space *s, u64 addr, int is_return);

#endif
