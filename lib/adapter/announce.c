/* SPDX-License-Identifier: GPL-2.0-only
 * The functions begin with a nop of one byte, which the kernel does not have to execute elsewhere.
 * One of five bytes would be ten times as fast where the kernel makes a call of it (Linux 6.18),
 * but a forked child inherits the call and not what it calls, and dies of it. */
#include "lib/adapter/announce.h"

/* clang-format off */
#define ANNOUNCEMENT(function, provider, name, args) \
	__asm__(".pushsection .text\n" \
		".balign 16\n" \
		".globl " #function "\n" \
		".hidden " #function "\n" \
		".type " #function ", @function\n" \
		#function ":\n" \
		".cfi_startproc\n" \
		"nop\n" \
		"ret\n" \
		".cfi_endproc\n" \
		".size " #function ", . - " #function "\n" \
		".popsection\n" \
		".pushsection .note.stapsdt, \"\", @note\n" \
		".balign 4\n" \
		".4byte 8, 2f - 1f, 3\n" \
		".asciz \"stapsdt\"\n" \
		"1:\n" \
		".8byte " #function ", _.stapsdt.base, 0\n" \
		".asciz \"" provider "\"\n" \
		".asciz \"" name "\"\n" \
		".asciz \"" args "\"\n" \
		"2:\n" \
		".balign 4\n" \
		".popsection\n")
/* clang-format on */

__asm__(".pushsection .stapsdt.base, \"a\", @progbits\n"
	".weak _.stapsdt.base\n"
	".hidden _.stapsdt.base\n"
	"_.stapsdt.base: .space 1\n"
	".size _.stapsdt.base, 1\n"
	".popsection\n");

ANNOUNCEMENT(announce_alloc, "otel_memory", "alloc", "8@%rdi 8@%rsi 8@%rdx");
ANNOUNCEMENT(announce_free, "otel_memory", "free", "8@%rdi");
ANNOUNCEMENT(announce_sampler, "memprov_adapter", "sampler", "8@%rdi");
ANNOUNCEMENT(announce_lost, "memprov_adapter", "lost", "");
