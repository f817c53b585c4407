// SPDX-License-Identifier: GPL-2.0-only
/* A process whose own name, whose file's and whose function's would move a terminal's cursor, end a
 * line or a field. argv[1] is the folder for the file. /tmp/perf-PID.map stays: the test removes
 * it.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include "work.h"

#define EVIL	   "\x1b[31m\x1b]0;t\x07\r\x9b\xc2\x9b\xe2\x80\xae\xc0\x8a\xff;"
#define FILE_PAGES 37
#define MAP_PAGES  53

/* mmap(2) behind a frame of its own: the caller of the memory. */
static const unsigned char code[] = {
	0x55, /* push %rbp */
	0x48, 0x89, 0xe5, /* mov %rsp, %rbp */
	0xb8, 0x09, 0x00, 0x00, 0x00, /* mov $9, %eax */
	0x49, 0x89, 0xca, /* mov %rcx, %r10 */
	0x0f, 0x05, /* syscall */
	0x5d, 0xc3, /* pop %rbp; ret */
};

typedef char *(*mapper)(void *at, size_t len, long prot, long flags, long fd, long offset);

static mapper make_code(void)
{
	char *p = map_at(NULL, page, PROT_READ | PROT_WRITE | PROT_EXEC,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1);
	char path[64];
	FILE *f;

	memcpy(p, code, sizeof(code));
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	f = fopen(path, "wxe");
	if (!f)
		die(path);
	fprintf(f, "%lx %zx " EVIL "jitted\n", (unsigned long)p, sizeof(code));
	if (fclose(f))
		die(path);
	return (mapper)(void *)p;
}

int main(int argc, char **argv)
{
	char path[512];
	mapper map;
	char *p;
	int fd;

	if (argc != 2)
		return 2;
	prctl(PR_SET_NAME, "a\x1b[31m;\n\xff"
			   "b");
	start();
	snprintf(path, sizeof(path), "%s/file" EVIL "\n", argv[1]);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, (off_t)(FILE_PAGES * page)))
		die("file");
	touch(map_at(NULL, FILE_PAGES * page, PROT_READ | PROT_WRITE, MAP_SHARED, fd), FILE_PAGES);
	map = make_code();
	p = map(NULL, MAP_PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	touch(p, MAP_PAGES);
	printf("{\"file\":%zu,\"jitted\":%zu}\n", FILE_PAGES * page, MAP_PAGES * page);
	printf("done\n");
	await_line();
	return 0;
}
