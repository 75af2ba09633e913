# shellcheck shell=bash
# Runs sets of CTest tests and says at the end how many passed and what the failed ones said. Source it after common.sh.
passed=0 failed=0 skipped=0 failures=() second_try=0
excerpts=$(mktemp)
trap 'rm -f "$excerpts"' EXIT

took() { printf '%d:%02d' $(((SECONDS - $1) / 60)) $(((SECONDS - $1) % 60)); }

# Of a JUnit report: an attribute of the whole, and the first words of each failed test with the lines that say why.
count() { grep -m1 -o "$1=\"[0-9]*\"" "$2" | tr -dc 0-9; }
excerpt() {
    awk '/<testcase .*status="fail"/ { split($0, part, "\""); print "  " part[2]; inside = 1; lines = 0; next }
         /<\/testcase>/ { inside = 0 }
         inside && lines < 12 && /[Ff]ail|[Ee]rror|not ok|[Ee]xpected|[Aa]ctual|Which|Value|Signal|SIG|Timeout/ &&
             !/Global test|^\t\t<failure/ { print "    " substr($0, 1, 240); lines++ }' "$1"
}

# What a sanitizer found once is no bad luck: such a test gets no second try.
found_by_sanitizer() { grep -qE '(Address|Leak|Thread|UndefinedBehavior)Sanitizer|: runtime error: ' "$1"; }

# run_tests NAME TRIES DIR CTEST-ARGUMENTS...   with two tries, at most three failed tests are run again, alone
run_tests() {
    local name=$1 tries=$2 dir=$3 at=$SECONDS report again total bad skip
    shift 3
    say "tests: $name"
    report=$dir/ctest-$name.xml again=$dir/ctest-$name-again.xml
    rm -f "$report" "$again"
    local all_passed=1
    ctest --test-dir "$dir" --output-on-failure --no-tests=error --output-junit "$report" -j "$(nproc)" "$@" || all_passed=""
    [ -f "$report" ] || { failed=$((failed + 1)) failures+=("$name: ctest made no report"); return; }
    total=$(count tests "$report") bad=$(count failures "$report")
    skip=$(($(count skipped "$report") + $(count disabled "$report")))
    if [ "$bad" -gt 0 ]; then { printf '%s, first try:\n' "$name" && excerpt "$report"; } >>"$excerpts"; fi
    if [ "$tries" -gt 1 ] && [ "$bad" -gt 0 ] && [ "$bad" -le 3 ] && ! found_by_sanitizer "$report"; then
        say "tests: $name: second try of $bad"
        if ctest --test-dir "$dir" --output-on-failure --rerun-failed --output-junit "$again" -j 1; then all_passed=1; fi
        if [ -f "$again" ]; then
            [ "$(count failures "$again")" = 0 ] ||
                { printf '%s, second try:\n' "$name" && excerpt "$again"; } >>"$excerpts"
            second_try=$((second_try + bad - $(count failures "$again")))
            bad=$(count failures "$again")
        fi
    fi
    [ -n "$all_passed" ] || failures+=("$name: ctest --test-dir ${dir#"$PWD"/} --rerun-failed --output-on-failure")
    passed=$((passed + total - bad - skip)) failed=$((failed + bad)) skipped=$((skipped + skip))
    say "tests: $name: $((total - bad - skip)) passed, $bad failed, $skip skipped, $(took "$at") min"
}

# report_tests STARTED: the closing lines; fails where a test failed or none passed.
report_tests() {
    local failure
    [ ! -s "$excerpts" ] || { say "what failed" && cat "$excerpts" >&2; }
    for failure in ${failures[@]+"${failures[@]}"}; do printf 'failed: %s\n' "$failure" >&2; done
    [ "$second_try" = 0 ] ||
        say "passed only at the second try: $second_try, named above; each is a defect of the program or of the test"
    say "$(took "$1") min"
    printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
    [ "$failed" = 0 ] && [ "${#failures[@]}" = 0 ] && [ "$passed" -gt 0 ]
}
