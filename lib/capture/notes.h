/* SPDX-License-Identifier: GPL-2.0-only
 * The USDT probes of a file, as its .note.stapsdt says. */
#ifndef MP_CAPTURE_NOTES_H
#define MP_CAPTURE_NOTES_H

#include <stddef.h>
#include "bpf/shared/types.h"

#define NOTES_MAX     256
#define NOTE_NAME_LEN 40
#define NOTE_ARGS_LEN 64

struct note {
	u64 offset; /* in the file */
	u64 semaphore; /* in the file, 0 none */
	char name[NOTE_NAME_LEN];
	char args[NOTE_ARGS_LEN]; /* "8@%rdi 8@%rsi": where each argument lies */
};

/* The probes of this provider in the file behind fd, at most NOTES_MAX of them: their number, or
 * -errno; -ENOEXEC when it is no ELF file of this machine. Names or arguments that are longer than
 * the struct are left out. ret has room for NOTES_MAX. */
int notes_read(int fd, const char *provider, struct note *ret);
/* Would a probe there harm the program? Of a nop of five bytes the kernel makes a call
 * (Linux 6.18). It writes below the stack pointer, where a leaf function may have its variables;
 * and a forked child inherits the call and not what it calls, and dies of it. */
int notes_unsafe(int fd, const struct note *n);

#endif
