// SPDX-License-Identifier: GPL-2.0-only
/*
 * An mremap that does not return while the program is watched: it grows a locked range whose faults
 * nobody serves (userfaultfd), and the kernel wants its new pages before it comes back. Prints
 * "ready PID", waits for a line, acts, prints what it did and "done", then waits for another line.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include "work.h"

#define OPEN 64
#define REST 37

static char *range;

static NOINLINE void *grow(void *arg)
{
	(void)arg;
	mremap(range, page, OPEN * page, 0); /* for ever */
	return NULL;
}

static NOINLINE void map_rest(void)
{
	touch(map_anon(REST * page), REST);
}

/* One locked page, the faults behind it served by nobody. Returns 0 where that cannot be had. */
static int prepare(void)
{
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_zeropage zero;
	struct uffdio_register reg;
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);

	range = map_anon(OPEN * page);
	munmap(range + page, (OPEN - 1) * page);
	reg = (struct uffdio_register){.range = {(unsigned long)range, page},
				       .mode = UFFDIO_REGISTER_MODE_MISSING};
	zero = (struct uffdio_zeropage){.range = {(unsigned long)range, page}};
	return fd >= 0 && !ioctl(fd, UFFDIO_API, &api) && !ioctl(fd, UFFDIO_REGISTER, &reg) &&
	       !ioctl(fd, UFFDIO_ZEROPAGE, &zero) && !mlock(range, page);
}

int main(void)
{
	pthread_t thread;
	int can;

	start();
	map_rest();
	can = prepare();
	if (can && pthread_create(&thread, NULL, grow, NULL))
		die("pthread_create");
	if (can)
		usleep(200000);
	printf("{\"owner\":\"map_rest\",\"resident\":%lu}\n", REST * page);
	printf("{\"open\":%d}\ndone\n", can);
	await_line();
	return 0;
}
