#!/usr/bin/env bash
# If this fails, some model architecture computes something else through a tandem than on the member that computes.
# usage: architectures_test.sh BIN-FOLDER
set -euo pipefail
bin=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# the tandem of two CPUs is a device of its own beside the plain CPU, which is the reference
LD_PRELOAD=$bin/libggml-tandem.so ONEBIT_TANDEM=owner=CPU,prefill=guest:CPU,decode=guest:CPU OMP_NUM_THREADS=1 \
    "$bin/test-llama-archs" -s 7 >"$work/out" 2>&1 || { tail -40 "$work/out" >&2; exit 1; }
grep 'tandem of CPU' "$work/out" >"$work/rows" || { echo "no row of the tandem" >&2; tail -20 "$work/out" >&2; exit 1; }
tested=$(grep -c 'OK' "$work/rows" || true)
echo "$tested architectures and configurations through the tandem"
[ "$tested" -ge 100 ] || { echo "expected at least 100" >&2; exit 1; }
# bitwise: the error against the CPU alone is zero, not small
if grep 'OK' "$work/rows" | sed 's/\x1b\[[0-9;]*m//g' | awk -F'|' '{ split($5, cell, " "); if (cell[1] + 0 != 0) print }' | grep .; then
    echo "rows above differ from the CPU" >&2
    exit 1
fi
