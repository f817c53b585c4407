/* SPDX-License-Identifier: GPL-2.0-only
 * One pass parses the expression into a tree; rows are tried against it. */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <regex.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "lib/join/diff.h"
#include "lib/join/filter.h"

#define DEPTH_MAX 64

enum field {
	F_KIND,
	F_NAME,
	F_PROCESS,
	F_PID,
	F_ID,
	F_FUNCTION,
	F_FILE,
	F_HOST,
	F_RESOURCE,
	F_MAX
};

static const char *const fields[F_MAX] = {"kind",     "name", "process", "pid",	    "id",
					  "function", "file", "host",	 "resource"};

/* The longer ones first. */
enum op { OP_NE, OP_NOT_LIKE, OP_LE, OP_GE, OP_LT, OP_GT, OP_EQ, OP_LIKE, OP_MAX };

static const char *const ops[OP_MAX] = {"!=", "!~", "<=", ">=", "<", ">", "=", "~"};

enum node_kind { NODE_TEST, NODE_NOT, NODE_AND, NODE_OR };

struct filter {
	enum node_kind kind;
	struct filter *a, *b; /* of and, or; of not only a */
	int field, column; /* one is -1 */
	enum op op;
	char *text;
	regex_t regex;
	int has_regex;
	double number;
};

struct parser {
	const char *at;
	char *msg;
	size_t msg_len;
	int depth, err;
};

static struct filter *parse_or(struct parser *p);

static struct filter *wrong(struct parser *p, const char *fmt, ...)
{
	va_list ap;

	if (!p->err) {
		va_start(ap, fmt);
		vsnprintf(p->msg, p->msg_len, fmt, ap);
		va_end(ap);
		p->err = -EINVAL;
	}
	return NULL;
}

static struct filter *node(struct parser *p, enum node_kind kind, struct filter *a,
			   struct filter *b)
{
	struct filter *f = p->err ? NULL : calloc(1, sizeof(*f));

	if (!f) {
		p->err = p->err ? p->err : -ENOMEM;
		filter_free(&a);
		filter_free(&b);
		return NULL;
	}
	*f = (struct filter){.kind = kind, .a = a, .b = b, .field = -1, .column = -1};
	return f;
}

static void skip(struct parser *p)
{
	p->at += strspn(p->at, " \t\n");
}

/* Takes the word when it is next, and stands alone. */
static int word(struct parser *p, const char *w)
{
	size_t n = strlen(w);

	skip(p);
	if (strncasecmp(p->at, w, n) || isalnum((unsigned char)p->at[n]))
		return 0;
	p->at += n;
	return 1;
}

/* ---- tests ---- */

/* What is compared with: up to a space or a closing bracket, or quoted. */
static char *operand(struct parser *p)
{
	char quote, *text;
	size_t n;

	skip(p);
	quote = *p->at == '\'' || *p->at == '"' ? *p->at : 0;
	if (quote) {
		const char *end = strchr(p->at + 1, quote);

		if (!end) {
			wrong(p, "a %c is not closed", quote);
			return NULL;
		}
		n = (size_t)(end - p->at - 1);
		text = strndup(p->at + 1, n);
		p->at = end + 1;
	} else {
		n = strcspn(p->at, " \t\n)");
		text = strndup(p->at, n);
		p->at += n;
		if (!n)
			wrong(p, "a value is missing behind the comparison");
	}
	if (!text)
		p->err = -ENOMEM;
	return text;
}

static void look_up(struct parser *p, struct filter *f, const char *name)
{
	const char *near = "resident";
	int i;

	for (i = 0; i < F_MAX; i++)
		if (!strcasecmp(name, fields[i]))
			f->field = i;
	if (f->field < 0)
		f->column = cost_find(name, &near);
	if (f->field < 0 && f->column < 0)
		wrong(p,
		      "'%s' is neither a column (the nearest is %s) nor kind, name, process, "
		      "pid, id, function, file or resource",
		      name, near);
}

static void compile(struct parser *p, struct filter *f)
{
	char why[96], *end;
	double factor;
	int err;

	if (f->column >= 0) {
		if (f->op == OP_LIKE || f->op == OP_NOT_LIKE)
			wrong(p, "%s is a number: compare it by < <= > >= = or !=",
			      cost_columns[f->column].name);
		f->number = strtod(f->text, &end);
		factor = unit_factor(end, cost_columns[f->column].unit);
		if (end == f->text || !isdigit((unsigned char)end[-1]) || factor <= 0)
			wrong(p, "'%s' is no amount of %s", f->text, cost_columns[f->column].name);
		f->number *= factor;
	} else if (f->op == OP_LIKE || f->op == OP_NOT_LIKE) {
		err = regcomp(&f->regex, f->text, REG_EXTENDED | REG_NOSUB);
		f->has_regex = !err;
		if (err) {
			regerror(err, &f->regex, why, sizeof(why));
			wrong(p, "%s: %s", f->text, why);
		}
	} else if (f->op != OP_EQ && f->op != OP_NE) {
		wrong(p, "%s is text: compare it by = != ~ or !~", fields[f->field]);
	}
}

static struct filter *parse_test(struct parser *p)
{
	struct filter *f = node(p, NODE_TEST, NULL, NULL);
	char name[32];
	size_t n;
	int op;

	if (!f)
		return NULL;
	skip(p);
	n = strspn(p->at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-");
	snprintf(name, sizeof(name), "%.*s", (int)n, p->at);
	p->at += n;
	if (!n)
		wrong(p,
		      *p->at ? "a field or column is missing before '%.16s'"
			     : "it ends where a field or column is missing",
		      p->at);
	else
		look_up(p, f, name);
	skip(p);
	for (op = 0; op < OP_MAX && strncmp(p->at, ops[op], strlen(ops[op])); op++)
		;
	if (op == OP_MAX) {
		wrong(p, "behind %s a comparison is missing: = != ~ !~ < <= > >=", name);
	} else {
		f->op = (enum op)op;
		p->at += strlen(ops[op]);
	}
	if (!p->err)
		f->text = operand(p);
	if (!p->err)
		compile(p, f);
	if (p->err)
		filter_free(&f);
	return f;
}

static struct filter *parse_not(struct parser *p)
{
	struct filter *f;

	if (++p->depth > DEPTH_MAX)
		return wrong(p, "more than %d levels of brackets", DEPTH_MAX);
	skip(p);
	if (word(p, "not")) {
		f = parse_not(p);
		f = f ? node(p, NODE_NOT, f, NULL) : NULL;
	} else if (*p->at == '(') {
		p->at++;
		f = parse_or(p);
		skip(p);
		if (*p->at == ')')
			p->at++;
		else
			wrong(p, "a ( is not closed");
		if (p->err)
			filter_free(&f);
	} else {
		f = parse_test(p);
	}
	p->depth--;
	return f;
}

static struct filter *parse_and(struct parser *p)
{
	struct filter *f = parse_not(p);

	while (f && (word(p, "and") || word(p, "&&")))
		f = node(p, NODE_AND, f, parse_not(p));
	return f;
}

static struct filter *parse_or(struct parser *p)
{
	struct filter *f = parse_and(p);

	while (f && (word(p, "or") || word(p, "||")))
		f = node(p, NODE_OR, f, parse_and(p));
	return f;
}

int filter_parse(const char *text, struct filter **ret_f, char *msg, size_t msg_len)
{
	struct parser p = {.at = text, .msg = msg, .msg_len = msg_len};
	struct filter *f = parse_or(&p);

	skip(&p);
	if (!p.err && *p.at)
		wrong(&p, "'%.16s' is too much: join tests by and, or", p.at);
	if (p.err)
		filter_free(&f);
	*ret_f = f;
	return p.err;
}

/* ---- rows ---- */

static int is(const struct filter *f, const char *s)
{
	return s && (f->has_regex ? !regexec(&f->regex, s, 0, NULL, 0) : !strcmp(s, f->text));
}

static int any_frame(const struct filter *f, const struct row *row)
{
	u32 i;

	for (i = 0; i < row->nr_frames; i++) {
		const struct frame *fr = &row->frames[i];

		if (f->field == F_FUNCTION ? is(f, fr->function)
					   : is(f, fr->module) || is(f, fr->file))
			return 1;
	}
	return 0;
}

static int has_text(const struct filter *f, const struct row *row)
{
	char pid[16];

	switch (f->field) {
	case F_KIND:
		return is(f, origin_kind_names[row->kind]);
	case F_NAME:
		return is(f, row->name ? row->name : row_function(row));
	case F_PROCESS:
		return is(f, row->comm);
	case F_PID:
		snprintf(pid, sizeof(pid), "%u", row->pid);
		return row->pid && is(f, pid);
	case F_HOST:
		return is(f, row->host);
	case F_ID:
		return is(f, row->id);
	case F_RESOURCE:
		return is(f, row->resource);
	case F_FILE:
		return (row->kind == ORIGIN_FILE && is(f, row->name)) || any_frame(f, row);
	default:
		return any_frame(f, row);
	}
}

static int compare(const struct filter *f, const struct cost *c)
{
	double v = (double)cost_value(c);

	if (!c->known)
		return 0;
	switch (f->op) {
	case OP_LT:
		return v < f->number;
	case OP_LE:
		return v <= f->number;
	case OP_GT:
		return v > f->number;
	case OP_GE:
		return v >= f->number;
	case OP_NE:
		return v != f->number;
	default:
		return v == f->number;
	}
}

int filter_match(const struct filter *f, const struct row *row)
{
	switch (f->kind) {
	case NODE_NOT:
		return !filter_match(f->a, row);
	case NODE_AND:
		return filter_match(f->a, row) && filter_match(f->b, row);
	case NODE_OR:
		return filter_match(f->a, row) || filter_match(f->b, row);
	default:
		break;
	}
	if (f->column >= 0)
		return compare(f, &row->cost[f->column]);
	return has_text(f, row) != (f->op == OP_NE || f->op == OP_NOT_LIKE);
}

static int asks_names(const struct filter *f)
{
	return f && (f->field == F_RESOURCE || f->column == COST_IDLE || asks_names(f->a) ||
		     asks_names(f->b));
}

void filter_report(const struct filter *f, struct report *r)
{
	size_t i, n = 0;

	if (asks_names(f))
		join_doubt_names(r);
	for (i = 0; i < r->nr_rows; i++) {
		if (filter_match(f, &r->rows[i]))
			r->rows[n++] = r->rows[i];
		else
			free(r->rows[i].frames);
	}
	r->nr_rows = n;
}

void filter_free(struct filter **f)
{
	if (!*f)
		return;
	filter_free(&(*f)->a);
	filter_free(&(*f)->b);
	if ((*f)->has_regex)
		regfree(&(*f)->regex);
	free((*f)->text);
	free(*f);
	*f = NULL;
}

/* ---- evidence ---- */

int evidence_parse(const char *text, enum evidence *ret)
{
	static const char *const names[] = {"sampled", "inferred", "exact"};
	unsigned int i;

	for (i = 0; i < 3; i++)
		if (!strcmp(text, names[i])) {
			*ret = (enum evidence)i;
			return 0;
		}
	return -EINVAL;
}

static void keep(struct cost *c, enum evidence weakest)
{
	int dropped = c->sampled != 0;

	if (!c->known || weakest == EVIDENCE_SAMPLED || !cost_is_open(c))
		return;
	c->sampled = 0;
	if (weakest == EVIDENCE_EXACT) {
		c->inferred = c->counted = 0;
		c->open = 0;
		c->known = c->exact != 0;
	} else {
		if (!dropped)
			return;
		c->known = cost_value(c) != 0;
	}
	c->hi = cost_value(c);
}

void evidence_keep(struct report *r, enum evidence weakest)
{
	size_t i;
	int c;

	for (i = 0; i < r->nr_rows; i++)
		for (c = 0; c < COST_MAX; c++)
			keep(&r->rows[i].cost[c], weakest);
}
