// SPDX-License-Identifier: GPL-2.0-only
/* Runs a program of operations from FOLDER/ops, a line each: OP OWNER SLOT A B. An operation that
 * does not fit what is there does nothing, so that any part of a program is one: failures can be
 * cut down. Slots are ranges of pages; whoever acts is one of six functions. */
#include "child.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <malloc.h>

namespace
{

constexpr size_t SLOTS = 12, MOST = 256, OPS = 256, OWNERS = 6, CHILDREN = 4;

enum PageState : char { HOLE, OPEN, CLOSED };

struct Slot {
	char *p; /* nullptr: none */
	size_t n;
	bool whole; /* one mapping, as it was made */
	void *chunk; /* what malloc returned, nullptr: not by malloc */
	PageState state[2 * MOST];
};

struct Op {
	char name[12];
	unsigned owner, slot;
	size_t a, b;
};

Slot slots[SLOTS];
Op ops[OPS];
size_t nr_ops;
Child children[CHILDREN];
size_t nr_children;
char *break_start;
size_t break_pages;

/* The first run of pages from a on, at most n, that are all in a state fn likes. */
template <class Fn> bool run_of(const Slot &s, size_t &a, size_t &n, Fn likes)
{
	size_t end = a + n < s.n ? a + n : s.n;

	for (; a < end && !likes(s.state[a]); a++)
		;
	for (n = 0; a + n < end && likes(s.state[a + n]); n++)
		;
	return n > 0;
}

void fill_state(Slot &s, size_t a, size_t n, PageState state)
{
	for (size_t i = 0; i < n; i++)
		s.state[a + i] = state;
}

void forget(Slot &s)
{
	if (s.p && !s.chunk)
		for (size_t a = 0, n = s.n; run_of(s, a, n, [](PageState t) { return t != HOLE; });
		     a += n, n = s.n)
			unmap_pages(s.p + a * PAGE, n);
	s.p = nullptr;
}

INLINE void do_map(const char *me, Slot &s, size_t n, size_t flags)
{
	forget(s);
	if (s.p || !n)
		return;
	s.n = n;
	s.whole = true;
	s.chunk = nullptr;
	s.p = map_pages(me, n, RW,
			ANON | (flags & 1 ? MAP_POPULATE : 0) | (flags & 2 ? MAP_NORESERVE : 0));
	if (flags & 1)
		book.write(s.p, n, nullptr);
	fill_state(s, 0, n, OPEN);
}

/* Over a part of what is there. */
INLINE void do_fixed(const char *me, Slot &s, size_t a, size_t n)
{
	if (!run_of(s, a, n, [](PageState t) { return t != HOLE; }))
		return;
	map_pages(me, n, RW, ANON | MAP_FIXED, s.p + a * PAGE);
	fill_state(s, a, n, OPEN);
	s.whole = false;
}

INLINE void do_unmap(Slot &s, size_t a, size_t n)
{
	if (!run_of(s, a, n, [](PageState t) { return t != HOLE; }))
		return;
	unmap_pages(s.p + a * PAGE, n);
	fill_state(s, a, n, HOLE);
	s.whole = false;
}

INLINE void do_write(const char *me, Slot &s, size_t a, size_t n)
{
	/* The first page of a chunk begins with glibc's own words. */
	a += s.chunk && !a;
	if (run_of(s, a, n, [](PageState t) { return t == OPEN; }))
		write_pages(me, s.p + a * PAGE, n);
}

INLINE void do_advise(Slot &s, size_t a, size_t n, int advice)
{
	if (!run_of(s, a, n, [](PageState t) { return t != HOLE; }))
		return;
	advise(s.p + a * PAGE, n, advice);
	if (advice == MADV_DONTNEED)
		book.drop(s.p + a * PAGE, n);
}

INLINE void do_protect(Slot &s, size_t a, size_t n, PageState state)
{
	if (!run_of(s, a, n, [](PageState t) { return t != HOLE; }))
		return;
	if (sys(SYS_mprotect, word(s.p + a * PAGE), word(n * PAGE), state == OPEN ? RW : PROT_NONE))
		die("mprotect");
	fill_state(s, a, n, state);
	s.whole = false;
}

/* Wherever there is room, or over another slot. */
INLINE void do_remap(const char *me, Slot &s, size_t n, Slot *to)
{
	size_t was = s.n;
	long at;

	if (!s.whole || !n || (to && (to == &s || !to->whole || to->n < n)))
		return;
	at = sys(SYS_mremap, word(s.p), word(was * PAGE), word(n * PAGE),
		 MREMAP_MAYMOVE | (to ? MREMAP_FIXED : 0), to ? word(to->p) : 0);
	if (at == -1)
		die("mremap");
	book.move(s.p, was, reinterpret_cast<char *>(at), n, me);
	if (to) {
		to->whole = false;
		fill_state(*to, 0, n, HOLE);
	}
	s.p = reinterpret_cast<char *>(at);
	s.n = n;
	fill_state(s, 0, n, OPEN);
}

INLINE void do_brk(const char *me, size_t up, size_t down)
{
	char *end = break_start + break_pages * PAGE;

	down = down < break_pages ? down : break_pages;
	if (sys(SYS_brk, word(end + up * PAGE)) != word(end + up * PAGE))
		die("brk");
	if (up)
		book.map(end, up, me);
	write_pages(me, end, up);
	break_pages += up;
	end += up * PAGE;
	if (!down)
		return;
	if (sys(SYS_brk, word(end - down * PAGE)) != word(end - down * PAGE))
		die("brk");
	book.unmap(end - down * PAGE, down);
	break_pages -= down;
}

/* glibc maps a chunk of this size: its header is in the first page, which malloc writes. */
INLINE void do_malloc(const char *me, Slot &s, size_t n)
{
	if (s.p || n < 40)
		return;
	s.chunk = malloc(n * PAGE - PAGE / 2);
	if (!s.chunk)
		die("malloc");
	s.p = reinterpret_cast<char *>(reinterpret_cast<uintptr_t>(s.chunk) & -PAGE);
	s.n = n;
	s.whole = false;
	book.map(s.p, n, me);
	book.write(s.p, 1, me);
	fill_state(s, 0, n, OPEN);
}

INLINE void do_free(Slot &s)
{
	if (!s.chunk)
		return;
	free(s.chunk);
	book.unmap(s.p, s.n);
	s.p = nullptr;
	s.chunk = nullptr;
}

INLINE void act(const char *me, const Op &op)
{
	Slot &s = slots[op.slot % SLOTS];

	if (!strcmp(op.name, "map"))
		return do_map(me, s, op.a % MOST, op.b);
	if (!strcmp(op.name, "malloc"))
		return do_malloc(me, s, op.a % MOST);
	if (!strcmp(op.name, "brk"))
		return do_brk(me, op.a % MOST, op.b % MOST);
	if (!s.p)
		return;
	if (!strcmp(op.name, "write"))
		return do_write(me, s, op.a, op.b);
	if (!strcmp(op.name, "free"))
		return do_free(s);
	if (s.chunk)
		return;
	if (!strcmp(op.name, "fixed"))
		do_fixed(me, s, op.a, op.b);
	else if (!strcmp(op.name, "unmap"))
		do_unmap(s, op.a, op.b);
	else if (!strcmp(op.name, "dontneed"))
		do_advise(s, op.a, op.b, MADV_DONTNEED);
	else if (!strcmp(op.name, "lazyfree"))
		do_advise(s, op.a, op.b, MADV_FREE);
	else if (!strcmp(op.name, "close"))
		do_protect(s, op.a, op.b, CLOSED);
	else if (!strcmp(op.name, "open"))
		do_protect(s, op.a, op.b, OPEN);
	else if (!strcmp(op.name, "remap"))
		do_remap(me, s, op.a % MOST, nullptr);
	else if (!strcmp(op.name, "over"))
		do_remap(me, s, op.a % MOST, &slots[op.b % SLOTS]);
}

#define OWNER(n)                              \
	NOINLINE void owner_##n(const Op &op) \
	{                                     \
		act(__func__, op);            \
	}
OWNER(0)
OWNER(1)
OWNER(2)
OWNER(3)
OWNER(4)
OWNER(5)

void (*const owners[OWNERS])(const Op &) = {owner_0, owner_1, owner_2, owner_3, owner_4, owner_5};

void read_ops()
{
	static char text[1 << 14];
	static char path[512];
	char *line = text, *next;
	ssize_t len;
	int fd;

	snprintf(path, sizeof(path), "%s/ops", folder);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	len = fd < 0 ? -1 : ::read(fd, text, sizeof(text) - 1);
	if (len < 0)
		die(path);
	close(fd);
	for (; nr_ops < OPS && (next = strchr(line, '\n')); line = next + 1) {
		Op &op = ops[nr_ops];

		*next = 0;
		nr_ops += sscanf(line, "%11s %u %u %zu %zu", op.name, &op.owner, &op.slot, &op.a,
				 &op.b) == 5;
	}
}

void run(size_t from, size_t to)
{
	for (size_t i = from; i < to; i++) {
		const Op &op = ops[i];
		size_t many = op.a < to - i - 1 ? op.a : to - i - 1;

		if (strcmp(op.name, "fork")) {
			owners[op.owner % OWNERS](op);
			continue;
		}
		if (nr_children == CHILDREN)
			continue;
		Child &child = children[nr_children++];

		book.only_stocks();
		if (child.fork()) {
			run(i + 1, i + 1 + many);
			child.hold();
		}
		child.await();
		i += many;
	}
}

} // namespace

void prepare_random()
{
	char *end;

	/* What malloc makes once is made before it is watched. */
	mallopt(M_MMAP_THRESHOLD, 32 * (int)PAGE);
	free(malloc(16));
	free(malloc(64 * PAGE));
	memset(slots, 1, sizeof(slots));
	memset(slots, 0, sizeof(slots));
	end = reinterpret_cast<char *>(sys(SYS_brk, 0));
	read_ops();
	/* On a page's edge, so that the pages of the break are its owners'. */
	break_start = reinterpret_cast<char *>((word(end) + word(PAGE) - 1) & -word(PAGE));
	if (sys(SYS_brk, word(break_start)) != word(break_start))
		die("brk");
}

void scenario_random()
{
	run(0, nr_ops);
}
