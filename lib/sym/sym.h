/* SPDX-License-Identifier: GPL-2.0-only
 * Names for addresses: libdw, from the files that were mapped, never from a running process. */
#ifndef MP_SYM_SYM_H
#define MP_SYM_SYM_H

#include "bpf/shared/event.h"

struct sym_files; /* all that is mapped in any space: a file is read once */
struct sym_space; /* the executable mappings of one address space */

/* A place in a file, of whatever space: what it is called depends on no more than this. */
struct sym_spot {
	u64 offset; /* of the address */
	u32 file; /* its number in sym_files */
	u8 is_return; /* a return address: the call lies before it */
};

struct sym_frame {
	const char *function; /* demangled; NULL unknown. Lives as long as the files */
	const char *module; /* path as given to sym_space_map */
	const char *build_id; /* lower-case hex, NULL none */
	const char *file; /* NULL unknown */
	u32 line; /* 0 unknown */
	u64 offset; /* of the address in the module file */
	int inlined; /* 1: inlined into the next frame */
};

int sym_files_new(struct sym_files **ret_k);
void sym_files_free(struct sym_files **k);
/* k must live as long as the space. */
int sym_space_new(struct sym_files *k, struct sym_space **ret_s);
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
 * the files; the same three are the same file. Files are read when first asked for; one that cannot
 * be read or is no ELF is remembered and gives module and offset only, as "[vdso]" and other
 * bracket names do. */
int sym_space_map(struct sym_space *s, u64 start, u64 end, u64 pgoff, int root, int fd,
		  const char *path);
/* Calls fn for each map, in order, with the fd it was given. Stops when fn returns non-zero. */
int sym_space_each(const struct sym_space *s,
		   int (*fn)(void *ctx, u64 start, u64 pgoff, int fd, const char *path), void *ctx);
/* Where an address lies, reading no file. 1, or 0 when it lies in no known map. */
int sym_locate(const struct sym_space *s, u64 addr, int is_return, struct sym_spot *ret);
/* Module and offset. */
struct sym_frame sym_place(const struct sym_files *k, const struct sym_spot *at);
/* Is there something to be read? */
int sym_has_file(const struct sym_files *k, u32 file);
/* It is not read any more: module and offset only. */
void sym_forget(struct sym_files *k, u32 file);
/* Frames of one spot, innermost inline first, at most max: the number (>= 1) or -errno. */
int sym_resolve(struct sym_files *k, const struct sym_spot *at, struct sym_frame *ret, int max);
/* enum mp_frame: how the caller of the code there is found. */
int sym_unwind(struct sym_files *k, const struct sym_spot *at);

#endif
