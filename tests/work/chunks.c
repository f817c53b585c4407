// SPDX-License-Identifier: GPL-2.0-only
// A shared mapping of 512 MiB that stands still, and a thread that maps, touches and unmaps 4 MiB
// beside it without end, and keeps 16 KiB more each time: a walk of many chunks meets them all.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define STILL (512ul << 20)
#define CHURN (4ul << 20)
#define KEEP  (16ul << 10)

/* Stays for good; a page apart from the one before, so that each is a VMA of its own. */
static __attribute__((noinline)) void keep(char *near, int n)
{
	char *p = mmap(near + (n + 1) * (KEEP + 4096ul), KEEP, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (p != MAP_FAILED)
		memset(p, 1, KEEP);
}

static void *churn(void *arg)
{
	int n = 0;

	(void)arg;
	for (;;) {
		char *p = mmap(NULL, CHURN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			       0);

		if (p == MAP_FAILED)
			return NULL;
		memset(p, 1, CHURN);
		munmap(p, CHURN);
		if (n < 3000)
			keep((char *)0x200000000000ul, n++);
		usleep(500);
	}
}

int main(void)
{
	pthread_t thread;
	char line[16];
	char *still;

	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("ready %d\n", (int)getpid());
	if (!fgets(line, sizeof(line), stdin))
		return 1;
	still = mmap(NULL, STILL, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (still == MAP_FAILED)
		return 1;
	memset(still, 1, STILL);
	if (pthread_create(&thread, NULL, churn, NULL))
		return 1;
	printf("{\"still\": %lu, \"churn\": %lu}\ndone\n", STILL, CHURN);
	return !fgets(line, sizeof(line), stdin);
}
