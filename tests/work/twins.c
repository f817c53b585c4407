// SPDX-License-Identifier: GPL-2.0-only
/*
 * Two memfds of one name, and part of the second held by a child, too: names are no identity, and
 * bytes that two rows have are told. Prints "ready PID", waits for a line, acts, prints what it did
 * as JSON lines and "done", then waits for another line.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include "work.h"

#define NAME   "memprov-work-twins"
#define FIRST  101
#define SECOND 211
#define CHILD  37

static int make(size_t pages, unsigned long *inode)
{
	int fd = memfd_create(NAME, MFD_CLOEXEC);
	struct stat st;

	if (fd < 0 || ftruncate(fd, (off_t)(pages * page)) || fstat(fd, &st))
		die("memfd_create");
	*inode = st.st_ino;
	return fd;
}

static char *map_all(int fd, size_t pages, size_t touched)
{
	char *p = map_at(NULL, pages * page, PROT_READ | PROT_WRITE, MAP_SHARED, fd);

	touch(p, touched);
	return p;
}

static void tell(unsigned long inode, int pid, size_t reserved, size_t resident, size_t multi)
{
	printf("{\"inode\":\"%lu\",\"pid\":%d,\"reserved\":%zu,\"resident\":%zu,\"multi\":%zu}\n",
	       inode, pid, reserved * page, resident * page, multi * page);
}

int main(void)
{
	unsigned long inode[2];
	int fd[2], pipes[2];
	pid_t child;
	char *p;

	start();
	fd[0] = make(FIRST, &inode[0]);
	fd[1] = make(SECOND, &inode[1]);
	map_all(fd[0], FIRST, FIRST);
	p = map_all(fd[1], SECOND, SECOND);
	if (pipe(pipes))
		die("pipe");
	fflush(stdout);
	child = fork();
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		/* What was inherited goes: a mapping of its own is left. */
		munmap(p, SECOND * page);
		map_all(fd[1], CHILD, CHILD);
		if (write(pipes[1], "", 1) != 1)
			_exit(1);
		pause();
		_exit(0);
	}
	if (child < 0 || read(pipes[0], &(char){0}, 1) != 1)
		die("fork");
	tell(inode[0], getpid(), FIRST, FIRST, 0);
	tell(inode[1], getpid(), SECOND, SECOND, CHILD);
	tell(inode[1], child, CHILD, CHILD, CHILD);
	printf("done\n");
	await_line();
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	return 0;
}
