// SPDX-License-Identifier: GPL-2.0-only
// A shared mapping of 512 MiB that stands still, and a thread that maps, touches and unmaps 4 MiB
// beside it without end: a walk of many chunks meets both.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define STILL (512ul << 20)
#define CHURN (4ul << 20)

static void *churn(void *arg)
{
	(void)arg;
	for (;;) {
		char *p = mmap(NULL, CHURN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			       0);

		if (p == MAP_FAILED)
			return NULL;
		memset(p, 1, CHURN);
		munmap(p, CHURN);
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
