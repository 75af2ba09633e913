#!/usr/bin/env bash
# If this fails, llama.cpp's own programs cannot use a tandem, or use a ggml-vulkan that cannot share.
# usage: stock_programs_test.sh BIN-FOLDER MODEL
set -euo pipefail
bin=$1 model=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export GGML_VK_VISIBLE_DEVICES=0
if ! "$bin/llama-bench" --list-devices 2>/dev/null | grep -q Vulkan0; then
    echo "no Vulkan driver: skipped"
    exit 77
fi
fail() { echo "FAILED: $1" >&2; cat "$work"/*.log >&2; exit 1; }

plugin() { GGML_BACKEND_PATH=$bin/libggml-tandem.so ONEBIT_TANDEM=$1 "${@:2}"; }

plugin owner=Vulkan0,prefill=CPU,min=16 "$bin/llama-bench" -m "$model" -dev Tandem0 -p 32 -n 1 -r 1 -t 1 -o jsonl \
    >"$work/bench.jsonl" 2>"$work/bench.log" || fail "llama-bench as a dynamic backend"
[ "$(grep -c '"devices": "Tandem0"' "$work/bench.jsonl")" = 2 ] || fail "llama-bench gave $(cat "$work/bench.jsonl")"

LD_PRELOAD=$bin/libggml-tandem.so ONEBIT_TANDEM=owner=Vulkan0,prefill=CPU,decode=CPU "$bin/llama-bench" -m "$model" \
    -dev Tandem0 -p 16 -n 1 -r 1 -t 1 -o jsonl >"$work/preload.jsonl" 2>"$work/preload.log" || fail "llama-bench with a preloaded tandem"
[ "$(grep -c '"devices": "Tandem0"' "$work/preload.jsonl")" = 2 ] || fail "preloaded llama-bench gave $(cat "$work/preload.jsonl")"

for operation in RMS_NORM GET_ROWS SWIGLU; do
    plugin owner=Vulkan0,prefill=CPU,decode=CPU "$bin/test-backend-ops" test -b Tandem0 -o "$operation" >"$work/ops.log" 2>&1 ||
        fail "test-backend-ops $operation"
    grep -q 'tests passed' "$work/ops.log" || fail "test-backend-ops $operation ran no test"
done

# what is missing or wrong is said, and the program goes on without a tandem
plugin owner=Vulkan0,colour=red "$bin/llama-bench" --list-devices >"$work/wrong.log" 2>&1 || true
grep -q "colour" "$work/wrong.log" || fail "a wrong setting was not named"
if grep -q Tandem0 <(grep -v ERROR "$work/wrong.log" | grep "^ *Tandem0"); then fail "a tandem of wrong settings"; fi

# a ggml-vulkan whose sharing unit cannot be found
mkdir "$work/lib"
cp -L "$bin/libggml-vulkan.so.0" "$work/lib/"
sed -i 's/onebit_vkshare/nobody_vkshare/g' "$work/lib/libggml-vulkan.so.0"
LD_LIBRARY_PATH=$work/lib plugin owner=Vulkan0,prefill=CPU "$bin/llama-bench" --list-devices >"$work/without.log" 2>&1 || true
grep -q "sharing unit" "$work/without.log" || fail "a ggml-vulkan without the unit was not refused by name"
echo passed
