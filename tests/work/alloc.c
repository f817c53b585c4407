// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory of every common kind, all of it from before the recording: blocks of the allocator the
 * process runs with, of the main thread and two more; their stacks; bss; shared objects; and
 * mappings of its own that no allocator knows. With an argument: loads that library as well, for
 * nothing. Prints "ready PID", waits for a line, prints the bytes it had written to by kind and
 * "done".
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include "work.h"

#define SMALL	  (23ul << 20)
#define LARGE	  (11ul << 20)
#define STACK	  (311ul << 10)
#define BSS	  (5ul << 20)
#define OBJECT	  (13 * 47) /* pages */
#define THREADS	  2
#define DECOY	  (3 * 1024 + 7) /* pages: 12 MiB and some */
#define BIG_DECOY (16 * 1024) /* pages: 64 MiB */

static pthread_barrier_t filled;
static char bss[BSS], *large;

/* Blocks of many sizes, each written to in full. Returns the bytes asked for. */
static NOINLINE size_t fill(size_t bytes)
{
	size_t done = 0, size = 16;
	char *p;

	while (done < bytes) {
		p = malloc(size);
		if (!p)
			die("malloc");
		memset(p, 1, size);
		done += size;
		size = size * 7 % 4093 + 16;
	}
	return done;
}

static void *thread(void *arg)
{
	volatile char deep[STACK];
	size_t i;

	for (i = 0; i < STACK; i++)
		deep[i] = 1;
	*(size_t *)arg = fill(SMALL);
	pthread_barrier_wait(&filled);
	pause();
	return (void *)(size_t)deep[0];
}

static void objects(void)
{
	int id = shmget(IPC_PRIVATE, OBJECT * page, 0600), fd = memfd_create("alloc-memfd", 0);
	char *p = id < 0 ? (void *)-1 : shmat(id, NULL, 0);

	if (p == (void *)-1)
		die("shmat");
	shmctl(id, IPC_RMID, NULL);
	touch(p, OBJECT);
	if (fd < 0 || ftruncate(fd, (off_t)((OBJECT + 1) * page)))
		die("memfd_create");
	touch(map_at(NULL, (OBJECT + 1) * page, PROT_READ | PROT_WRITE, MAP_SHARED, fd),
	      OBJECT + 1);
	p = map_at(NULL, (OBJECT + 2) * page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		   -1);
	touch(p, OBJECT + 2);
}

/* A closed mapping between two pages that may be read: the kernel makes one mapping of neighbours
 * that have the same access and flags. */
static char *walled(size_t pages, int flags)
{
	char *p = map_at(NULL, (pages + 2) * page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | flags,
			 -1);

	if (mprotect(p + page, pages * page, PROT_NONE))
		die("mprotect");
	return p + page;
}

static void use(char *p, size_t pages)
{
	if (mprotect(p, pages * page, PROT_READ | PROT_WRITE))
		die("mprotect");
	touch(p, pages);
}

/* No allocator's, though like one's: without reserve, with a part that is closed. */
static size_t decoys(void)
{
	use(walled(DECOY, 0), DECOY);
	use(walled(DECOY, MAP_NORESERVE), DECOY);
	use(walled(BIG_DECOY, MAP_NORESERVE), DECOY);
	/* Two arenas long and as aligned as they are: no single arena of glibc. */
	if (!getenv("LD_PRELOAD")) {
		touch(map_at((char *)0x300000000000ul, 128ul << 20, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1),
		      DECOY);
		return 4 * DECOY * page;
	}
	return 3 * DECOY * page;
}

int main(int argc, char **argv)
{
	size_t bytes[THREADS], sum, decoy, i;
	pthread_t tid;

	page = (size_t)sysconf(_SC_PAGESIZE);
	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	if (argc > 1 && !dlopen(argv[1], RTLD_NOW))
		die(dlerror());
	sum = fill(SMALL);
	memset(bss, 1, sizeof(bss));
	pthread_barrier_init(&filled, NULL, THREADS + 1);
	for (i = 0; i < THREADS; i++)
		if (pthread_create(&tid, NULL, thread, &bytes[i]))
			die("pthread_create");
	pthread_barrier_wait(&filled);
	for (i = 0; i < THREADS; i++)
		sum += bytes[i];
	large = malloc(LARGE);
	memset(large, 1, LARGE);
	decoy = decoys();
	objects();

	start();
	printf("{\"small\":%zu,\"large\":%lu,\"stack\":%lu,\"bss\":%lu,\"decoy\":%zu,\"sysv\":%zu,"
	       "\"memfd\":%zu,\"anon-shmem\":%zu}\n",
	       sum, LARGE, THREADS * STACK, BSS, decoy, OBJECT * page, (OBJECT + 1) * page,
	       (OBJECT + 2) * page);
	printf("done\n");
	await_line();
	return 0;
}
