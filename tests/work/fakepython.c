// SPDX-License-Identifier: GPL-2.0-only
/*
 * A program that says it is CPython 3.11 and has made up its interpreter: rings of threads and of
 * frames, code objects that are none, texts without end, addresses of nothing. Maps and fills
 * memory in each such state; prints "ready PID", waits for a line, acts, prints what it did as JSON
 * lines and "done", then waits for another line.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include "work.h"

#define EXPORT __attribute__((visibility("default"), used))

EXPORT uint64_t _PyRuntime[1024];
EXPORT uint64_t PyCode_Type[64];
EXPORT const unsigned long Py_Version = 0x030b02f0;

static uint64_t interp[64], thread[2][64], cframe[2], frame[4][16], text[512];
static _Alignas(16) uint64_t code[4][64];

static void point(uint64_t *in, size_t off, const void *at)
{
	in[off / 8] = (uint64_t)(uintptr_t)at;
}

static void make(void)
{
	point(_PyRuntime, 40, interp);
	point(interp, 16, thread[0]);
	for (int i = 0; i < 2; i++) {
		point(thread[i], 8, thread[!i]);
		point(thread[i], 16, interp);
		point(thread[i], 56, cframe);
	}
	/* thread_id: where the thread's own storage lies */
	__asm__("mov %%fs:0, %0" : "=r"(thread[1][152 / 8]));
	point(cframe, 8, frame[0]);
	for (int i = 0; i < 4; i++) {
		point(frame[i], 32, code[i]);
		point(frame[i], 48, frame[(i + 1) % 4]);
		point(frame[i], 56, (char *)code[i] + 184 + 6);
		point(code[i], 8, PyCode_Type);
		point(code[i], 112, text);
		point(code[i], 128, text);
		point(code[i], 136, text);
		code[i][72 / 8] = 7;
	}
	text[16 / 8] = ~0ull;
	text[32 / 8] = ~0ull;
	memset(text + 5, 0xff, sizeof(text) - 40);
}

NOINLINE static void fill_rings(void)
{
	touch(map_anon(101 * page), 101);
}

NOINLINE static void fill_no_code(void)
{
	for (int i = 0; i < 4; i++)
		point(code[i], 8, code);
	point(frame[1], 32, (void *)16);
	touch(map_anon(103 * page), 103);
}

NOINLINE static void fill_nowhere(void)
{
	point(frame[0], 48, (void *)0x123456789000);
	point(frame[0], 56, (void *)-1l);
	touch(map_anon(107 * page), 107);
}

NOINLINE static void fill_no_thread(void)
{
	point(cframe, 8, (void *)0x8000000000000000);
	point(_PyRuntime, 40, (void *)0xffffffffff600000);
	thread[1][152 / 8] = 0;
	touch(map_anon(109 * page), 109);
}

int main(void)
{
	make();
	start();
	fill_rings();
	fill_no_code();
	fill_nowhere();
	fill_no_thread();
	say("fill_rings", 101, 101, 101);
	say("fill_no_code", 103, 103, 103);
	say("fill_nowhere", 107, 107, 107);
	say("fill_no_thread", 109, 109, 109);
	puts("done");
	await_line();
	return 0;
}
