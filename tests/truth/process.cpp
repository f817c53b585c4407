// SPDX-License-Identifier: GPL-2.0-only
/* Processes and threads: fork, vfork, exec, short lives, and who faults where. */
#include "child.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <sched.h>

static NOINLINE char *parent_map(size_t n)
{
	return map_pages(__func__, n);
}

static NOINLINE void parent_write(char *p, size_t n)
{
	write_pages(__func__, p, n);
}

static NOINLINE void child_map(size_t n)
{
	write_pages(__func__, map_pages(__func__, n), n - 5);
}

static NOINLINE void child_write(char *p, size_t n)
{
	write_pages(__func__, p, n);
}

/* The child copies the first a pages, the parent the last b; what is copied is nobody else's. */
void scenario_fork_cow()
{
	static Child child;
	size_t n = some(200), a = 53, b = 71;
	char *p = parent_map(n);

	parent_write(p, n - 3);
	if (child.fork()) {
		child.await();
		child_write(p, a);
		child_map(37);
		book.share(p + (n - 3 - b) * PAGE, b, -1);
		child.hold();
	}
	parent_write(p + (n - 3 - b) * PAGE, b);
	child.pass();
	child.await();
	book.share(p, a, -1);
}

static NOINLINE void grandchild_write(char *p, size_t n)
{
	write_pages(__func__, p, n);
}

void scenario_fork_tree()
{
	static Child child, grandchild;
	size_t n = some(150), m = 41;
	char *p = parent_map(n);

	parent_write(p, n);
	if (child.fork()) {
		if (grandchild.fork()) {
			grandchild.await();
			book.share(p + (n - 7) * PAGE, 7, -1);
			grandchild_write(p, m);
			child_map(23);
			grandchild.hold();
		}
		unmap_pages(p + (n - 7) * PAGE, 7);
		grandchild.pass();
		grandchild.await();
		book.share(p, m, -1);
		child.hold();
	}
	child.await();
	/* The grandchild holds all but what it copied, the child all but what it unmapped. */
	book.share(p + m * PAGE, n - m, 1);
	book.share(p + (n - 7) * PAGE, 7, -1);
}

/* The child has no stack of its own to map: static. */
static char stack[4][16 * PAGE] __attribute__((aligned(PAGE)));

static NOINLINE char *vfork_map(size_t n)
{
	char *p = map_pages(__func__, n);

	write_pages(__func__, p, n - 13);
	return p;
}

static int in_child(void *arg)
{
	*static_cast<char **>(arg) = vfork_map(101);
	return 0;
}

static NOINLINE void parent_after(char *p)
{
	write_pages(__func__, p + 88 * PAGE, 7);
}

void scenario_vfork()
{
	static char *p;
	int pid, status;

	parent_write(parent_map(some(100)), 67);
	pid = clone(in_child, stack[0] + sizeof(stack[0]), CLONE_VM | CLONE_VFORK | SIGCHLD, &p);
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
		die("vfork");
	parent_after(p);
}

static NOINLINE void second_program(size_t n)
{
	write_pages(__func__, map_pages(__func__, n), n - 29);
}

void scenario_exec()
{
	static char self[] = "/proc/self/exe", name[] = "exec", seed[] = "1";
	static char *argv[] = {self, name, seed, const_cast<char *>(folder), nullptr};

	if (getenv("TRUTH_STAGE")) {
		book.open_world();
		second_program(some(150));
		return;
	}
	parent_write(parent_map(some(300)), 211);
	setenv("TRUTH_STAGE", "2", 1);
	execv(self, argv);
	die("exec");
}

void scenario_short_lived()
{
	static Child child;
	size_t n = some(100);
	char *p = parent_map(n);

	parent_write(p, n);
	for (int i = 0; i < 20; i++) {
		if (child.fork()) {
			child_map(some(50));
			_exit(0);
		}
		child.join();
		book.share(p, n, -1);
	}
}

struct Worker {
	char *mapped; /* by it */
	char *other; /* mapped by another one */
	size_t n;
	std::atomic<int> state; /* 1 has mapped, 2 may fault, 3 done */
};

static Worker workers[4];

/* Not in the book yet: four act at once. */
static NOINLINE char *map_in_thread(size_t n)
{
	return map_raw(nullptr, n * PAGE, RW, ANON, -1);
}

static NOINLINE void fault_in_thread(char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		*(volatile char *)(p + i * PAGE) = 1;
}

static int work(void *arg)
{
	Worker *w = static_cast<Worker *>(arg);

	w->mapped = map_in_thread(w->n);
	w->state = 1;
	while (w->state != 2)
		sys(SYS_sched_yield);
	fault_in_thread(w->other, w->n - 9);
	w->state = 3;
	for (;;)
		sys(SYS_pause);
}

static void await_all(int state)
{
	for (Worker &w : workers)
		while (w.state != state)
			sys(SYS_sched_yield);
}

void scenario_threads()
{
	size_t n = some(100);

	for (size_t i = 0; i < 4; i++) {
		workers[i].n = n;
		/* The book of the stacks' pages: they are there before anybody faults. */
		for (size_t j = 0; j < sizeof(stack[i]); j += PAGE)
			*(volatile char *)&stack[i][j] = 0;
		if (clone(work, stack[i] + sizeof(stack[i]),
			  CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
				  CLONE_SYSVSEM,
			  &workers[i]) < 0)
			die("clone");
	}
	await_all(1);
	for (size_t i = 0; i < 4; i++)
		workers[i].other = workers[(i + 1) % 4].mapped;
	for (Worker &w : workers)
		w.state = 2;
	await_all(3);
	for (Worker &w : workers) {
		book.map(w.mapped, n, "map_in_thread");
		book.write(w.mapped, n - 9, "fault_in_thread");
	}
	unmap_pages(workers[2].mapped, 19);
}
