/* SPDX-License-Identifier: GPL-2.0-only
 * The contract screen and the rows below it. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include "lib/out/out.h"
#include "lib/text/text.h"

#define MARKS_SHOWN    8
#define LINE_MAX_CHARS 99

static void human(char *buf, size_t len, s64 v, const char *unit, int bytes, int sign)
{
	static const char *const suffix[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	const char *plus = sign && v > 0 ? "+" : "";
	double d = (double)v;
	int i = 0;

	if (!strcmp(unit, "ns")) {
		snprintf(buf, len, "%.3g ms", d / 1e6);
		return;
	}
	if (bytes || strcmp(unit, "B")) {
		snprintf(buf, len, "%s%lld", plus, (long long)v);
		return;
	}
	while ((d >= 1024 || d <= -1024) && i < 4) {
		d /= 1024;
		i++;
	}
	snprintf(buf, len, i ? "%s%.2f %s" : "%s%.0f %s", plus, d, suffix[i]);
}

static char *next_buf(void)
{
	static char buf[16][32]; /* a line prints eleven */
	static int turn;

	return buf[turn++ & 15];
}

const char *out_amount(const struct out_opts *o, s64 v)
{
	char *b = next_buf();

	human(b, 32, v, "B", o->bytes, 0);
	return b;
}

const char *out_number(const struct out_opts *o, int column, s64 v)
{
	char *b = next_buf();

	human(b, 32, v, cost_columns[column].unit, o->bytes, column == COST_GROWN);
	return b;
}

/* Of what everything hangs on; the others are in JSON. */
static void provider_line(FILE *f, const struct report *r)
{
	size_t i;
	int n = 0;

	for (i = 0; i < r->nr_hooks; i++)
		if (r->hooks[i].provider && !join_is_life(r->hooks[i].capability)) {
			fputs(n++ ? " + " : "", f);
			text_put(f, r->hooks[i].provider);
		}
}

static void marks(FILE *f, const struct report *r)
{
	size_t i;

	for (i = 0; i < r->nr_marks && i < MARKS_SHOWN; i++) {
		fprintf(f, "  mark at %.3f s: ", (double)r->marks[i].time_ns / 1e9);
		text_put(f, r->marks[i].text);
		fputc('\n', f);
	}
	if (i < r->nr_marks)
		fprintf(f, "  ... %zu more marks; --format json has all\n", r->nr_marks - i);
}

/* Terms of a sum, as many on a line as fit. What has no evidence is no term: freed and slack are
 * then inside live. */
static void classes(FILE *f, const struct report *r, const struct out_opts *o)
{
	static const char *const words[CLASS_MAX] = {
		[CLASS_PREEXISTING] = "before recording",
		[CLASS_FILE] = "files",
		[CLASS_STACK] = "stacks",
	};
	const char *sep = "=";
	char term[64];
	int c, at;

	at = fprintf(f, "  Rss %s", out_amount(o, cost_value(&r->total[COST_RESIDENT])));
	for (c = 0; c < CLASS_MAX; c++) {
		int n;

		if (!r->classes[c].known)
			continue;
		n = snprintf(term, sizeof(term), " %s %s %s", sep,
			     words[c] ? words[c] : mem_class_names[c],
			     out_amount(o, cost_value(&r->classes[c])));
		if (at + n > (o->width ? o->width : LINE_MAX_CHARS)) {
			fputs("\n     ", f);
			at = 5;
		}
		fputs(term, f);
		at += n;
		sep = "+";
	}
	fputc('\n', f);
}

static void law(FILE *f, const struct report *r, const struct out_opts *o)
{
	const struct check *c = &r->check[COST_RESIDENT];

	if (!c->judged) {
		fprintf(f, "  not compared with the kernel: %s\n",
			c->reason ? c->reason : "no figure");
		return;
	}
	fputs("  kernel ", f);
	if (c->kernel_before != c->kernel)
		fprintf(f, "%s to ", out_amount(o, (s64)c->kernel_before));
	fprintf(f, "%s%s, residual %s%s\n", out_amount(o, (s64)c->kernel),
		c->kernel_before != c->kernel ? " while it was walked" : "",
		out_amount(o, c->residual),
		c->status == CHECK_DRIFT ? ", drift: it ran on"
		: c->residual && c->lag	 ? ": its counters may be behind"
					 : "");
}

/* Those of the first three that ended. */
static void ends(FILE *f, const struct report *r)
{
	size_t i;

	for (i = 0; i < r->nr_targets && i < 3; i++) {
		int status = (int)r->targets[i].status - 1, sig = WTERMSIG(status);

		if (status < 0)
			continue;
		fputs("  ", f);
		text_put(f, r->targets[i].comm);
		fprintf(f, " (%u) ", r->targets[i].pid);
		if (WIFSIGNALED(status) && sigabbrev_np(sig))
			fprintf(f, "was killed by SIG%s", sigabbrev_np(sig));
		else if (WIFSIGNALED(status))
			fprintf(f, "was killed by signal %d", sig);
		else
			fprintf(f, "exited with status %d", WEXITSTATUS(status));
		fputc('\n', f);
	}
}

void out_targets(FILE *f, const struct report *r, int with_date)
{
	u64 end = (r->start_realtime + r->duration_ns) / 1000000000ull;
	time_t at = (time_t)end;
	char clock[32] = "?";
	const char *when = clock;
	struct tm tm;
	size_t i;

	if (gmtime_r(&at, &tm))
		strftime(clock, sizeof(clock), "%Y-%m-%d %H:%M:%S", &tm);
	if (!with_date && strchr(clock, ' '))
		when = strchr(clock, ' ') + 1;
	for (i = 0; i < r->nr_targets && i < 3; i++) {
		fputs(i ? ", " : "", f);
		text_put(f, r->targets[i].comm);
		fprintf(f, " (%u)", r->targets[i].pid);
	}
	if (r->nr_targets > 3)
		fprintf(f, " and %zu more", r->nr_targets - 3);
	fprintf(f, ", %.1f s to %s UTC, lost %llu events", (double)r->duration_ns / 1e9, when,
		(unsigned long long)r->lost);
}

static void targets(FILE *f, const struct report *r)
{
	if (!r->nr_targets)
		fputs("no process", f);
	out_targets(f, r, 0);
	fputc('\n', f);
	fputs("  Linux ", f);
	text_put(f, r->kernel);
	fputs(", providers ", f);
	provider_line(f, r);
	fputc('\n', f);
	ends(f, r);
}

/* Of a recording that goes on. */
static void live(FILE *f, const struct report *r, const struct out_opts *o)
{
	if (r->live.window_ns)
		fprintf(f,
			"  in %.1f s up to the picture: grown %s; all other flows count from the "
			"start\n",
			(double)r->live.window_ns / 1e9, out_amount(o, r->live.grown));
	if (r->live.age_ns)
		fprintf(f, "  the picture is %.1f s old; ", (double)r->live.age_ns / 1e9);
	else if (r->live.cpu_ns)
		fputs("  ", f);
	if (r->live.cpu_ns)
		fprintf(f, "in the last %.1f s memprov used %.1f%% of a core\n",
			(double)r->live.cpu_ns / 1e9, r->live.cpu * 100);
}

static void losses(FILE *f, const struct report *r)
{
	int i;

	for (i = 0; i < MP_LOSS_MAX; i++)
		if (r->losses[i].count)
			fprintf(f, "  lost: %s %llu\n", r->losses[i].name,
				(unsigned long long)r->losses[i].count);
	if (r->stacks_cut || r->stacks_deep)
		fprintf(f, "  stacks: of %llu rows %llu are cut short, %llu too deep\n",
			(unsigned long long)r->stacks, (unsigned long long)r->stacks_cut,
			(unsigned long long)r->stacks_deep);
	if (r->lost)
		fputs("  what lost events concern is marked ?, nothing else\n", f);
}

static void growth(FILE *f, const struct report *r, const struct out_opts *o)
{
	if (r->no_growth)
		fprintf(f, "  grown - (%s)", r->no_growth);
	else
		fprintf(f, "  grown %s in %.1f s", out_amount(o, cost_value(&r->total[COST_GROWN])),
			(double)r->duration_ns / 1e9);
	if (!r->live.on && r->picture_age_ns > (r->at_ns		  ? 0
						: r->end == MP_END_TARGET ? 50000000ull
									  : 2000000000ull))
		fprintf(f, "; pages are as of %.1f s before %s", (double)r->picture_age_ns / 1e9,
			r->at_ns ? "that" : "the end");
	fputc('\n', f);
}

/* Sums of the lines above are of everything. */
static void choice(FILE *f, const struct report *r, const struct out_opts *o)
{
	struct cost sum = {0};
	size_t i;

	for (i = 0; i < r->nr_rows; i++)
		if (r->rows[i].cost[o->column].known)
			sum.exact += cost_value(&r->rows[i].cost[o->column]);
	if (o->filter)
		fprintf(f, "  only rows with %s", o->filter);
	if (o->evidence)
		fprintf(f, "%s parts that are %s%s", o->filter ? ", of them" : "  only",
			o->evidence, strcmp(o->evidence, "exact") ? " or better" : "");
	if ((o->filter || o->evidence) && !strcmp(cost_columns[o->column].unit, "B"))
		fprintf(f, ": %s %s of %s", cost_columns[o->column].name, out_amount(o, sum.exact),
			out_amount(o, cost_value(&r->total[o->column])));
	if (o->filter || o->evidence)
		fputc('\n', f);
}

/* What one recording says of itself. */
static void header(FILE *f, const struct report *r, const struct out_opts *o)
{
	out_cause(f, r, o);
	targets(f, r);
	if (r->at_ns)
		fprintf(f, "  as of %.3f s after the start: what came later is not in it\n",
			(double)r->at_ns / 1e9);
	if (r->end < 0 && !r->live.on)
		fputs("  the recording did not end in order: later events, names and losses are "
		      "missing\n",
		      f);
	if (r->end == MP_END_SIZE)
		fputs("  stopped at --max-size: what came later is missing\n", f);
	marks(f, r);
	if (!r->has_walk) {
		fprintf(f, "  no picture %s: stocks are unknown\n",
			r->at_ns ? "up to then" : "in the file");
		return;
	}
	classes(f, r, o);
	law(f, r, o);
	growth(f, r, o);
	out_access(f, r, o);
	out_samples(f, r);
	if (r->memcg)
		out_cgroup(f, r, o);
	live(f, r, o);
	losses(f, r);
	if (r->truncated)
		fputs("  the file ends inside a block: the recorder was killed; all before it is "
		      "whole\n",
		      f);
}

/* Of several recordings each, under its host. */
static void headers(FILE *f, const struct report *r, const struct out_opts *o)
{
	size_t i;

	if (!r->nr_parts)
		header(f, r, o);
	for (i = 0; i < r->nr_parts; i++) {
		text_put(f, r->parts[i]->label);
		fputs(": ", f);
		header(f, r->parts[i], o);
	}
	choice(f, r, o);
}

char *out_contract(const struct report *r, const struct out_opts *o)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return NULL;
	headers(f, r, o);
	if (!fclose(f))
		return text;
	free(text);
	return NULL;
}

static char grade_of(const struct cost *c)
{
	return c->sampled ? '~' : cost_is_open(c) ? '?' : ' ';
}

/* Do two rows read the same? */
static int is_twin(const struct row *a, const struct row *b)
{
	u32 x = row_program_frames(a), y = row_program_frames(b), i;
	char one[FRAME_LABEL], other[FRAME_LABEL];

	if (a == b || a->name || b->name || a->kind != b->kind || a->pid != b->pid)
		return 0;
	for (i = 0; i < OUT_FRAMES && x + i < a->nr_frames && y + i < b->nr_frames; i++)
		if (strcmp(frame_label(&a->frames[x + i], one, sizeof(one)),
			   frame_label(&b->frames[y + i], other, sizeof(other))))
			return 0;
	return i == OUT_FRAMES || a->nr_frames - x == b->nr_frames - y;
}

/* Looks at the rows around it only: rows that read the same cost about the same, or are told apart
 * by that. */
static int has_twin(const struct report *r, size_t at)
{
	size_t i = at > 100 ? at - 100 : 0, end = at + 100 < r->nr_rows ? at + 100 : r->nr_rows;

	for (; i < end; i++)
		if (is_twin(&r->rows[at], &r->rows[i]))
			return 1;
	return 0;
}

static void owner(FILE *f, const struct row *row, int lines)
{
	if (row->kind != ORIGIN_PROCESS) {
		out_owner(f, row, lines);
		return;
	}
	if (row->host) {
		text_put(f, row->host);
		fputc(' ', f);
	}
	text_put(f, row->comm);
	fprintf(f, " (%u)\n", row->pid);
}

static int is_zero(const struct row *row, const int *columns)
{
	for (; *columns >= 0; columns++)
		if (cost_value(&row->cost[*columns]))
			return 0;
	return 1;
}

static void process_cell(FILE *f, const struct row *row)
{
	char who[48] = "-", comm[32];

	if (row->host) {
		text_put(f, row->host);
		fputc(' ', f);
	}
	if (row->several)
		snprintf(who, sizeof(who), "several");
	else if (row->pid)
		snprintf(who, sizeof(who), "%s (%u)", text_copy(comm, sizeof(comm), row->comm),
			 row->pid);
	fprintf(f, " %-23s", who);
}

int out_table(FILE *f, const struct report *r, const struct out_opts *o)
{
	size_t i, shown = 0, more = 0, zero = 0;
	int many = join_is_many(r) && strcmp(o->group, "process"), bounded = 0;
	const int *c;
	char buf[32];

	headers(f, r, o);
	for (c = o->columns; *c >= 0; c++)
		fprintf(f, "%13s ", cost_columns[*c].header);
	if (many)
		fprintf(f, " %-23s", "PROCESS");
	fputs(" OWNER\n", f);
	for (i = 0; i < r->nr_rows; i++) {
		const struct row *row = &r->rows[i];

		if (is_zero(row, o->columns)) {
			zero++;
			continue;
		}
		if (o->rows && shown == o->rows) {
			more++;
			continue;
		}
		shown++;
		for (c = o->columns; *c >= 0; c++) {
			if (!row->cost[*c].known) {
				fprintf(f, "%13s ", "-");
				continue;
			}
			human(buf, sizeof(buf), cost_value(&row->cost[*c]), cost_columns[*c].unit,
			      o->bytes, *c == COST_GROWN);
			fprintf(f, "%12s%c ", buf, grade_of(&row->cost[*c]));
		}
		if (many)
			process_cell(f, row);
		fputc(' ', f);
		owner(f, row, has_twin(r, i));
	}
	if (more)
		fprintf(f, "  ... %zu more rows; --rows 0 shows all\n", more);
	if (zero)
		fprintf(f, "  %zu rows have nothing in these columns\n", zero);
	for (c = o->columns; *c >= 0; c++)
		if ((*c == COST_TOUCHED && cost_hi(&r->total[*c]) > cost_value(&r->total[*c])) ||
		    *c == COST_STALL)
			fprintf(f, "%s%s", bounded++ ? " and " : "  ", cost_columns[*c].name);
	if (bounded)
		fprintf(f, " %s\n", bounded > 1 ? "are lower bounds" : "is a lower bound");
	fputs("  ? inferred, ~ sampled, - no evidence; no mark: exact\n", f);
	return 0;
}
