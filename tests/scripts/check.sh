# shellcheck shell=bash
# For tests of scripts: a clean environment, checks, the closing line. Source it, do not run it.
set -uo pipefail

# shellcheck disable=SC2034
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
TMP=$(mktemp -d)
trap 'umount "$TMP/small" 2>/dev/null; rm -rf "$TMP"' EXIT
for name in ${!ONEBIT_*}; do unset "$name"; done
export ONEBIT_CACHE=$TMP/cache
passed=0 failed=0 skipped=0

bad() { printf 'FAILED %s: %s\n' "$case_name" "$1"; [ ! -f "$TMP/err" ] || sed 's/^/    /' "$TMP/err"; failed=$((failed + 1)); }
good() { printf 'ok %s: %s\n' "$case_name" "$1"; passed=$((passed + 1)); }
skip() { printf 'skipped %s: %s\n' "$case_name" "$1"; skipped=$((skipped + 1)); }
begin() { case_name=$1; rm -f "$TMP/out" "$TMP/err"; }

# call COMMAND...: keeps its output and exit code
call() { "$@" >"$TMP/out" 2>"$TMP/err"; code=$?; }
ends_with() { if [ "$code" = "$1" ]; then good "exit code $1"; else bad "exit code $code, expected $1"; fi; }
says() { if grep -qE -- "$1" "$TMP/err"; then good "says '$1'"; else bad "does not say '$1'"; fi; }
prints() { if grep -qE -- "$1" "$TMP/out"; then good "prints '$1'"; else bad "does not print '$1'"; fi; }
# fails_well PATTERN: one line on what went wrong and one on what to do, nothing on standard output
fails_well() {
    ends_with 1
    says "^error: .*$1"
    says '^  what to do: ..'
    if [ -s "$TMP/out" ]; then bad "prints '$(head -n1 "$TMP/out")' although it failed"; else good "prints no folder"; fi
}
# nothing_left DIR: no half-done work in the cache
nothing_left() {
    local left
    left=$(find "$1" -mindepth 1 -maxdepth 1 ! -name '*.lock' 2>/dev/null)
    if [ -z "$left" ]; then good "nothing half done is left"; else bad "left behind: $left"; fi
}
closing() {
    printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
    [ "$failed" = 0 ] || exit 1
    [ "$passed" -gt 0 ] || exit 77
}
