/* SPDX-License-Identifier: GPL-2.0-only
 * libFuzzer entry of what reads files of the profiled program without a library: the builder of
 * unwind tables and the reader of perf maps. The first byte chooses: an ELF file as it is; the rest
 * as .eh_frame or .debug_frame alone; or as a perf map. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "lib/sym/perfmap.h"
#include "lib/unwind/cfi.h"
#include "lib/unwind/table.h"

static u64 touched, last;

static int row(void *ctx, u64 pc, u64 end, const struct mp_rule *rule)
{
	(void)ctx;
	/* Sorted, never empty, never overlapping. */
	if (pc >= end || pc < last)
		abort();
	last = end;
	touched += rule->cfa;
	return 0;
}

static void table(const u8 *data, size_t len)
{
	struct unwind_table t = {0};
	u64 i;

	if (unwind_table_of_image(data, len, &t)) {
		if (t.cells)
			abort();
		return;
	}
	if (!unwind_table_good(&t))
		abort();
	for (i = 0; i < 64; i++) {
		const struct mp_rule *r = unwind_table_find(&t, i * 97);

		touched += r ? r->cfa : 0;
	}
	unwind_table_release(&t);
}

static void perfmap(const u8 *data, size_t len)
{
	int fd = memfd_create("perfmap", MFD_CLOEXEC);
	struct perfmap *m;
	const char *name;
	u64 i;

	if (fd >= 0 && write(fd, data, len) == (ssize_t)len && !perfmap_read(fd, &m)) {
		for (i = 0; i < 64; i++) {
			name = perfmap_find(m, i * 16);
			while (name && *name)
				touched += (u8)*name++;
		}
		perfmap_free(&m);
	}
	if (fd >= 0)
		close(fd);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t len);
int LLVMFuzzerTestOneInput(const u8 *data, size_t len)
{
	struct cfi_section sec = {.data = data + 1, .len = len - 1, .vaddr = 0x1000};

	if (!len)
		return 0;
	last = 0;
	switch (data[0] % 4) {
	case 0:
		table(data + 1, len - 1);
		break;
	case 1:
		perfmap(data + 1, len - 1);
		break;
	default:
		sec.is_eh = data[0] % 4 == 2;
		sec.ends_at_mark = data[0] & 4 ? 1 : 0;
		cfi_read(&sec, row, NULL);
	}
	return 0;
}
