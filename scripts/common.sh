# shellcheck shell=bash
# Shared by all scripts: messages, the cache folder, pins. Source it, do not run it.
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
CACHE=${ONEBIT_CACHE:-${XDG_CACHE_HOME:-${HOME:-$(getent passwd "$(id -u)" | cut -d: -f6)}/.cache}/1bit}
# shellcheck source=third_party/pins.env
. "$ROOT/third_party/pins.env"

say() { printf '== %s\n' "$*" >&2; }

# fail WHAT REMEDY: one line on what went wrong, one on what to do.
fail() {
    printf 'error: %s\n' "$1" >&2
    [ $# -lt 2 ] || printf '  what to do: %s\n' "$2" >&2
    exit 1
}

# need_disk DIR MIB [CHOICE]: refuses early instead of dying in the middle of a step. CHOICE: how to choose another folder.
need_disk() {
    local have choice=${3:-choose another cache folder with ONEBIT_CACHE=DIR}
    mkdir -p "$1" 2>/dev/null || fail "cannot create the folder $1" "make it writable, or $choice"
    have=$(df -Pm "$1" | awk 'NR==2{print $4}')
    [ "$have" -ge "$2" ] || fail "$1 has $have MiB free, this step needs $2 MiB" "free some space, or $choice"
}

# version_at_least HAVE WANT
version_at_least() { [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n1)" = "$2" ]; }

# work_folder NAME MIB: sets $work to a new folder in the cache that is removed at exit, and holds the lock of NAME until
# then, so that two runs do not do the same step at once. What a killed run left behind is removed.
work_folder() {
    need_disk "$CACHE" "$2"
    exec 9>"$CACHE/$1.lock"
    flock -n 9 || { say "waiting for another run of this step ($1)"; flock 9; }
    rm -rf "$CACHE/$1".work.*
    work=$(mktemp -d "$CACHE/$1.work.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
}

# publish FROM TO: makes a finished folder visible in one step, so that an interrupted run leaves nothing half done.
publish() {
    rm -rf "$2"
    mkdir -p "$(dirname "$2")"
    mv -T "$1" "$2"
}

# fetch_npm NAME@VERSION INTEGRITY DIR: unpacks an npm package without running any of its scripts. Needs $work.
fetch_npm() {
    local archive have
    command -v npm >/dev/null || fail "npm is missing" "run scripts/install-packages"
    mkdir -p "$work/npm-pack"
    (cd "$work/npm-pack" && npm pack --loglevel=error "$1" >"$work/npm-pack.log" 2>&1) || {
        tail -n 5 "$work/npm-pack.log" >&2
        fail "could not fetch $1 from the npm registry" "check the network and 'npm config get registry', then run again"
    }
    archive=$(find "$work/npm-pack" -name '*.tgz')
    [ -n "$archive" ] || fail "npm delivered no archive of $1" "see what 'npm pack $1' says"
    if [ -n "$2" ]; then
        have=sha512-$(openssl dgst -sha512 -binary "$archive" | base64 -w0)
        [ "$have" = "$2" ] || fail "$1 has digest $have, expected $2" "run again; if it stays so, the pin in third_party/pins.env is wrong"
    fi
    mkdir -p "$3" && tar -xzf "$archive" -C "$3" --strip-components=1
    rm -r "$work/npm-pack"
}

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"
    elif command -v sudo >/dev/null; then sudo "$@"
    else fail "installing packages needs root, and sudo is missing" "run as root: $*"; fi
}
