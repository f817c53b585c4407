// SPDX-License-Identifier: GPL-2.0-only
/* The oracle: a naive model of every page, kept by the program that acts. Whoever maps, touches or
 * drops says so here, page by page; at the end the book is the truth, and /proc/self/pagemap must
 * agree with it. All room is static and touched before the recording: keeping the book maps
 * nothing.
 */
#ifndef TRUTH_BOOK_H
#define TRUTH_BOOK_H

#include "sys.h"

class Book
{
      public:
	void start();
	/* n pages at p belong to a function (its __func__) or to an object (a path). What was there
	 * is gone. */
	void map(const void *p, size_t n, const char *owner);
	void map_object(const void *p, size_t n, const char *path);
	void unmap(const void *p, size_t n);
	/* mremap: from n pages at p to m pages at q; what grows belongs to owner. keep: DONTUNMAP.
	 */
	void move(const void *p, size_t n, const void *q, size_t m, const char *owner,
		  bool keep = false);

	/* The program wrote n pages at p in a function; NULL: no user fault did it (the kernel
	 * wrote, or populated). */
	void write(const void *p, size_t n, const char *by);
	/* It read them: as write, but a shared page stays shared. */
	void read(const void *p, size_t n, const char *by);
	/* One write, a huge page: all of it gained by this fault, one page of it touched. */
	void fault_huge(const void *p, const char *by);
	/* The backing is gone, the mapping is not. */
	void drop(const void *p, size_t n);
	void swap_out(const void *p, size_t n);
	/* Another process, or another address, has begun (or, less than 0, ended) to hold them too.
	 */
	void share(const void *p, size_t n, int more);
	void huge(const void *p, size_t n, bool yes);
	/* What the kernel alone decides (reclaim, KSM): the state is read from pagemap, and said to
	 * be so. */
	void look(const void *p, size_t n);
	/* Every private page is now held by both; the child has done nothing yet. */
	void forked(bool child);
	/* Behind a fork: the copies that the bookkeeping itself needs are made now. */
	void settle();
	/* Two processes copy without telling each other: how many hold a page is not known. */
	void only_stocks();
	/* Other code of this process maps while it is recorded (a program start). */
	void open_world();

	size_t resident(const void *p, size_t n) const;
	/* Prints the lines of this process; see memprov-truth(5). */
	void say() const;
};

extern Book book;

/* A line on the standard output; allocates nothing. */
void print(const char *format, ...) __attribute__((format(printf, 1, 2)));
[[noreturn]] void die(const char *what);
/* The run is no evidence: why. */
[[noreturn]] void not_scored(const char *why);

#endif
