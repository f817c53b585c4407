// SPDX-License-Identifier: GPL-2.0-only
#include "book.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace
{

constexpr size_t MAX_OWNERS = 64, MAX_SPANS = 4096, MAX_PAGES = 1 << 18;

struct Owner {
	const char *name;
	bool object;
	size_t touched, faulted, cow, looked;
	size_t ever; /* bytes of all it has ever mapped */
};

struct Span {
	uintptr_t start, end;
	short owner;
};

/* A page that has ever been touched. at 0: free. */
struct Page {
	uintptr_t at;
	short faulter; /* index of an owner, -1 nobody */
	unsigned short mappings;
	uint64_t frame; /* where it was at the last fork, 0 unknown */
	bool resident, swapped, huge, touched;
};

Owner owners[MAX_OWNERS];
short nr_owners;
Span spans[MAX_SPANS];
size_t nr_spans;
Page pages[MAX_PAGES];
size_t nr_pages;
bool closed = true, stocks_only;
char *stack_top;

uintptr_t at(const void *p)
{
	return reinterpret_cast<uintptr_t>(p);
}

short owner_of(const char *name, bool object)
{
	short i;

	for (i = 0; i < nr_owners; i++)
		if (owners[i].object == object && !strcmp(owners[i].name, name))
			return i;
	if (nr_owners == MAX_OWNERS)
		die("too many owners");
	owners[nr_owners].name = name;
	owners[nr_owners].object = object;
	return nr_owners++;
}

/* Removes [start, end) from all spans. */
void cut(uintptr_t start, uintptr_t end)
{
	for (size_t i = 0; i < nr_spans; i++) {
		Span &s = spans[i];

		if (s.end <= start || s.start >= end)
			continue;
		if (s.start < start && s.end > end) {
			if (nr_spans == MAX_SPANS)
				die("too many spans");
			spans[nr_spans++] = {end, s.end, s.owner};
			s.end = start;
		} else if (s.start < start) {
			s.end = start;
		} else if (s.end > end) {
			s.start = end;
		} else {
			s = spans[--nr_spans];
			i--;
		}
	}
}

const Span *span_at(uintptr_t a)
{
	for (size_t i = 0; i < nr_spans; i++)
		if (spans[i].start <= a && a < spans[i].end)
			return &spans[i];
	return nullptr;
}

size_t slot(uintptr_t a)
{
	size_t h = a / PAGE * 0x9e3779b97f4a7c15ull >> 20;

	for (h %= MAX_PAGES; pages[h].at && pages[h].at != a; h = (h + 1) % MAX_PAGES)
		;
	return h;
}

Page *find(uintptr_t a)
{
	Page *p = &pages[slot(a)];

	return p->at ? p : nullptr;
}

Page &make(uintptr_t a)
{
	Page &p = pages[slot(a)];

	if (p.at)
		return p;
	if (++nr_pages > MAX_PAGES * 3 / 4)
		die("too many pages");
	p = {a, -1, 1, 0, false, false, false, false};
	return p;
}

/* Open addressing: what follows in the cluster closes the hole. */
void forget(uintptr_t a)
{
	size_t hole = slot(a), i;

	if (!pages[hole].at)
		return;
	nr_pages--;
	pages[hole].at = 0;
	for (i = (hole + 1) % MAX_PAGES; pages[i].at; i = (i + 1) % MAX_PAGES) {
		Page moved = pages[i];

		pages[i].at = 0;
		pages[slot(moved.at)] = moved;
	}
}

/* Every touched page of [start, end): the range may be far larger than what was touched. */
template <class Fn> void each(uintptr_t start, uintptr_t end, Fn fn)
{
	if ((end - start) / PAGE <= MAX_PAGES) {
		for (; start < end; start += PAGE)
			if (find(start))
				fn(start);
		return;
	}
	for (size_t i = 0; i < MAX_PAGES; i++) {
		while (pages[i].at >= start && pages[i].at < end) {
			uintptr_t a = pages[i].at;

			fn(a);
			if (pages[i].at == a)
				break;
		}
	}
}

void place(const void *p, size_t n, short owner)
{
	book.unmap(p, n);
	if (nr_spans == MAX_SPANS)
		die("too many spans");
	spans[nr_spans++] = {at(p), at(p) + n * PAGE, owner};
	owners[owner].ever += n * PAGE;
}

/* ---- what pagemap says ---- */

int pagemap = -1;

constexpr uint64_t PRESENT = 1ull << 63, SWAPPED = 1ull << 62, FRAME = (1ull << 55) - 1;

/* Calls fn(address, entry) for n pages from a. */
template <class Fn> void each_entry(uintptr_t a, size_t n, Fn fn)
{
	static uint64_t entry[4096];
	size_t i, want;

	for (; n; n -= want) {
		want = n < 4096 ? n : 4096;
		if (pread(pagemap, entry, want * 8, (off_t)(a / PAGE * 8)) != (ssize_t)(want * 8))
			die("pagemap");
		for (i = 0; i < want; i++, a += PAGE)
			fn(a, entry[i]);
	}
}

/* The file of this process, not of the one it was forked from. */
int frames = -1;

uint64_t frame_of(uintptr_t a)
{
	uint64_t entry;

	if (pread(frames, &entry, 8, (off_t)(a / PAGE * 8)) != 8)
		die("pagemap");
	return entry & PRESENT ? entry & FRAME : 0;
}

void touch(const void *p, size_t n, const char *by, bool write)
{
	short faulter = by ? owner_of(by, false) : -1;

	for (uintptr_t a = at(p); a < at(p) + n * PAGE; a += PAGE) {
		const Span *s = span_at(a);
		Page &pg = make(a);

		if (!s)
			die("touched what is not mapped");
		Owner &o = owners[s->owner];

		if (!pg.resident) {
			pg.faulter = faulter;
			pg.mappings = 1;
			o.faulted += by ? 1 : 0;
		} else if (write && pg.mappings > 1 && !o.object) {
			/* The last who has it writes on in place: no page is new. */
			if (!pg.frame || frame_of(a) != pg.frame) {
				pg.faulter = faulter;
				o.faulted++;
				o.cow++;
			}
			pg.mappings = 1;
		}
		if (by && !pg.touched)
			o.touched++;
		pg.touched |= by != nullptr;
		pg.resident = true;
		pg.swapped = false;
	}
}

bool agrees(uintptr_t a, uint64_t entry)
{
	const Page *p = find(a);
	bool resident = p && p->resident, swapped = p && p->swapped;

	return resident == !!(entry & PRESENT) && swapped == !!(entry & SWAPPED);
}

/* The book against the kernel: a dispute makes the run no evidence. */
void compare()
{
	size_t wrong = 0, n = 0;
	uintptr_t first = 0;

	pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	if (pagemap < 0)
		die("/proc/self/pagemap");
	auto look = [&](uintptr_t a, uint64_t entry) {
		n++;
		if (agrees(a, entry))
			return;
		if (!wrong++)
			first = a;
	};
	for (size_t i = 0; i < nr_spans; i++) {
		/* Of a huge reservation only what was touched. */
		if (spans[i].end - spans[i].start <= 1ul << 30)
			each_entry(spans[i].start, (spans[i].end - spans[i].start) / PAGE, look);
		else
			each(spans[i].start, spans[i].end,
			     [&](uintptr_t a) { each_entry(a, 1, look); });
	}
	close(pagemap);
	if (wrong)
		print("{\"disputed\":\"pagemap disagrees on %zu of %zu pages, first 0x%zx of %s\","
		      "\"pid\":%d}\n",
		      wrong, n, (size_t)first, owners[span_at(first)->owner].name, (int)getpid());
}

/* ---- what is said ---- */

struct Sum {
	size_t reserved, resident, swapped, thp, shared, pss;
};

Sum sum_of(short owner, bool fault)
{
	Sum sum = {};

	for (size_t i = 0; i < nr_spans; i++)
		if (spans[i].owner == owner)
			sum.reserved += spans[i].end - spans[i].start;
	for (const Page &p : pages) {
		const Span *s = p.at ? span_at(p.at) : nullptr;

		if (!s)
			continue;
		if ((fault && p.faulter >= 0 && !owners[s->owner].object ? p.faulter : s->owner) !=
		    owner)
			continue;
		sum.swapped += p.swapped ? PAGE : 0;
		if (!p.resident)
			continue;
		sum.resident += PAGE;
		sum.thp += p.huge ? PAGE : 0;
		sum.shared += p.mappings > 1 ? PAGE : 0;
		sum.pss += (PAGE << 12) / p.mappings;
	}
	sum.pss >>= 12;
	return sum;
}

void say_ranges(short owner)
{
	const char *comma = "";

	print(",\"ranges\":[");
	for (size_t i = 0; i < nr_spans; i++)
		if (spans[i].owner == owner) {
			print("%s[\"0x%zx\",\"0x%zx\"]", comma, (size_t)spans[i].start,
			      (size_t)spans[i].end);
			comma = ",";
		}
	print("]");
}

void say_owner(short i, bool fault)
{
	const Owner &o = owners[i];
	Sum sum = sum_of(i, fault);

	print("{\"owner\":\"%s\",\"kind\":\"%s\",\"pid\":%d,\"view\":\"%s\",\"by\":\"%s\","
	      "\"costs\":{"
	      "\"resident\":%zu,\"thp\":%zu",
	      o.name, o.object ? "object" : "function", (int)getpid(), fault ? "fault" : "alloc",
	      o.looked ? "pagemap" : "count", sum.resident, sum.thp);
	if (!o.object)
		print(",\"swapped\":%zu", sum.swapped);
	if (!fault)
		print(",\"reserved\":%zu", sum.reserved);
	if (!fault && !o.object && !stocks_only)
		print(",\"shared\":%zu,\"private\":%zu,\"pss\":%zu,\"touched\":%zu,\"faulted\":%zu,"
		      "\"cow\":%zu",
		      sum.shared, sum.resident - sum.shared, sum.pss, o.touched * PAGE,
		      o.faulted * PAGE, o.cow * PAGE);
	print("}");
	if (!fault)
		say_ranges(i);
	print(",\"ever\":%zu}\n", o.ever);
}

} // namespace

Book book;

void Book::start()
{
	/* Not zero, so that the pages are there now. */
	memset(pages, 1, sizeof(pages));
	memset(pages, 0, sizeof(pages));
	memset(spans, 1, sizeof(spans));
	memset(owners, 0, sizeof(owners));
	stack_top = static_cast<char *>(__builtin_frame_address(0));
}

extern char __data_start, _end;

void Book::settle()
{
	volatile char *p, *here = static_cast<char *>(__builtin_frame_address(0));

	for (p = &__data_start; p < &_end; p += PAGE)
		*p = *p;
	for (p = stack_top; p > here - 8 * PAGE; p -= PAGE)
		*p = *p;
}

void Book::forked(bool child)
{
	if (frames >= 0)
		close(frames);
	frames = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	if (frames < 0)
		die("/proc/self/pagemap");
	for (Page &p : pages) {
		const Span *s = p.at && p.resident ? span_at(p.at) : nullptr;

		p.frame = s ? frame_of(p.at) : 0;
		p.mappings += s && !owners[s->owner].object ? 1 : 0;
		p.touched = p.touched && !child;
		/* Nor does a fork copy the page tables of what is shared anyway. */
		p.resident = p.resident && !(child && s && owners[s->owner].object);
	}
	for (Owner &o : owners)
		if (child)
			o.touched = o.faulted = o.cow = 0;
}

void Book::only_stocks()
{
	stocks_only = true;
}

void Book::open_world()
{
	closed = false;
}

void Book::map(const void *p, size_t n, const char *owner)
{
	place(p, n, owner_of(owner, false));
}

void Book::map_object(const void *p, size_t n, const char *path)
{
	place(p, n, owner_of(path, true));
}

void Book::unmap(const void *p, size_t n)
{
	cut(at(p), at(p) + n * PAGE);
	each(at(p), at(p) + n * PAGE, forget);
}

void Book::move(const void *p, size_t n, const void *q, size_t m, const char *owner, bool keep)
{
	static Page held[1 << 14];
	size_t nr = 0, stay = n < m ? n : m;
	static Span from[64];
	size_t nr_from = 0;

	for (uintptr_t a = at(p); a < at(p) + stay * PAGE; a += PAGE)
		if (Page *pg = find(a)) {
			if (nr == 1 << 14)
				die("too large a move");
			held[nr++] = *pg;
		}
	for (size_t i = 0; i < nr_spans; i++)
		if (spans[i].start < at(p) + n * PAGE && spans[i].end > at(p)) {
			if (nr_from == 64)
				die("too many spans moved");
			from[nr_from++] = spans[i];
		}
	if (keep)
		each(at(p), at(p) + n * PAGE, forget);
	else
		unmap(p, n);
	unmap(q, m);
	for (size_t i = 0; i < nr_from; i++) {
		uintptr_t start = from[i].start > at(p) ? from[i].start : at(p);
		uintptr_t end = at(p) + stay * PAGE;

		if (from[i].end < end)
			end = from[i].end;
		if (start < end)
			spans[nr_spans++] = {start - at(p) + at(q), end - at(p) + at(q),
					     from[i].owner};
	}
	if (m > n) {
		spans[nr_spans++] = {at(q) + n * PAGE, at(q) + m * PAGE, owner_of(owner, false)};
		owners[owner_of(owner, false)].ever += (m - n) * PAGE;
	}
	for (size_t i = 0; i < nr; i++) {
		held[i].at = held[i].at - at(p) + at(q);
		make(held[i].at) = held[i];
	}
}

void Book::write(const void *p, size_t n, const char *by)
{
	touch(p, n, by, true);
}

void Book::read(const void *p, size_t n, const char *by)
{
	touch(p, n, by, false);
}

void Book::fault_huge(const void *p, const char *by)
{
	size_t n = HUGE / PAGE;

	touch(p, n, nullptr, true);
	each(at(p), at(p) + HUGE, [=](uintptr_t a) {
		find(a)->huge = true;
		find(a)->faulter = owner_of(by, false);
	});
	find(at(p))->touched = true;
	owners[span_at(at(p))->owner].touched++;
	owners[span_at(at(p))->owner].faulted += n;
}

void Book::drop(const void *p, size_t n)
{
	each(at(p), at(p) + n * PAGE, [](uintptr_t a) {
		Page *pg = find(a);

		pg->resident = pg->swapped = pg->huge = false;
		pg->mappings = 1;
	});
}

void Book::swap_out(const void *p, size_t n)
{
	each(at(p), at(p) + n * PAGE, [](uintptr_t a) {
		Page *pg = find(a);

		pg->swapped = pg->resident;
		pg->resident = pg->huge = false;
	});
}

void Book::share(const void *p, size_t n, int more)
{
	each(at(p), at(p) + n * PAGE, [=](uintptr_t a) {
		Page *pg = find(a);

		if (pg->resident)
			pg->mappings = static_cast<unsigned short>(pg->mappings + more);
	});
}

void Book::huge(const void *p, size_t n, bool yes)
{
	each(at(p), at(p) + n * PAGE, [=](uintptr_t a) { find(a)->huge = yes; });
}

void Book::look(const void *p, size_t n)
{
	pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	if (pagemap < 0)
		die("/proc/self/pagemap");
	each_entry(at(p), n, [](uintptr_t a, uint64_t entry) {
		const Span *s = span_at(a);

		if (!s)
			die("looked at what is not mapped");
		owners[s->owner].looked++;
		if (!find(a) && !(entry & (PRESENT | SWAPPED)))
			return;
		Page &pg = make(a);

		pg.resident = entry & PRESENT;
		pg.swapped = entry & SWAPPED;
	});
	close(pagemap);
}

size_t Book::resident(const void *p, size_t n) const
{
	size_t sum = 0;

	each(at(p), at(p) + n * PAGE, [&](uintptr_t a) { sum += find(a)->resident; });
	return sum;
}

void Book::say() const
{
	compare();
	print("{\"process\":%d,\"closed\":%s}\n", (int)getpid(), closed ? "true" : "false");
	for (short i = 0; i < nr_owners; i++) {
		say_owner(i, false);
		say_owner(i, true);
	}
}

/* Lines of several processes must not mix: a line is one write. */
void print(const char *format, ...)
{
	static char line[1 << 18];
	static size_t len;
	va_list ap;

	va_start(ap, format);
	len += (size_t)vsnprintf(line + len, sizeof(line) - len, format, ap);
	va_end(ap);
	if (len >= sizeof(line))
		_exit(3);
	if (!len || line[len - 1] != '\n')
		return;
	if (::write(1, line, len) != (ssize_t)len)
		_exit(3);
	len = 0;
}

void die(const char *what)
{
	dprintf(2, "truth: %s: %s\n", what, strerror(errno));
	_exit(1);
}

void not_scored(const char *why)
{
	print("{\"not_scored\":\"%s\"}\n", why);
	print("done\n");
	_exit(0);
}
