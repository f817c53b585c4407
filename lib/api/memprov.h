/* SPDX-License-Identifier: GPL-2.0-only
 * libmemprov: reads what `memprov record` wrote, in numbers instead of text.
 *
 *	struct memprov *m = NULL;
 *	struct memprov_report *r = NULL;
 *	const struct memprov_row *row = NULL;
 *
 *	if (memprov_open("memprov.data", &m) || memprov_query(m, "resident", NULL, NULL, &r))
 *		errx(1, "%s", memprov_error());
 *	while ((row = memprov_next(r, row)))
 *		...
 *
 * Errors: functions that return int give 0 (or what their comment says) or a negative errno, then
 * leave *ret alone and keep a line of text for memprov_error().
 * Units: bytes, nanoseconds or a plain count, as memprov_column_unit() says. Addresses are those of
 * the recorded process.
 * Evidence: a number is the sum of disjoint parts, each as good as its name: exact, inferred,
 * sampled. Without evidence there is no number: 0 bytes is a measurement, "unknown" is not.
 * Ownership: what a function returns as a const pointer belongs to the report and lives as long; a
 * report outlives the trace it was made from. Names of columns, groups, owners and kinds are those
 * of memprov(1).
 * Threads: a handle may be used by one thread at a time; different handles have nothing in common.
 * Stability: structs defined here never change; later versions add functions. */
#ifndef MEMPROV_H
#define MEMPROV_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct memprov; /* an open trace file */
struct memprov_report; /* its rows for one query */
struct memprov_row; /* one owner and its costs */
struct memprov_frame; /* one function of an owner's stack */

const char *memprov_version(void);
/* Why the last call of this thread failed, one line: object, reason, remedy. Never NULL. */
const char *memprov_error(void);

/* ---- a trace ---- */

/* Only the header is read: damage further on is an error of memprov_query(). -EBADMSG: not a
 * memprov trace, or damaged. -EPROTONOSUPPORT: written by another version. */
int memprov_open(const char *path, struct memprov **ret);
void memprov_close(struct memprov **m); /* sets *m to NULL; nothing to do when it is NULL */

/* ---- a query ---- */

/* Replays the whole trace. Rows are sorted by column, the largest first. NULL takes the default.
 *   column  resident; memprov_column() lists them
 *   group   stack; rows that agree in it become one: stack function mapping file process
 *   owner   auto; who owns a page: alloc (the stack that mapped it), fault (the stack that touched
 *           it first), auto (alloc where seen, else fault)
 * -ENOENT: no such column. -EINVAL: no such group or owner. */
int memprov_query(struct memprov *m, const char *column, const char *group, const char *owner,
		  struct memprov_report **ret);
void memprov_report_free(struct memprov_report **r);

/* Events that were lost; they demote what they concern. */
uint64_t memprov_lost(const struct memprov_report *r);
/* 1: the recording ended in order; 0: it was killed or ran into its size limit. */
int memprov_complete(const struct memprov_report *r);

/* ---- costs ---- */

struct memprov_value {
	int64_t value; /* exact + inferred + sampled */
	int64_t exact, inferred, sampled;
	int64_t lo, hi; /* the truth lies between; both are value when all is exact */
};

/* 1: *ret is set. 0: there is no evidence, *ret is left alone. -ENOENT: no such column. */
int memprov_cost(const struct memprov_row *row, const char *column, struct memprov_value *ret);
/* The same over all rows. */
int memprov_total(const struct memprov_report *r, const char *column, struct memprov_value *ret);

/* As memprov_total() for the bytes of resident in one class; each byte is in exactly one: live
 * freed slack preexisting file shmem stack special unattributed. -ENOENT: no such class. */
int memprov_class(const struct memprov_report *r, const char *name, struct memprov_value *ret);

/* A sum over all rows beside the kernel's own figure, which no row was computed from. */
struct memprov_check {
	uint64_t kernel, kernel_before; /* read after and before the pages were looked at */
	uint64_t attributed, unattributed; /* rows with and without an owner */
	int64_t residual; /* kernel - attributed - unattributed */
	const char *status; /* ok, residual, drift (it ran on meanwhile), unjudged */
	const char *reason;
};

/* As memprov_cost(); 0: the kernel has no figure for this column. */
int memprov_check(const struct memprov_report *r, const char *column, struct memprov_check *ret);

/* Name of column number i from 0, NULL behind the last. */
const char *memprov_column(unsigned int i);
/* "B", "ns" or "n"; NULL: no such column. */
const char *memprov_column_unit(const char *column);
/* What it counts, in a line; NULL: no such column. */
const char *memprov_column_doc(const char *column);

/* ---- rows ---- */

/* The row behind this one, the first for NULL, NULL behind the last. */
const struct memprov_row *memprov_next(const struct memprov_report *r,
				       const struct memprov_row *row);
/* What --why takes: the same for every run of a build. */
const char *memprov_row_id(const struct memprov_row *row);
/* mmap brk stack fault file shmem memcg special preexisting unattributed. */
const char *memprov_row_kind(const struct memprov_row *row);
/* The file, object or class. NULL: the stack is the owner. */
const char *memprov_row_name(const struct memprov_row *row);
/* What made the name a class of memory from before the recording; NULL: nothing was guessed. */
const char *memprov_row_evidence(const struct memprov_row *row);
/* Command of the process; NULL unknown. */
const char *memprov_row_comm(const struct memprov_row *row);
uint32_t memprov_row_pid(const struct memprov_row *row);
/* Frame number i of the stack, 0 the innermost; NULL behind the outermost. */
const struct memprov_frame *memprov_row_frame(const struct memprov_row *row, unsigned int i);

/* Demangled; NULL: no symbol, or a caller that could not be seen. */
const char *memprov_frame_function(const struct memprov_frame *frame);
/* Path of the program or library, NULL unknown; its build id in hex, NULL none. */
const char *memprov_frame_module(const struct memprov_frame *frame);
const char *memprov_frame_build_id(const struct memprov_frame *frame);
/* NULL and 0: unknown. */
const char *memprov_frame_file(const struct memprov_frame *frame);
unsigned int memprov_frame_line(const struct memprov_frame *frame);
/* In the process, 0 for a caller that could not be seen; and in the module. */
uint64_t memprov_frame_address(const struct memprov_frame *frame);
uint64_t memprov_frame_offset(const struct memprov_frame *frame);
/* 1: inlined into the next frame. */
int memprov_frame_inlined(const struct memprov_frame *frame);

#ifdef __cplusplus
}
#endif
#endif
