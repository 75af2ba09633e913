# Shared by all scripts: messages, the cache folder, pins. Source it, do not run it.
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
CACHE=${ONEBIT_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/1bit}
# shellcheck source=../third_party/pins.env
. "$ROOT/third_party/pins.env"

say() { printf '== %s\n' "$*" >&2; }

# fail WHAT REMEDY: one line on what went wrong, one on what to do.
fail() {
    printf 'error: %s\n' "$1" >&2
    [ $# -lt 2 ] || printf '  what to do: %s\n' "$2" >&2
    exit 1
}

# need_disk DIR MIB: refuses early instead of dying in the middle of a step.
need_disk() {
    local have
    mkdir -p "$1" || fail "cannot create $1" "choose another cache folder with ONEBIT_CACHE=DIR"
    have=$(df -Pm "$1" | awk 'NR==2{print $4}')
    [ "$have" -ge "$2" ] || fail "$1 has $have MiB free, this step needs $2 MiB" \
        "free some space, or choose another folder with ONEBIT_CACHE=DIR"
}

# version_at_least HAVE WANT
version_at_least() { [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n1)" = "$2" ]; }

# publish FROM TO: makes a finished folder visible in one step, so that an interrupted run leaves nothing half done.
publish() {
    rm -rf "$2"
    mkdir -p "$(dirname "$2")"
    mv "$1" "$2"
}

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"
    elif command -v sudo >/dev/null; then sudo "$@"
    else fail "installing packages needs root, and sudo is missing" "run as root: $*"; fi
}
