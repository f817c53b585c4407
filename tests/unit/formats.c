/* SPDX-License-Identifier: GPL-2.0-only
 * Formats over rows made by hand: names that would end a field, a line, a script or a string, and
 * reports with nothing in them. */
#define _GNU_SOURCE
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include "lib/join/diff.h"
#include "lib/out/out.h"

#define EVIL "a,\"b\"|`</script><!--;\n\xff"
#define TERMINAL                                                                              \
	"\x1b[31m\x1b]0;t\x07\r\x9b\x7f\xc2\x9b\xe2\x80\xae\xe2\x80\xa8\xed\xa0\x80\xc0\x8a " \
	"\xc3\xa9;\n"

static int failed;
static int columns[] = {COST_RESIDENT, COST_FAULTS, -1};
static const struct out_opts opts = {.column = COST_RESIDENT, .columns = columns, .group = "stack"};

static void report(const char *name, int ok)
{
	printf("%s %s\n", ok ? "ok" : "FAIL", name);
	failed |= !ok;
}

static struct frame frames[] = {
	{.addr = 0x10, .offset = 0x10, .function = EVIL, .module = "/m", .inlined = 1, .line = 3},
	{.addr = 0x10, .offset = 0x10, .function = "f<int>", .module = "/m", .build_id = "ab12"},
	{.addr = 0x20, .offset = 0x20},
};

static struct row rows[] = {
	{.kind = ORIGIN_MMAP, .pid = 7, .comm = EVIL, .frames = frames, .nr_frames = 3, .id = "1"},
	{.kind = ORIGIN_FILE, .pid = 7, .comm = "x", .name = EVIL, .id = "2"},
	{.kind = ORIGIN_MEMCG, .name = "slab", .id = "3"},
};

static struct report full(void)
{
	rows[0].cost[COST_RESIDENT] =
		(struct cost){.exact = 4096, .inferred = 8192, .hi = 20480, .known = 1};
	rows[0].cost[COST_FAULTS] = (struct cost){.inferred = 3, .hi = 3, .known = 1};
	rows[1].cost[COST_RESIDENT] = (struct cost){.exact = 100, .hi = 100, .known = 1};
	return (struct report){.rows = rows, .nr_rows = 3, .has_walk = 1};
}

/* What a format prints; *ret_len with the 0 behind it not counted. */
static char *printed(const char *format, const struct report *r, size_t *ret_len, int want)
{
	char *text = NULL;
	FILE *f = open_memstream(&text, ret_len);
	int err = out_format_find(format)->print(f, r, &opts);

	if (fclose(f))
		abort();
	if (err != want) {
		printf("FAIL %s returns %d, not %d\n", format, err, want);
		failed = 1;
	}
	return text;
}

static int count(const char *text, const char *what)
{
	int n = 0;

	for (; (text = strstr(text, what)); text += strlen(what))
		n++;
	return n;
}

static void text_formats(const struct report *r)
{
	size_t len;
	char *text = printed("csv", r, &len, 0);

	report("csv",
	       !strcmp(text, "id,kind,name,process,pid,stack,resident,resident grade,faults,faults "
			     "grade\n"
			     "1,mmap,,\"a,\"\"b\"\"|`</script><!--;??\",7,"
			     "\"[unknown];f<int>;a,\"\"b\"\"|`</script><!--:??\",12288,inferred,3,"
			     "inferred\n"
			     "2,file,\"a,\"\"b\"\"|`</script><!--;??\",x,7,,100,exact,,\n"
			     "3,memcg,slab,,,,,,,\n"));
	free(text);
	text = printed("folded", r, &len, 0);
	report("folded_has_a_line_for_each_row",
	       count(text, "\n") == 2 && strstr(text, ";[unknown];f<int>;") &&
		       strstr(text, " 12288\n") && strstr(text, ";[file];") &&
		       strstr(text, " 100\n"));
	free(text);
}

static json_t *data_of(const char *page)
{
	const char *begin = strstr(page, "id=\"data\">"), *end = strstr(page, "</script>");

	begin = begin ? begin + strlen("id=\"data\">") : NULL;
	return begin && end > begin ? json_loadb(begin, (size_t)(end - begin), 0, NULL) : NULL;
}

static void json_formats(const struct report *r)
{
	size_t len;
	char *text = printed("html", r, &len, 0);
	json_t *j = data_of(text), *row = json_array_get(json_object_get(j, "rows"), 0);

	report("html_is_one_page_whatever_the_names", j && count(text, "</script>") == 2);
	report("html_rows", json_array_size(json_object_get(j, "rows")) == 3 &&
				    json_array_size(json_array_get(row, 2)) == 4);
	json_decref(j);
	free(text);
	text = printed("speedscope", r, &len, 0);
	j = json_loads(text, 0, NULL);
	row = json_array_get(json_object_get(j, "profiles"), 0);
	report("speedscope", json_array_size(json_object_get(j, "profiles")) == 2 &&
				     json_integer_value(json_object_get(row, "endValue")) == 12388);
	json_decref(j);
	free(text);
}

static void pprof(const struct report *r)
{
	char out[65536];
	size_t len;
	char *zip = printed("pprof", r, &len, 0);
	z_stream z = {.next_in = (Bytef *)zip, .avail_in = (uInt)len, .next_out = (Bytef *)out};
	int ok;

	z.avail_out = sizeof(out);
	ok = inflateInit2(&z, 15 + 16) == Z_OK && inflate(&z, Z_FINISH) == Z_STREAM_END;
	len = sizeof(out) - z.avail_out;
	inflateEnd(&z);
	report("pprof_is_gzip", ok);
	report("pprof_has_utf8_only", !memchr(out, 0xff, len) || memmem(out, len, "<!--;??", 7));
	report("pprof_names", memmem(out, len, "f<int>", 6) && memmem(out, len, "ab12", 4) &&
				      memmem(out, len, "[memcg]", 7) == NULL);
	report("pprof_says_what_is_unknown", memmem(out, len, "unknown", 7) != NULL);
	free(zip);
}

/* Every text that names of a target get into, one after the other. */
static char *all_text(const char *name)
{
	struct frame fr[] = {
		{.function = name, .module = name, .file = name, .line = 3},
		{.module = name, .offset = 0x20},
		{.function = "libc_start", .module = "/lib/libc.so.6"},
	};
	struct row two[] = {
		{.kind = ORIGIN_MMAP, .pid = 7, .comm = name, .frames = fr, .nr_frames = 3},
		{.kind = ORIGIN_FILE, .pid = 8, .comm = name, .name = name},
	};
	struct report r = full(), base;
	struct diff *d = NULL;
	struct out_opts o = opts;
	char *text = NULL;
	size_t len, i;
	FILE *f = open_memstream(&text, &len);

	for (i = 0; i < 2; i++) {
		memcpy(two[i].cost, rows[i].cost, sizeof(two[i].cost));
		snprintf(two[i].id, sizeof(two[i].id), "%zu", i + 1);
	}
	r.rows = two;
	r.nr_rows = 2;
	r.kernel = r.host = name;
	r.marks = &(struct mark){.text = name};
	r.nr_marks = 1;
	r.hooks[0].provider = name;
	r.nr_hooks = 1;
	o.filter = "kind = mmap";
	for (i = 0; out_formats[i].name; i++)
		if (!out_formats[i].is_binary)
			out_formats[i].print(f, &r, &o);
	out_children(f, &r, &o);
	out_why(f, &r, "1", &o);
	out_why(f, &r, "2", &o);
	base = r;
	base.nr_rows = 1;
	if (diff_new(&base, &r, COST_RESIDENT, &d))
		abort();
	out_diff_table(f, d, 0);
	out_diff_json(f, d);
	out_diff_markdown(f, d, 0);
	out_diff_folded(f, d);
	diff_free(&d);
	if (fclose(f))
		abort();
	return text;
}

/* Names move no cursor, begin no line and end no field. */
static void hostile_names(void)
{
	char *plain = all_text("harmless"), *text = all_text(TERMINAL), *c;
	int moves = 0;
	json_t *j;

	for (c = text; *c; c++)
		moves += (*c != '\n' && *c != '\t' && (unsigned char)*c < 0x20) || *c == 0x7f;
	report("no_control_characters", !moves && !strstr(text, "\xc2\x9b"));
	report("nothing_that_turns_a_line",
	       !strstr(text, "\xe2\x80\xae") && !strstr(text, "\xe2\x80\xa8"));
	report("as_many_lines_as_with_other_names", count(text, "\n") == count(plain, "\n"));
	j = json_string(text); /* NULL for what is no UTF-8 */
	report("all_is_utf8", j && count(text, "\xc3\xa9") > 10);
	json_decref(j);
	free(plain);
	free(text);
}

static void nothing(void)
{
	struct report r = {0};
	size_t len, i;
	char *text;

	for (i = 0; out_formats[i].name; i++) {
		const char *name = out_formats[i].name;
		int none = !strcmp(name, "pprof") || !strcmp(name, "speedscope");

		text = printed(name, &r, &len, none ? -ENODATA : 0);
		report(name, !none || !len);
		free(text);
	}
}

static void markdown(void)
{
	struct report base = full(), next = full();
	struct diff *d = NULL;
	char *text = NULL;
	size_t len;
	FILE *f;

	base.nr_rows = 1;
	next.rows = rows + 1;
	next.nr_rows = 1;
	if (diff_new(&base, &next, COST_RESIDENT, &d))
		abort();
	f = open_memstream(&text, &len);
	report("markdown", !out_diff_markdown(f, d, 0) && !fclose(f));
	/* The bars of the cells alone, and no line is broken. */
	report("markdown_cells",
	       strstr(text, "| gone") && strstr(text, "| new | `[a,\"b\"\\|'</"
						      "script><!--;??]  (file)` |\n"));
	free(text);
	diff_free(&d);
}

int main(void)
{
	struct report r = full();

	text_formats(&r);
	json_formats(&r);
	pprof(&r);
	nothing();
	markdown();
	hostile_names();
	return failed;
}
