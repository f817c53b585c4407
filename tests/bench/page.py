#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""page.py PAGE OUT: the page with a reader at work in it, who writes down what was seen and how long it took."""
import sys

SCRIPT = """<pre id="work"></pre><script>
"use strict";
window.addEventListener("load", () => {
  const by = id => document.getElementById(id), work = {}, times = {};
  document.body.getBoundingClientRect();
  times.laid_out_ms = performance.now(); /* since it was opened: all is there to be painted */
  const timed = (name, act) => {
    const began = performance.now();
    act();
    document.body.getBoundingClientRect();
    times[name] = performance.now() - began;
  };
  work.first = by("status").textContent;
  timed("search_ms", () => { by("search").value = "NEEDLE_12345"; by("search").oninput() });
  work.found = by("status").textContent;
  work.rows = by("rows").rows.length;
  timed("search_many_ms", () => { by("search").value = "program_1"; by("search").oninput() });
  timed("owner_ms", () => { by("search").value = ""; by("owner").value = 1; by("owner").onchange({ target: by("owner") }) });
  work.owner = by("status").textContent;
  timed("column_ms", () => { by("column").value = 1; by("column").onchange({ target: by("column") }) });
  work.column = by("status").textContent;
  work.times = times;
  by("work").textContent = JSON.stringify(work);
});
</script>
"""

page = open(sys.argv[1], encoding="utf-8").read()
at = page.rindex("</body>")
open(sys.argv[2], "w", encoding="utf-8").write(page[:at] + SCRIPT + page[at:])
