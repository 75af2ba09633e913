#!/usr/bin/env bash
# Breaks when a set-up step that fails does not say what failed and what to do, or leaves something half done.
. "$(dirname "$0")/check.sh"

# a registry on this machine that nobody listens on: what no network looks like to npm
no_registry=(env npm_config_registry=http://127.0.0.1:9/ npm_config_fetch_retries=0 npm_config_cache="$TMP/npm")

begin "no network"
call "${no_registry[@]}" "$ROOT/scripts/fetch-llama"
fails_well 'could not fetch .* from the npm registry'
nothing_left "$ONEBIT_CACHE"

begin "no network, test clients"
call "${no_registry[@]}" "$ROOT/scripts/test-setup"
# where the machine's Node is too old, a newer one is fetched first
fails_well 'could not fetch (the test clients|node-)'
nothing_left "$ONEBIT_CACHE"

begin "no network, git"
call env ONEBIT_LLAMA_SOURCE=git GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=url.http://127.0.0.1:9/.insteadOf GIT_CONFIG_VALUE_0=https://github.com/ "$ROOT/scripts/fetch-llama"
fails_well 'could not clone'
nothing_left "$ONEBIT_CACHE"

begin "unknown source"
call env ONEBIT_LLAMA_SOURCE=/no/such/folder "$ROOT/scripts/fetch-llama"
fails_well "ONEBIT_LLAMA_SOURCE='/no/such/folder' is neither"

begin "a folder that is no checkout"
mkdir "$TMP/empty"
call env ONEBIT_LLAMA_SOURCE="$TMP/empty" "$ROOT/scripts/fetch-llama"
fails_well 'is not a git checkout'

begin "wrong tree"
git init -q "$TMP/other" && (cd "$TMP/other" && echo x >file && git add file && git -c user.name=a -c user.email=a@b commit -qm x)
call env ONEBIT_LLAMA_SOURCE="$TMP/other" "$ROOT/scripts/fetch-llama"
fails_well 'has tree [0-9a-f]{40}, expected [0-9a-f]{40}'

begin "a file of the source was changed"
# shellcheck source=third_party/pins.env
. "$ROOT/third_party/pins.env"
mkdir -p "$ONEBIT_CACHE/llama.cpp"
cp -r "$TMP/other" "$ONEBIT_CACHE/llama.cpp/$LLAMA_TREE"
touch "$ONEBIT_CACHE/llama.cpp/$LLAMA_TREE/CMakeLists.txt"
call "$ROOT/scripts/fetch-llama"
fails_well 'has tree .*, expected'
says "remove .*$LLAMA_TREE"
rm -rf "$ONEBIT_CACHE"

begin "a damaged download"
mkdir -p "$TMP/bin" "$TMP/pack/package/bin"
real_node=$(command -v node)
# shellcheck disable=SC2016
printf '#!/bin/sh\n[ "$1" = --version ] && { echo v18.0.0; exit; }\nexec %s "$@"\n' "$real_node" >"$TMP/bin/node"
tar -czf "$TMP/bin/damaged.tgz" -C "$TMP/pack" package
# shellcheck disable=SC2016
printf '#!/bin/sh\ncp "$(dirname "$0")/damaged.tgz" .\n' >"$TMP/bin/npm"
chmod +x "$TMP/bin/node" "$TMP/bin/npm"
call env PATH="$TMP/bin:$PATH" "$ROOT/scripts/fetch-node"
fails_well 'has digest sha512-.*, expected sha512-'
nothing_left "$ONEBIT_CACHE"

begin "full disk"
mkdir "$TMP/small"
if [ "$(id -u)" = 0 ] && mount -t tmpfs -o size=1m none "$TMP/small" 2>/dev/null; then
    for step in fetch-llama test-setup build; do
        call env ONEBIT_CACHE="$TMP/small" "$ROOT/scripts/$step"
        fails_well 'has [01] MiB free, this step needs [0-9]+ MiB'
        says 'ONEBIT_CACHE=DIR'
    done
    nothing_left "$TMP/small"
    umount "$TMP/small"
else
    skip "cannot mount a small file system here"
fi

begin "little disk"
mkdir -p "$TMP/df"
# shellcheck disable=SC2016
printf '#!/bin/sh\necho head\necho "disk 9999 9999 $FREE_MIB 0%% $2"\n' >"$TMP/df/df"
chmod +x "$TMP/df/df"
little_disk() { call env PATH="$TMP/df:$PATH" ONEBIT_SKIP_PACKAGES=1 FREE_MIB="$1" "${no_registry[@]}" "$ROOT/scripts/build" --dir "$TMP/small-build"; }
little_disk 1499
fails_well "$ONEBIT_CACHE has 1499 MiB free, this step needs 1500 MiB"
says 'another cache folder with ONEBIT_CACHE=DIR'
mkdir -p "$ONEBIT_CACHE/llama.cpp"
cp -r "$TMP/other" "$ONEBIT_CACHE/llama.cpp/$LLAMA_TREE"
touch "$ONEBIT_CACHE/llama.cpp/$LLAMA_TREE/CMakeLists.txt"
little_disk 1499
fails_well "$TMP/small-build has 1499 MiB free, this step needs 1500 MiB"
says 'another build folder with scripts/build --dir DIR'
# what is built already needs little: the next step is reached, which finds that the source is not that of the pin
mkdir -p "$TMP/small-build/bin"
touch "$TMP/small-build/bin/1bit" && chmod +x "$TMP/small-build/bin/1bit"
little_disk 200
fails_well 'has tree .*, expected'
little_disk 199
fails_well 'has 199 MiB free, this step needs 200 MiB'
rm -rf "$ONEBIT_CACHE"

begin "a cache folder that cannot be"
call env ONEBIT_CACHE=/dev/null/x "$ROOT/scripts/test-setup"
fails_well 'cannot create the folder /dev/null/x'

begin "packages by hand"
# shellcheck disable=SC2016
printf '#!/bin/sh\nexit 1\n' >"$TMP/bin/dpkg-query"
chmod +x "$TMP/bin/dpkg-query"
call env PATH="$TMP/bin:$PATH" ONEBIT_SKIP_PACKAGES=1 "$ROOT/scripts/install-packages" build
fails_well 'missing packages: build-essential'

begin "unknown options"
for call in "build --no-such" "build --dir" "test --no-such" "test --only" "lint --no-such" "move-pin" "move-pin --git" "install-packages none"; do
    # shellcheck disable=SC2086
    call "$ROOT"/scripts/$call
    fails_well '.'
done

closing
