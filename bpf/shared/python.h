/* SPDX-License-Identifier: GPL-2.0-only
 * Where CPython keeps what its threads execute, and how a Python frame is one of a stack. */
#ifndef MP_SHARED_PYTHON_H
#define MP_SHARED_PYTHON_H

#include "types.h"

#define MP_PYTHON_DEPTH 64
#define MP_PYTHON_TEXT	128
#define MP_PYTHON_PATH	192
#define MP_PYTHON_LINES 640
#define MP_MAX_CODES	16384

/* Of an interpreter's frame all that is read lies within these bytes. */
#define MP_PYTHON_FRAME_SIZE 80

/* Of one address space. Offsets are by version. */
struct mp_python {
	u64 runtime; /* address of _PyRuntime */
	u64 code_type; /* of PyCode_Type, 0: its code objects are not known by it */
	u16 interpreters; /* in the runtime: the first interpreter */
	u16 next, threads; /* in an interpreter: the next one, the first thread */
	u16 thread_next, thread_interp, thread_id;
	u16 thread_frame; /* the frame it executes, or by is_cframe a struct that has it */
	u16 is_cframe, cframe_frame;
	u16 code, previous, instr; /* in a frame */
	u16 flags, owner; /* in a frame: bytes */
	u16 has_flags; /* the byte says: the C code that runs it runs no caller of it */
	u16 firstlineno, filename, qualname, linetable, bytecode; /* in a code object */
	u16 ascii, compact; /* where a text's characters are */
};

/* A Python frame among the addresses of a stack: bit 63, which no address of user space has; bit
 * 62, the C code that runs it runs no caller of it; the address of its code object, which is a
 * multiple of 16; which instruction of that, in units of two bytes. */
#define MP_PYTHON_FRAME	     (1ull << 63)
#define MP_PYTHON_ENTRY	     (1ull << 62)
#define MP_PYTHON_UNITS	     0x7ffffull /* so many, or more */
#define MP_PYTHON_CODE(word) (((word) & ~(MP_PYTHON_FRAME | MP_PYTHON_ENTRY)) >> 19 << 4)

/* In the ring only: a code object that a stack has, as it was then. */
#define MP_RING_CODE 1000

struct mp_python_text {
	u32 len; /* characters, also those behind the end of text */
	u32 state;
	u8 text[MP_PYTHON_PATH];
};

struct mp_python_code {
	u64 code, lines_at;
	u32 firstlineno;
	u32 lines_len; /* of all of it */
	struct mp_python_text name, file;
	u8 lines[MP_PYTHON_LINES];
};

#endif
