#!/usr/bin/env bash
# Breaks when a build does not show how far it is, hides an error, or does not say how to go on after an interruption.
. "$(dirname "$0")/check.sh"
command -v ninja >/dev/null || { case_name=build && skip "ninja is not installed" && closing; }

# A project of 60 steps, each of which warns; FAIL and WAIT name a step that fails or never ends. In place of cmake.
work=$TMP/build log=$TMP/build/build.log
mkdir -p "$work/bin" "$TMP/bin"
# a built program: then little disk is asked for
touch "$work/bin/1bit" && chmod +x "$work/bin/1bit"
{
    # shellcheck disable=SC2016
    printf 'rule one\n  command = ./one $out\n  description = Building $out\nbuild all: phony'
    printf ' step%d' {1..60}
    printf '\n'
    printf 'build step%d: one\n' {1..60}
} >"$work/build.ninja"
cat >"$work/one" <<'END'
#!/bin/sh
printf '%s\n' "ninja: no work to do." "file.c:1:2: warning: the warning of $1"
case $1 in
    "$FAIL")
        printf '%s\n' "[1/2] a step of a build inside" "FAILED: inside" "file.c:3:4: error: the error of $1" "its last line"
        exit 1
        ;;
    "$WAIT") touch started && exec sleep 300 ;;
esac
touch "$1"
END
cat >"$TMP/bin/cmake" <<'END'
#!/bin/sh
[ "$1" = --build ] || exit 0
dir=$2
shift 2
while [ "$1" != -- ]; do shift; done
shift
exec ninja -C "$dir" "$@" all
END
chmod +x "$work/one" "$TMP/bin/cmake"
build=(env --default-signal=INT "PATH=$TMP/bin:$PATH" ONEBIT_SKIP_PACKAGES=1 ONEBIT_SHADER_TOOLS=system
    "$ROOT/scripts/build" --no-web-page --dir "$work")
unset ONEBIT_CACHE # the source is there: this build has it
again() { rm -f "$work"/step* "$work/started" "$work/.ninja_log"; }
silent() { if grep -qE -- "$1" "$2"; then bad "says '$1'"; else good "does not say '$1'"; fi; }
lines() {
    local have
    have=$(grep -cE -- "$1" "$TMP/err")
    if [ "$have" -ge "$2" ] && [ "$have" -le "$3" ]; then good "$have lines of '$1'"; else bad "$have lines of '$1', expected $2 to $3"; fi
}

begin "in a log"
call "${build[@]}"
ends_with 0
lines '^\[[0-9]+/60\] Building step' 20 20
says '^\[60/60\] Building step'
silent 'the warning of|no work to do' "$TMP/err"
says '^== 60 warnings of compilers, in .*/build.log'
if [ "$(grep -c 'the warning of step' "$log")" = 60 ]; then good "all is in build.log"; else bad "build.log is not whole"; fi
if [ -s "$TMP/out" ]; then bad "prints on standard output"; else good "prints nothing on standard output"; fi

begin "again, with nothing to do"
call "${build[@]}"
ends_with 0
says 'ninja: no work to do'
silent 'warnings of compilers' "$TMP/err"

begin "a step that fails"
again
call env FAIL=step30 ONEBIT_JOBS=1 "${build[@]}"
ends_with 1
says '^FAILED: step30'
says '^\./one step30'
says '^file.c:1:2: warning: the warning of step30'
says '^file.c:3:4: error: the error of step30'
says '^its last line'
silent 'the warning of step2' "$TMP/err"
lines '^\[[0-9]+/60\]' 1 11
says 'ninja: build stopped: subcommand failed'
says '^error: the build failed'
says "what to do: see the first error above .*$log"

begin "a plan that cannot be"
printf 'build step1: none\n' >>"$work/build.ninja"
call "${build[@]}"
ends_with 1
says "ninja: error: .*unknown build rule 'none'"
sed -i '$d' "$work/build.ninja"

begin "interrupted"
again
set -m
env WAIT=step40 "${build[@]}" >"$TMP/out" 2>"$TMP/err" &
pid=$!
set +m
while [ ! -e "$work/started" ] && kill -0 "$pid" 2>/dev/null; do sleep 0.1; done
kill -INT -- "-$pid"
wait "$pid"
code=$?
ends_with 130
says '^== interrupted: the same command goes on where this one stopped'
silent 'error|FAILED' "$TMP/err"
done_before=$(find "$work" -name 'step*' | wc -l)
call "${build[@]}"
ends_with 0
says "^\[[0-9]+/$((60 - done_before))\]"

begin "on a terminal"
if command -v script >/dev/null; then
    again
    call env TERM=xterm SHELL=/bin/sh script -qefc "stty cols 40; exec 2>&1; ${build[*]@Q}" "$TMP/typescript"
    ends_with 0
    cp "$TMP/out" "$TMP/err"
    lines $'\r\e\\[K\\[60/60\\] Building step' 1 1
    steps=$(tr '\r' '\n' <"$TMP/out" | grep -c 'Building step')
    if [ "$steps" = 60 ]; then good "each step, in place"; else bad "$steps steps"; fi
    silent 'the warning of' "$TMP/out"
    again
    call env FAIL=step1 TERM=xterm SHELL=/bin/sh script -qefc "exec 2>&1; ${build[*]@Q}" "$TMP/typescript"
    ends_with 1
    cp "$TMP/out" "$TMP/err"
    says 'the error of step1'
else
    skip "script is not installed"
fi

closing
