// SPDX-License-Identifier: GPL-2.0-only
/* What belongs to an object: files, memfd, SysV segments. */
#include "child.h"

#include <cstdio>
#include <sys/ipc.h>
#include <sys/shm.h>

int make_file(const char *name, size_t n)
{
	static char block[PAGE] = {1}, path[512];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		die(path);
	for (size_t i = 0; i < n; i++)
		if (::write(fd, block, PAGE) != (ssize_t)PAGE)
			die(path);
	if (fsync(fd))
		die(path);
	return fd;
}

static NOINLINE char *map_file(int fd, size_t n, int flags, const char *name, size_t from = 0)
{
	char *p = map_raw(nullptr, n * PAGE, RW, flags, fd, from * PAGE);

	book.map_object(p, n, name);
	return p;
}

static NOINLINE void read_file(const char *p, size_t n)
{
	read_pages(__func__, p, n);
}

static NOINLINE void write_file(char *p, size_t n)
{
	write_pages(__func__, p, n);
}

void scenario_file_private()
{
	size_t n = some(150);
	char *p = map_file(make_file("private", n), n, MAP_PRIVATE, "/private");

	read_file(p, n);
	write_file(p + 7 * PAGE, 61);
}

void scenario_file_shared()
{
	size_t n = some(200);
	int fd = make_file("shared", n);
	char *p = map_file(fd, n, MAP_SHARED, "/shared");
	char *q = map_file(fd, n - 100, MAP_SHARED, "/shared", 100);

	write_file(p, n);
	read_file(q, n - 100);
	unmap_pages(p, 31);
}

void scenario_file_helpers()
{
	static Child helper[2];
	size_t n = some(300);
	int fd = make_file("common", n);

	for (size_t i = 0; i < 2; i++)
		if (helper[i].fork()) {
			helper[i].await();
			read_file(map_file(fd, n - 64 * (i + 1), MAP_SHARED, "/common"),
				  n - 64 * (i + 1));
			helper[i].hold();
		}
	write_file(map_file(fd, n, MAP_SHARED, "/common"), n);
	for (Child &h : helper) {
		h.pass();
		h.await();
	}
}

static int make_memfd(const char *name, size_t n)
{
	long fd = sys(SYS_memfd_create, word(name), MFD_CLOEXEC);

	if (fd < 0 || ftruncate(static_cast<int>(fd), (off_t)(n * PAGE)))
		die("memfd");
	return static_cast<int>(fd);
}

void scenario_memfd_twice()
{
	size_t n = some(150);
	int fd = make_memfd("truth-twice", n);
	char *p = map_file(fd, n, MAP_SHARED, "memfd:truth-twice");
	char *q = map_file(fd, 83, MAP_SHARED, "memfd:truth-twice");

	write_file(p, n - 11);
	/* All of it: a read fault maps what lies around, too. */
	read_file(q, 83);
	advise(p + 20 * PAGE, 17, MADV_REMOVE);
	book.drop(p + 20 * PAGE, 17);
	book.drop(q + 20 * PAGE, 17);
}

static NOINLINE char *attach(int id, size_t n)
{
	long p = sys(SYS_shmat, id, 0, 0);

	if (p == -1)
		die("shmat");
	book.map_object(reinterpret_cast<void *>(p), n, "SYSV");
	return reinterpret_cast<char *>(p);
}

void scenario_sysv()
{
	size_t n = some(100);
	int id = shmget(IPC_PRIVATE, n * PAGE, IPC_CREAT | 0600);
	char *p, *q;

	if (id < 0)
		die("shmget");
	p = attach(id, n);
	q = attach(id, n);
	if (shmctl(id, IPC_RMID, nullptr))
		die("IPC_RMID");
	write_file(p, n);
	read_file(q, n);
	if (sys(SYS_shmdt, word(p)))
		die("shmdt");
	book.unmap(p, n);
}

void scenario_truncate()
{
	static Child other;
	size_t n = some(200), left = n / 2;
	int fd = make_file("cut", n);
	char *p = map_file(fd, n, MAP_SHARED, "/cut"), *q = map_file(fd, n, MAP_PRIVATE, "/cut");

	if (other.fork())
		_exit((other.await(), ftruncate(fd, (off_t)(left * PAGE))));
	read_file(p, n);
	read_file(q, n);
	write_file(q + (n - 20) * PAGE, 20);
	other.pass();
	other.join();
	book.drop(p + left * PAGE, n - left);
	book.drop(q + left * PAGE, n - left);
}

static NOINLINE void page_out(char *p, size_t n)
{
	advise(p, n, MADV_PAGEOUT);
	book.look(p, n);
}

void scenario_pageout_file()
{
	size_t n = some(200);
	char *p = map_file(make_file("out", n), n, MAP_PRIVATE, "/out");

	read_file(p, n);
	page_out(p, n);
	for (size_t i = 0; i < 13; i++)
		*(volatile char *)(p + i * 16 * PAGE);
	book.look(p, n);
}

static int advise_from_outside(pid_t pid, char *p, size_t n)
{
	struct {
		void *base;
		size_t len;
	} range = {p, n * PAGE};
	long fd = sys(SYS_pidfd_open, pid, 0);

	if (fd < 0)
		return 1;
	return sys(SYS_process_madvise, fd, word(&range), 1, MADV_PAGEOUT, 0) < 0;
}

void scenario_pageout_other()
{
	static Child other;
	size_t n = some(200);
	char *p = map_file(make_file("out", n), n, MAP_PRIVATE, "/out");
	pid_t me = getpid();

	if (other.fork()) {
		other.await();
		_exit(advise_from_outside(me, p, n));
	}
	read_file(p, n);
	other.pass();
	other.join();
	book.look(p, n);
}
