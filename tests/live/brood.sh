#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# After 5,000 short lives there is still room for a child: what it maps is its own.
set -euo pipefail
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/lib.sh"

need_bpf
start_work brood
start_record --tree
go
stop_record
check
python3 - "$report" <<'END' || fail "something was lost"
import json, sys
loss = json.load(open(sys.argv[1]))["recording"]["loss"]
assert not loss["total"] and not loss["causes"], loss
print("ok    nothing lost")
END
stop_work
