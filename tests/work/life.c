// SPDX-License-Identifier: GPL-2.0-only
/*
 * The life of pages: 64 MiB touched, half of it paged out, half of that read back, a child that
 * copies 8 MiB on writing, 8 MiB faulted as huge pages, 6 MiB made into huge pages of which one is
 * split, and pages that compaction moves.
 * Prints "ready PID", waits for a line, acts, prints what it did as JSON lines and "done", then
 * waits for another line. What the kernel did not do when asked is not in its account: it looks
 * into its page table (/proc/self/pagemap) before and after.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "work.h"

#define MIB	   (1UL << 20)
#define STORE_SIZE (64 * MIB)
#define OUT_SIZE   (32 * MIB)
#define BACK_SIZE  (16 * MIB)
#define COW_SIZE   (8 * MIB)
#define HUGE_SIZE  (8 * MIB)
#define HUGE_PAGE  (2 * MIB)

/* Frames are there for root only. */
static uint64_t frame(const char *p)
{
	uint64_t word = pagemap(p);

	return word >> 63 ? word & ((1ull << 55) - 1) : 0;
}

static size_t swapped(const char *p, size_t len)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i += page)
		n += pagemap(p + i) >> 62 == 1;
	return n;
}

static long major_faults(void)
{
	struct rusage self;

	getrusage(RUSAGE_SELF, &self);
	return self.ru_majflt;
}

/* Small pages, each with words of its own: nothing that a compressing swap would keep as one. */
static NOINLINE char *map_store(void)
{
	char *p = map_anon(STORE_SIZE);

	madvise(p, STORE_SIZE, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < STORE_SIZE; i += page)
		*(volatile uint64_t *)(p + i) = i + 1;
	return p;
}

/* Until all of it is out; a page on its way to the lists of the kernel is passed over at first. */
static NOINLINE size_t page_out(char *p)
{
	size_t out = 0;

	for (int round = 0; round < 50 && out < OUT_SIZE / page; round++) {
		if (madvise(p, OUT_SIZE, MADV_PAGEOUT))
			die("madvise");
		out = swapped(p, OUT_SIZE);
	}
	return out;
}

static NOINLINE void read_back(const char *p)
{
	for (size_t i = 0; i < BACK_SIZE; i += page)
		if (*(volatile uint64_t *)(p + i) != i + 1)
			die("a page came back with other contents");
}

/* The child stays until it is told that it may go. */
static NOINLINE pid_t fork_writer(char *p, int *ret_to)
{
	int said[2], go[2];
	pid_t pid;
	char c;

	if (pipe(said) || pipe(go))
		die("pipe");
	pid = fork();
	if (pid < 0)
		die("fork");
	if (pid == 0) {
		close(said[0]);
		close(go[1]);
		for (size_t i = 0; i < COW_SIZE; i += page)
			*(volatile uint64_t *)(p + i) = i;
		if (write(said[1], "w", 1) != 1)
			_exit(1);
		_exit(read(go[0], &c, 1) < 0);
	}
	close(said[1]);
	close(go[0]);
	if (read(said[0], &c, 1) != 1)
		die("the child");
	close(said[0]);
	*ret_to = go[1];
	return pid;
}

/* Returns how many bytes are huge pages; one write each. */
static NOINLINE size_t fault_huge(void)
{
	char *raw = map_anon(HUGE_SIZE + HUGE_PAGE), *p;
	size_t huge = 0;

	prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0);
	p = raw + (-(uintptr_t)raw & (HUGE_PAGE - 1));
	madvise(p, HUGE_SIZE, MADV_HUGEPAGE);
	for (size_t i = 0; i < HUGE_SIZE; i += HUGE_PAGE) {
		touch(p + i, 1);
		if (pagemap(p + i + HUGE_PAGE - page) >> 63)
			huge += HUGE_PAGE;
	}
	return huge;
}

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif
#define BLOCKS 3

/* Returns how many blocks became huge pages; one that did loses a page in its middle. */
static NOINLINE size_t collapse(size_t *ret_split)
{
	char *raw = map_anon((BLOCKS + 1) * HUGE_PAGE), *p;
	size_t made = 0;

	p = raw + (-(uintptr_t)raw & (HUGE_PAGE - 1));
	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	touch(p, BLOCKS * HUGE_PAGE / page);
	prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0);
	*ret_split = 0;
	for (size_t i = 0; i < BLOCKS; i++) {
		if (madvise(p + i * HUGE_PAGE, HUGE_PAGE, MADV_COLLAPSE))
			continue;
		if (!made++) {
			munmap(p + i * HUGE_PAGE + HUGE_PAGE / 2, page);
			*ret_split = 1;
		}
	}
	return made;
}

#define SCATTER_PAGES 4096

/* Every second page of it, then one compaction of the whole machine; returns how many moved. */
static NOINLINE size_t scatter(void)
{
	static uint64_t before[SCATTER_PAGES];
	char *p = map_anon(SCATTER_PAGES * page);
	size_t moved = 0;
	int fd = open("/proc/sys/vm/compact_memory", O_WRONLY | O_CLOEXEC);

	madvise(p, SCATTER_PAGES * page, MADV_NOHUGEPAGE);
	touch(p, SCATTER_PAGES);
	for (size_t i = 0; i < SCATTER_PAGES; i += 2)
		madvise(p + i * page, page, MADV_DONTNEED);
	for (size_t i = 1; i < SCATTER_PAGES; i += 2)
		before[i] = frame(p + i * page);
	if (fd < 0 || write(fd, "1", 1) != 1)
		return 0;
	close(fd);
	for (size_t i = 1; i < SCATTER_PAGES; i += 2)
		moved += frame(p + i * page) != before[i];
	return moved;
}

static long vmstat(const char *name)
{
	FILE *f = fopen("/proc/vmstat", "re");
	char key[64];
	long value;

	while (f && fscanf(f, "%63s %ld", key, &value) == 2)
		if (!strcmp(key, name)) {
			fclose(f);
			return value;
		}
	die(name);
	return 0;
}

int main(void)
{
	size_t out, back, huge, made, split, moved;
	long major, migrated;
	pid_t child;
	char *p;
	int to;

	start();
	p = map_store();
	out = page_out(p) * page;
	back = swapped(p, BACK_SIZE) * page;
	major = major_faults();
	read_back(p);
	major = major_faults() - major;
	child = fork_writer(p + OUT_SIZE, &to);
	huge = fault_huge();
	made = collapse(&split);
	migrated = vmstat("pgmigrate_success");
	moved = scatter() * page;
	migrated = (vmstat("pgmigrate_success") - migrated) * (long)page;
	printf("{\"owner\":\"map_store\",\"pid\":%d,\"reserved\":%lu,\"faulted\":%lu,"
	       "\"reclaimed\":%zu,\"refaulted\":%zu,\"major-faults\":%ld,\"swapped\":%zu,"
	       "\"resident\":%zu,\"cow\":0}\n",
	       (int)getpid(), STORE_SIZE, STORE_SIZE + back, out, back, major,
	       swapped(p, OUT_SIZE) * page, STORE_SIZE - swapped(p, OUT_SIZE) * page);
	printf("{\"owner\":\"map_store\",\"pid\":%d,\"cow\":%lu,\"reclaimed\":0,\"refaulted\":0}\n",
	       (int)child, COW_SIZE);
	printf("{\"owner\":\"fault_huge\",\"pid\":%d,\"faulted\":%zu,\"thp\":%zu,\"cow\":0}\n",
	       (int)getpid(), huge, huge);
	printf("{\"owner\":\"collapse\",\"pid\":%d,\"collapses\":%zu,\"splits\":%zu,\"thp\":%lu}\n",
	       (int)getpid(), made, split, (made - split) * HUGE_PAGE);
	printf("{\"owner\":\"scatter\",\"pid\":%d,\"migrated\":[%zu,%ld]}\n", (int)getpid(), moved,
	       migrated);
	printf("done\n");
	await_line();
	close(to);
	waitpid(child, NULL, 0);
	return 0;
}
