#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Whatever is lost, of the rings or with the recorder, nothing wrong is called exact.
# usage: loss.sh BUILDDIR [SEED]
set -euo pipefail
cd "$(dirname "$0")/../.."
build=$1
seed=${2:-commit}
echo "seed $seed"
some=()
for name in remap_move fork_tree vfork threads service; do
	some+=(--scenario "$name")
done
for loss in "--loss 1" "--loss 10 --burst 64" "--loss 50" "--kill 2"; do
	echo "== $loss"
	# shellcheck disable=SC2086
	scripts/truth --build "$build" --seed "$seed" $loss "${some[@]}"
done
echo "== random programs, --loss 10"
scripts/truth --build "$build" --seed "$seed" --loss 10 --random 6
