// SPDX-License-Identifier: GPL-2.0-only
/* Advice, population, and memory that the kernel writes: no user fault of the owner's. */
#include "child.h"

#include <cstring>
#include <linux/io_uring.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/uio.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

static NOINLINE char *map_block(size_t n, int flags = 0)
{
	return map_pages(__func__, n, RW, ANON | flags);
}

static NOINLINE void fill(char *p, size_t n)
{
	write_pages(__func__, p, n);
}

static NOINLINE void touch_again(char *p, size_t n)
{
	write_pages(__func__, p, n);
}

void scenario_dontneed()
{
	size_t n = some(300);
	char *p = map_block(n);

	fill(p, n);
	advise(p + 11 * PAGE, 173, MADV_DONTNEED);
	book.drop(p + 11 * PAGE, 173);
	touch_again(p + 20 * PAGE, 31);
}

void scenario_free()
{
	size_t n = some(300);
	char *p = map_block(n);

	fill(p, n);
	advise(p + 11 * PAGE, 173, MADV_FREE);
	touch_again(p + 20 * PAGE, 31);
}

static NOINLINE char *map_populated(size_t n)
{
	return map_pages(__func__, n, RW, ANON | MAP_POPULATE);
}

static NOINLINE char *lock_all(size_t n)
{
	char *p = map_pages(__func__, n);

	if (sys(SYS_mlock, word(p), word(n * PAGE)))
		die("mlock");
	return p;
}

void scenario_populate()
{
	size_t n = some(150), m = some(100), k = some(70);
	char *p = map_populated(n);

	book.write(p, n, nullptr);
	fill(p, 23);
	p = map_block(m);
	if (!sys(SYS_madvise, word(p), word((m - 9) * PAGE), MADV_POPULATE_WRITE))
		book.write(p, m - 9, nullptr);
	book.write(lock_all(k), k, nullptr);
}

/* The kernel writes n pages for the descriptor. */
static NOINLINE void read_into(int fd, char *p, size_t n)
{
	if (sys(SYS_read, fd, word(p), word(n * PAGE)) != word(n * PAGE))
		die("read");
	book.write(p, n, nullptr);
}

void scenario_kernel_writes()
{
	size_t n = some(150);
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	char *p = map_block(n);

	read_into(fd, p + 5 * PAGE, n - 31);
	touch_again(p, 5);
}

void scenario_direct_io()
{
	size_t n = some(100);
	int fd = make_file("direct", n), flags = fcntl(fd, F_GETFL);
	char *p = map_block(n + 17);

	if (fcntl(fd, F_SETFL, flags | O_DIRECT) || lseek(fd, 0, SEEK_SET))
		not_scored("no direct I/O on this file system");
	read_into(fd, p, n);
}

void scenario_vm_writev()
{
	static Child other;
	static char block[64 * PAGE];
	static char *p;
	pid_t me = getpid();
	size_t n = 61;

	/* Where the mapping will lie is agreed on before. */
	p = map_block(some(200));
	fill(p, 7);
	if (other.fork()) {
		const struct iovec from = {block, n * PAGE}, to = {p + 10 * PAGE, n * PAGE};

		other.await();
		_exit(process_vm_writev(me, &from, 1, &to, 1, 0) != (ssize_t)(n * PAGE));
	}
	other.pass();
	other.join();
	book.share(p, 7, -1);
	book.write(p + 10 * PAGE, n, nullptr);
}

struct Ring {
	char *queue, *entries;
	struct io_uring_params params;
	int fd;
};

static Ring ring;

static NOINLINE void open_ring()
{
	long fd = sys(SYS_io_uring_setup, 4, word(&ring.params));

	if (fd < 0)
		not_scored("io_uring is not allowed here");
	ring.fd = static_cast<int>(fd);
	ring.queue = map_raw(nullptr, 4 * PAGE, RW, MAP_SHARED, ring.fd, IORING_OFF_SQ_RING);
	ring.entries = map_raw(nullptr, PAGE, RW, MAP_SHARED, ring.fd, IORING_OFF_SQES);
}

static NOINLINE void close_ring()
{
	if (sys(SYS_munmap, word(ring.queue), 4 * PAGE) ||
	    sys(SYS_munmap, word(ring.entries), PAGE))
		die("munmap");
	close(ring.fd);
}

static NOINLINE void submit_read(int fd, char *p, size_t n)
{
	struct io_uring_sqe *sqe = reinterpret_cast<struct io_uring_sqe *>(ring.entries);
	unsigned *tail = reinterpret_cast<unsigned *>(ring.queue + ring.params.sq_off.tail);
	unsigned *done = reinterpret_cast<unsigned *>(ring.queue + ring.params.cq_off.tail);
	struct io_uring_cqe *cqe =
		reinterpret_cast<struct io_uring_cqe *>(ring.queue + ring.params.cq_off.cqes);
	unsigned *array = reinterpret_cast<unsigned *>(ring.queue + ring.params.sq_off.array);

	memset(sqe, 0, sizeof(*sqe));
	sqe->opcode = IORING_OP_READ;
	sqe->fd = fd;
	sqe->addr = reinterpret_cast<uint64_t>(p);
	sqe->len = static_cast<unsigned>(n * PAGE);
	array[0] = 0;
	__atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
	if (sys(SYS_io_uring_enter, ring.fd, 1, 1, IORING_ENTER_GETEVENTS) != 1)
		die("io_uring_enter");
	/* It may return before the read is done. */
	while (!__atomic_load_n(done, __ATOMIC_ACQUIRE))
		sys(SYS_io_uring_enter, ring.fd, 0, 1, IORING_ENTER_GETEVENTS);
	if (cqe->res != (int)(n * PAGE))
		not_scored("io_uring did not read all of it");
	book.write(p, n, nullptr);
}

void scenario_io_uring()
{
	size_t n = some(100);
	int fd = make_file("ring", n);
	char *p = map_block(n + 23);

	open_ring();
	submit_read(fd, p, n);
	close_ring();
}

static NOINLINE void copy_into(int uffd, char *p, size_t n)
{
	static char block[64 * PAGE];
	struct uffdio_copy copy = {};

	copy.dst = reinterpret_cast<uint64_t>(p);
	copy.src = reinterpret_cast<uint64_t>(block);
	copy.len = n * PAGE;
	if (sys(SYS_ioctl, uffd, UFFDIO_COPY, word(&copy)))
		die("UFFDIO_COPY");
	book.write(p, n, nullptr);
}

void scenario_userfaultfd()
{
	struct uffdio_api api = {};
	struct uffdio_register reg = {};
	size_t n = some(100);
	long uffd = sys(SYS_userfaultfd, O_CLOEXEC);
	char *p = map_block(n);

	if (uffd < 0)
		not_scored("userfaultfd is not allowed here");
	api.api = UFFD_API;
	reg.range.start = reinterpret_cast<uint64_t>(p);
	reg.range.len = n * PAGE;
	reg.mode = UFFDIO_REGISTER_MODE_MISSING;
	if (sys(SYS_ioctl, uffd, UFFDIO_API, word(&api)) ||
	    sys(SYS_ioctl, uffd, UFFDIO_REGISTER, word(&reg)))
		not_scored("userfaultfd cannot be had for anonymous memory");
	copy_into(static_cast<int>(uffd), p + 3 * PAGE, 59);
	touch_again(p + 3 * PAGE, 19);
	close(static_cast<int>(uffd));
}
