/* SPDX-License-Identifier: GPL-2.0-only
 * memprov.h over lib/join: names become numbers, errors become text. It counts nothing itself. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "lib/api/memprov.h"
#include "lib/join/join.h"

struct memprov {
	int fd; /* the file that was opened, whatever its name means by now */
	char path[];
};

static _Thread_local char last_error[512];

static int fail(int err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static int fail(int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(last_error, sizeof(last_error), fmt, ap);
	va_end(ap);
	return err;
}

/* The handles of the header are the structs of lib/join, never looked into from outside. */
static const struct report *report_of(const struct memprov_report *r)
{
	return (const struct report *)r;
}

static const struct row *row_of(const struct memprov_row *row)
{
	return (const struct row *)row;
}

static const struct frame *frame_of(const struct memprov_frame *frame)
{
	return (const struct frame *)frame;
}

static int column_of(const char *name)
{
	const char *near = "resident";
	int c = cost_find(name, &near);

	return c < 0 ? fail(-ENOENT, "no column '%s': the nearest is %s", name, near) : c;
}

const char *memprov_version(void)
{
	return MEMPROV_VERSION;
}

const char *memprov_error(void)
{
	return last_error;
}

/* ---- trace and query ---- */

int memprov_open(const char *path, struct memprov **ret)
{
	struct memprov *m = malloc(sizeof(*m) + strlen(path) + 1);
	struct trace_reader *reader = NULL;
	int err;

	if (!m)
		return fail(-ENOMEM, "%s: %s", path, trace_strerror(-ENOMEM));
	err = trace_reader_open(path, &reader);
	if (!err) {
		m->fd = trace_reader_dup(reader);
		err = m->fd < 0 ? m->fd : 0;
		trace_reader_close(&reader);
	}
	if (err) {
		free(m);
		return fail(err, "%s: %s", path, trace_strerror(err));
	}
	memcpy(m->path, path, strlen(path) + 1);
	*ret = m;
	return 0;
}

void memprov_close(struct memprov **m)
{
	if (!m || !*m)
		return;
	close((*m)->fd);
	free(*m);
	*m = NULL;
}

int memprov_query(struct memprov *m, const char *column, const char *group, const char *owner,
		  struct memprov_report **ret)
{
	enum owner_mode mode = OWNER_AUTO;
	struct trace_reader *reader = NULL;
	struct report *r = NULL;
	int c = column_of(column ? column : "resident"), err;

	if (c < 0)
		return c;
	if (owner && owner_parse(owner, &mode))
		return fail(-EINVAL, "no owner '%s': auto, alloc or fault", owner);
	err = trace_reader_open_fd(m->fd, &reader);
	if (!err)
		err = join_trace(reader, mode, &r);
	if (err)
		return fail(err, "%s: %s", m->path, trace_strerror(err));
	err = join_group(r, group ? group : "stack");
	if (err) {
		join_free(&r);
		if (err != -EINVAL)
			return fail(err, "%s: %s", m->path, trace_strerror(err));
		return fail(err, "no group '%s': stack, function, mapping, file or process", group);
	}
	join_sort(r, c);
	*ret = (struct memprov_report *)r;
	return 0;
}

void memprov_report_free(struct memprov_report **r)
{
	join_free((struct report **)r);
}

uint64_t memprov_lost(const struct memprov_report *r)
{
	return report_of(r)->lost;
}

int memprov_complete(const struct memprov_report *r)
{
	return report_complete(report_of(r));
}

/* ---- costs ---- */

static int value(const struct cost *c, struct memprov_value *ret)
{
	if (!c->known)
		return 0;
	ret->value = cost_value(c);
	ret->exact = c->exact;
	ret->inferred = c->inferred;
	ret->sampled = c->sampled;
	ret->lo = cost_lo(c);
	ret->hi = cost_hi(c);
	return 1;
}

int memprov_cost(const struct memprov_row *row, const char *column, struct memprov_value *ret)
{
	int c = column_of(column);

	return c < 0 ? c : value(&row_of(row)->cost[c], ret);
}

int memprov_total(const struct memprov_report *r, const char *column, struct memprov_value *ret)
{
	int c = column_of(column);

	return c < 0 ? c : value(&report_of(r)->total[c], ret);
}

int memprov_class(const struct memprov_report *r, const char *name, struct memprov_value *ret)
{
	int c;

	for (c = 0; c < CLASS_MAX; c++)
		if (!strcmp(name, mem_class_names[c]))
			return value(&report_of(r)->classes[c], ret);
	return fail(-ENOENT, "no class '%s'", name);
}

int memprov_check(const struct memprov_report *r, const char *column, struct memprov_check *ret)
{
	int c = column_of(column);
	const struct check *check;

	if (c < 0)
		return c;
	check = &report_of(r)->check[c];
	if (!check->judged)
		return 0;
	ret->kernel = check->kernel;
	ret->kernel_before = check->kernel_before;
	ret->attributed = check->attributed;
	ret->unattributed = check->unattributed;
	ret->residual = check->residual;
	ret->status = check_status_names[check->status];
	ret->reason = check->reason ? check->reason : "";
	return 1;
}

const char *memprov_column(unsigned int i)
{
	return i < COST_MAX ? cost_columns[i].name : NULL;
}

const char *memprov_column_unit(const char *column)
{
	int c = column_of(column);

	return c < 0 ? NULL : cost_columns[c].unit;
}

const char *memprov_column_doc(const char *column)
{
	int c = column_of(column);

	return c < 0 ? NULL : cost_columns[c].doc;
}

/* ---- rows ---- */

const struct memprov_row *memprov_next(const struct memprov_report *r,
				       const struct memprov_row *row)
{
	const struct report *all = report_of(r);
	const struct row *next = row ? row_of(row) + 1 : all->rows;

	return next < all->rows + all->nr_rows ? (const struct memprov_row *)next : NULL;
}

const char *memprov_row_id(const struct memprov_row *row)
{
	return row_of(row)->id;
}

const char *memprov_row_kind(const struct memprov_row *row)
{
	return origin_kind_names[row_of(row)->kind];
}

const char *memprov_row_name(const struct memprov_row *row)
{
	return row_of(row)->name;
}

const char *memprov_row_evidence(const struct memprov_row *row)
{
	return row_of(row)->evidence;
}

const char *memprov_row_comm(const struct memprov_row *row)
{
	return row_of(row)->comm;
}

uint32_t memprov_row_pid(const struct memprov_row *row)
{
	return row_of(row)->pid;
}

const struct memprov_frame *memprov_row_frame(const struct memprov_row *row, unsigned int i)
{
	return i < row_of(row)->nr_frames ? (const struct memprov_frame *)&row_of(row)->frames[i]
					  : NULL;
}

const char *memprov_frame_function(const struct memprov_frame *frame)
{
	return frame_of(frame)->function;
}

const char *memprov_frame_module(const struct memprov_frame *frame)
{
	return frame_of(frame)->module;
}

const char *memprov_frame_build_id(const struct memprov_frame *frame)
{
	return frame_of(frame)->build_id;
}

const char *memprov_frame_file(const struct memprov_frame *frame)
{
	return frame_of(frame)->file;
}

unsigned int memprov_frame_line(const struct memprov_frame *frame)
{
	return frame_of(frame)->line;
}

uint64_t memprov_frame_address(const struct memprov_frame *frame)
{
	return frame_of(frame)->addr;
}

uint64_t memprov_frame_offset(const struct memprov_frame *frame)
{
	return frame_of(frame)->offset;
}

int memprov_frame_inlined(const struct memprov_frame *frame)
{
	return frame_of(frame)->inlined;
}
