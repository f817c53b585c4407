/* SPDX-License-Identifier: GPL-2.0-only
 * usage: pairs THREADS PAIRS: malloc and free of 64 bytes; prints ns of cpu time a pair. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define MAX_THREADS 64

static long pairs;

static void *loop(void *arg)
{
	void *volatile p;
	long i;

	for (i = 0; i < pairs; i++) {
		p = malloc(64);
		free(p);
	}
	return arg;
}

int main(int argc, char **argv)
{
	long threads = argc > 2 ? atol(argv[1]) : 0, i;
	pthread_t t[MAX_THREADS];
	struct timespec a, b;

	if (threads < 1 || threads > MAX_THREADS) {
		fprintf(stderr, "usage: pairs THREADS PAIRS\n");
		return 2;
	}
	pairs = atol(argv[2]);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
	for (i = 0; i < threads; i++)
		if (pthread_create(&t[i], NULL, loop, NULL))
			return 1;
	for (i = 0; i < threads; i++)
		pthread_join(t[i], NULL);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
	printf("%.1f\n", ((double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec)) /
				 ((double)pairs * (double)threads));
	return 0;
}
