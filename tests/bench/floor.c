// SPDX-License-Identifier: GPL-2.0-only
/* Attaches the empty programs, says "recording" and waits for a signal. For scripts/bench. */
#include <stdio.h>
#include <unistd.h>
#include "floor.skel.h"

int main(void)
{
	struct floor_bpf *skel = floor_bpf__open_and_load();

	if (!skel || floor_bpf__attach(skel)) {
		fprintf(stderr, "floor: cannot load or attach\n");
		return 1;
	}
	fprintf(stderr, "floor: recording nothing\n");
	pause();
	return 0;
}
