#!/usr/bin/env bash
# Breaks when a test that fails is counted as passed, when its reason is not at the end, or when a second try hides one.
. "$(dirname "$0")/check.sh"

# set_up CASE...: a folder of CTest tests, each "name shell-text"
set_up() {
    rm -rf "$TMP/set" && mkdir "$TMP/set"
    local i
    for ((i = 1; i < $#; i += 2)); do
        printf '%s\n' "${@:i+1:1}" >"$TMP/set/${!i}.sh"
        printf 'add_test(%s bash "%s/set/%s.sh")\n' "${!i}" "$TMP" "${!i}" >>"$TMP/set/CTestTestfile.cmake"
    done
}
# run_set TRIES
run_set() {
    # shellcheck disable=SC2016
    call bash -c '. "$1/scripts/common.sh"; . "$1/scripts/run-tests.sh"; set +e; run_tests normal "$2" "$3"; report_tests "$SECONDS"' \
        run "$ROOT" "$1" "$TMP/set"
}
once="if [ -f \"$TMP/set/been\" ]; then exit 0; fi; touch \"$TMP/set/been\"; echo Value of: the moon; exit 1"

begin "all pass"
set_up a 'exit 0' b 'exit 0'
run_set 2
ends_with 0
prints '^2 passed, 0 failed, 0 skipped'

begin "one fails once, one try"
set_up a 'exit 0' b "$once"
run_set 1
ends_with 1
says 'Value of: the moon'
prints '^1 passed, 1 failed, 0 skipped'

begin "one fails once, two tries"
set_up a 'exit 0' b "$once"
run_set 2
ends_with 0
says 'passed only at the second try: 1'
says 'Value of: the moon'
prints '^2 passed, 0 failed, 0 skipped'

begin "a sanitizer's report once: no second try"
for report in '==7==ERROR: AddressSanitizer: heap-use-after-free' 'a.cpp:1:2: runtime error: shift' \
    'WARNING: ThreadSanitizer: data race' '==7==ERROR: LeakSanitizer: detected memory leaks'; do
    set_up a 'exit 0' b "${once/Value of: the moon/$report}"
    run_set 2
    ends_with 1
    prints '^1 passed, 1 failed, 0 skipped'
done

begin "one fails always, two tries"
set_up a 'exit 0' b 'echo Value of: the sun; exit 1'
run_set 2
ends_with 1
says 'second try:'
says '^failed: normal'
prints '^1 passed, 1 failed, 0 skipped'

begin "one of two passes at the second try"
set_up a 'exit 1' b "$once"
run_set 2
ends_with 1
says 'passed only at the second try: 1'
prints '^1 passed, 1 failed, 0 skipped'

begin "four fail once: no second try"
set_up a 'exit 0'
for name in b c d e; do
    # shellcheck disable=SC2016
    printf 'if [ -f "$0.been" ]; then exit 0; fi; touch "$0.been"; exit 1\n' >"$TMP/set/$name.sh"
    printf 'add_test(%s bash "%s/set/%s.sh")\n' "$name" "$TMP" "$name" >>"$TMP/set/CTestTestfile.cmake"
done
run_set 2
ends_with 1
prints '^1 passed, 4 failed, 0 skipped'

begin "no tests"
rm -rf "$TMP/set" && mkdir "$TMP/set" && touch "$TMP/set/CTestTestfile.cmake"
run_set 2
ends_with 1

closing
