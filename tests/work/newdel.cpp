// SPDX-License-Identifier: GPL-2.0-only
/*
 * C++'s new and delete in their forms: arrays, sized, aligned, nothrow, containers, and a new that
 * throws. Each block is written to in full. Prints "ready PID", waits, works, prints the bytes that
 * live of each function and "done".
 */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <unistd.h>
#include <vector>

#define NOINLINE __attribute__((noinline))

struct alignas(64) wide {
	char bytes[192];
};

static size_t lives[3];

template <typename T> static T *filled(T *p, size_t len, int who)
{
	std::memset(static_cast<void *>(p), 1, len);
	__asm__ volatile("" : : "r"(p) : "memory"); /* it is written, read or not */
	lives[who] += len;
	return p;
}

static NOINLINE void plain_new()
{
	for (int i = 0; i < 500; i++) {
		filled(new char[77], 77, 0);
		int *gone = new int(7);
		*static_cast<volatile int *>(gone) = 8;
		delete gone;
	}
}

static NOINLINE void aligned_new()
{
	for (int i = 0; i < 300; i++) {
		wide *kept = filled(new wide, sizeof(wide), 1), *gone = new wide[3];
		std::memset(static_cast<void *>(gone), 1, 3 * sizeof(wide));
		delete[] gone;
		if (!kept->bytes[0])
			std::abort();
	}
}

static NOINLINE void nothrow_new()
{
	for (int i = 0; i < 200; i++)
		filled(new (std::nothrow) char[1001], 1001, 2);
	volatile size_t huge = static_cast<size_t>(-1) / 4;
	if (new (std::nothrow) char[huge])
		std::abort();
	try {
		std::printf("%p\n", static_cast<void *>(new char[huge]));
	} catch (const std::bad_alloc &) {
		filled(new (std::nothrow) char[333], 333, 2);
	}
}

int main()
{
	static const char *const names[] = {"plain_new", "aligned_new", "nothrow_new"};
	static char out[4096], in[4096], line[64];

	std::setvbuf(stdout, out, _IOLBF, sizeof(out));
	std::setvbuf(stdin, in, _IOLBF, sizeof(in));
	std::printf("ready %d\n", static_cast<int>(getpid()));
	if (!std::fgets(line, sizeof(line), stdin))
		return 1;
	plain_new();
	aligned_new();
	nothrow_new();
	for (int i = 0; i < 3; i++)
		std::printf("{\"pid\":%d,\"site\":\"%s\",\"reserved\":%zu,\"live\":%zu}\n",
			    static_cast<int>(getpid()), names[i], lives[i], lives[i]);
	std::printf("done\n");
	if (!std::fgets(line, sizeof(line), stdin))
		return 0;
	return 0;
}
