#!/usr/bin/env bash
# Breaks when a set-up step does its work twice, or when a Node that is too old is not replaced by the pinned one.
. "$(dirname "$0")/check.sh"
# shellcheck source=third_party/pins.env
. "$ROOT/third_party/pins.env"

begin "Node that is new enough is used as it is"
if [ "$(printf '%s\n%s\n' "$NODE_MINIMUM" "$(node --version | tr -d v)" | sort -V | head -n1)" = "$NODE_MINIMUM" ]; then
    call "$ROOT/scripts/fetch-node"
    ends_with 0
    prints "^$(dirname "$(command -v node)")\$"
    nothing_left "$ONEBIT_CACHE"
else
    skip "this machine's Node is older than $NODE_MINIMUM"
fi

begin "too old Node"
if npm ping >/dev/null 2>&1 || npm view npm version >/dev/null 2>&1; then
    mkdir -p "$TMP/bin"
    # shellcheck disable=SC2016
    printf '#!/bin/sh\n[ "$1" = --version ] && { echo v18.0.0; exit; }\nexec %s "$@"\n' "$(command -v node)" >"$TMP/bin/node"
    chmod +x "$TMP/bin/node"
    call env PATH="$TMP/bin:$PATH" "$ROOT/scripts/fetch-node"
    ends_with 0
    says "18.0.0 is older than $NODE_MINIMUM"
    folder=$(cat "$TMP/out")
    call "$folder/node" --version
    prints "^v${NODE_NPM##*@}\$"
    call "$folder/npm" --version
    prints "^${NPM_NPM##*@}\$"
    call env PATH="$TMP/bin:$PATH" npm_config_registry=http://127.0.0.1:9/ "$ROOT/scripts/fetch-node"
    ends_with 0
    prints "^$folder\$"
    if [ -s "$TMP/err" ]; then bad "the second run does something"; else good "the second run does nothing"; fi
else
    skip "the npm registry cannot be reached"
fi

begin "second run of what this machine has already"
unset ONEBIT_CACHE
for step in fetch-llama fetch-shader-tools test-setup; do
    call env npm_config_registry=http://127.0.0.1:9/ "$ROOT/scripts/$step"
    if [ "$step" = fetch-shader-tools ] && [ "$code" != 0 ]; then
        skip "the shader tools are not in the cache"
        continue
    fi
    ends_with 0
    if [ -s "$TMP/err" ]; then bad "$step does something"; else good "$step does nothing"; fi
    if [ -d "$(cat "$TMP/out")" ]; then good "$step prints a folder"; else bad "$step prints no folder"; fi
done
call "$ROOT/scripts/install-packages" build
ends_with 0
if [ -s "$TMP/err" ]; then bad "install-packages does something"; else good "install-packages does nothing"; fi

begin "a killed run leaves no rubbish for the next"
export ONEBIT_CACHE=$TMP/killed
mkdir -p "$ONEBIT_CACHE/fetch-llama.work.dead"
call env npm_config_registry=http://127.0.0.1:9/ npm_config_fetch_retries=0 npm_config_cache="$TMP/npm" "$ROOT/scripts/fetch-llama"
ends_with 1
nothing_left "$ONEBIT_CACHE"

begin "moving the pin of llama.cpp"
mkdir -p "$TMP/tree/third_party" "$TMP/upstream"
cp -r "$ROOT/scripts" "$TMP/tree/"
cp "$ROOT/third_party/pins.env" "$TMP/tree/third_party/"
git init -q "$TMP/upstream/llama.cpp"
(cd "$TMP/upstream/llama.cpp" && echo x >CMakeLists.txt && git add . && git -c user.name=a -c user.email=a@b commit -qm x && git tag v9.9.9)
upstream=(env GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0="url.file://$TMP/upstream/.insteadOf" GIT_CONFIG_VALUE_0="${LLAMA_GIT%/*}/")
call "${upstream[@]}" "$TMP/tree/scripts/move-pin" --git v9.9.9
ends_with 0
tree=$(git -C "$TMP/upstream/llama.cpp" rev-parse 'HEAD^{tree}')
changed=$(diff "$ROOT/third_party/pins.env" "$TMP/tree/third_party/pins.env" | grep '^>' | sort | tr -d '> \n')
expected=$(printf 'LLAMA_PIN_DATE=%s\nLLAMA_TAG=v9.9.9\nLLAMA_TREE=%s\n' "$(date -u +%F)" "$tree" | tr -d '\n')
if [ "$changed" = "$expected" ]; then good "tag, tree and date are written, nothing else"; else bad "changed: $changed"; fi
call "${upstream[@]}" env ONEBIT_LLAMA_SOURCE=git "$TMP/tree/scripts/fetch-llama"
ends_with 0
prints "/$tree\$"
call "${upstream[@]}" "$TMP/tree/scripts/move-pin" --git v9.9.9
says 'already'
before=$(cat "$TMP/tree/third_party/pins.env")
call "${upstream[@]}" "$TMP/tree/scripts/move-pin" --git v0.0.0-none
fails_well 'could not clone'
if [ "$before" = "$(cat "$TMP/tree/third_party/pins.env")" ]; then good "a failed move changes nothing"; else bad "a failed move changed the pins"; fi

closing
