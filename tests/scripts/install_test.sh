#!/usr/bin/env bash
# Breaks when make install leaves something out, or when the installed program still leans on the build folder.
build=$(dirname "$(dirname "${ONEBIT_PROGRAM:-}")")
. "$(dirname "$0")/check.sh"
[ -x "$build/bin/1bit" ] || build=$ROOT/build
case_name=install

[ -x "$build/bin/1bit" ] || { skip "$build/bin/1bit is not built"; closing; }
server=""
trap '[ -z "$server" ] || kill "$server" 2>/dev/null; rm -rf "$TMP"' EXIT
prefix=/opt/one
installed=$TMP/root$prefix
manifest=$(mktemp "$TMP/manifest.XXXX")
# a run of this test must not change what make uninstall removes
[ ! -f "$build/install_manifest.txt" ] || cp "$build/install_manifest.txt" "$manifest"

begin "into DESTDIR"
call env DESTDIR="$TMP/root" "$ROOT/scripts/install" --no-build --dir "$build" --prefix "$prefix"
ends_with 0
cp "$build/install_manifest.txt" "$TMP/installed.txt"
if [ -s "$manifest" ]; then cp "$manifest" "$build/install_manifest.txt"; else rm -f "$build/install_manifest.txt"; fi
for file in bin/1bit share/1bit/models/onebit-tiny-f16.gguf share/bash-completion/completions/1bit share/zsh/site-functions/_1bit \
    share/fish/vendor_completions.d/1bit.fish share/man/man1/1bit.1 share/doc/1bit/LICENSE share/doc/1bit/NOTICES.md \
    share/doc/1bit/licences/llama.cpp share/doc/1bit/licences/cpp-httplib share/doc/1bit/licences/nlohmann-json; do
    if [ -s "$installed/$file" ]; then good "$file"; else bad "$file is missing or empty"; fi
done
outside=$(find "$TMP/root" -type f ! -path "$installed/*")
if [ -z "$outside" ]; then good "nothing outside the prefix"; else bad "outside the prefix: $outside"; fi
unlisted=$(diff <(find "$TMP/root" -type f -o -type l | sed "s|^$TMP/root||" | sort) <(sort "$TMP/installed.txt" | grep .))
if [ -z "$unlisted" ]; then good "the manifest is complete"; else bad "manifest: $unlisted"; fi

begin "builds what is installed, no tests"
mkdir -p "$TMP/tree/third_party"
cp -r "$ROOT/scripts" "$TMP/tree/"
cp "$ROOT/third_party/pins.env" "$TMP/tree/third_party/"
# shellcheck disable=SC2016
printf '#!/bin/sh\necho "$*"\n' >"$TMP/tree/scripts/build"
call "$TMP/tree/scripts/install" --dir "$TMP/none"
prints "^--dir $TMP/none --target installed\$"
says "$TMP/none/bin/1bit is missing"
call ninja -C "$build" -t query installed
if [ "$code" = 0 ]; then
    while read -r file; do prints "^ +bin/$file\$"; done < <(sed -nE 's#.*/(bin|lib/1bit)/([^/]+)$#\2#p' "$TMP/installed.txt" | sed -E 's/\.so[.0-9]+$/.so/' | sort -u)
    call ninja -C "$build" -t inputs installed
    ends_with 0
    if grep -E 'gtest|^tests/|-tests$' "$TMP/out"; then bad "builds tests"; else good "builds no tests"; fi
else
    skip "$build is no build folder of Ninja that knows what is installed"
fi

begin "no path of the build"
for file in "$installed"/bin/1bit "$installed"/lib/1bit/*.so*; do
    if readelf -d "$file" | grep -E 'R(UN)?PATH' | grep -vqF "[\$ORIGIN"; then bad "${file##*/}: $(readelf -d "$file" | grep -E 'R(UN)?PATH')"; else good "${file##*/}"; fi
done
call ldd "$installed/bin/1bit"
ends_with 0
if grep -qE "not found|$build" "$TMP/out"; then bad "$(grep -E "not found|$build" "$TMP/out")"; else good "libraries"; fi
prints "$installed/bin/../lib/1bit/libllama"

# moved to another place, with an empty environment: as on another machine
mv "$TMP/root" "$TMP/elsewhere"
installed=$TMP/elsewhere$prefix
mkdir "$TMP/home"
clean=(env -i HOME="$TMP/home" PATH="$installed/bin:/usr/bin:/bin")

begin "version"
call "${clean[@]}" 1bit version
ends_with 0
prints '1bit '

begin "completions"
# shellcheck disable=SC2016
call "${clean[@]}" bash -c '. "$1"; COMP_WORDS=(1bit se) COMP_CWORD=1; _1bit; echo "${COMPREPLY[@]}"' - "$installed/share/bash-completion/completions/1bit"
prints '^serve$'
if command -v fish >/dev/null; then
    # shellcheck disable=SC2016
    call "${clean[@]}" XDG_DATA_DIRS="$installed/share" fish --no-config -c 'source $argv[1]; complete -C "1bit se"; complete -C "1bit serve --keep"' "$installed/share/fish/vendor_completions.d/1bit.fish"
    ends_with 0
    prints '^serve\b'
    prints '^--keep-alive\b'
else
    skip "fish is not installed"
fi
if command -v zsh >/dev/null; then
    call "${clean[@]}" timeout 60 zsh -f "$ROOT/tests/scripts/zsh_completion.zsh" "$installed/share/zsh/site-functions" '1bit se' '1bit serve --keep'
    prints '1bit serve '
    prints '1bit serve --keep-alive '
else
    skip "zsh is not installed"
fi

begin "man page"
if command -v man >/dev/null; then
    call "${clean[@]}" man -M "$installed/share/man" -P cat 1bit
    ends_with 0
    prints 'SYNOPSIS'
else
    skip "man is not installed"
fi

begin "serve"
"${clean[@]}" GGML_VK_VISIBLE_DEVICES= 1bit serve --device cpu --port 0 -- -t 1 -c 512 >"$TMP/log" 2>&1 &
server=$!
url="" answer=""
for _ in $(seq 240); do
    [ -n "$url" ] || url=$(grep -oE 'http://127\.0\.0\.1:[0-9]+' "$TMP/log" | head -n1)
    [ -z "$url" ] || ! curl -sf "$url/health" >/dev/null || break
    kill -0 "$server" 2>/dev/null || break
    sleep 1
done
call curl -s "$url/v1/chat/completions" -H 'Content-Type: application/json' -d '{"temperature":0,"max_tokens":12,"messages":[{"role":"user","content":"What is the capital of France?"}]}'
ends_with 0
answer=$(cat "$TMP/out")
case $answer in *Paris*) good "answers" ;; *) bad "answer '$answer', log: $(tail -n 5 "$TMP/log")" ;; esac
call curl -s --compressed "$url/"
prints '<html'
kill -TERM "$server"
wait "$server"
code=$? server=""
ends_with 0

begin "uninstall"
mkdir "$TMP/fake"
cp "$TMP/installed.txt" "$TMP/fake/install_manifest.txt"
call env DESTDIR="$TMP/elsewhere" "$ROOT/scripts/install" --uninstall --dir "$TMP/fake"
ends_with 0
left=$(find "$TMP/elsewhere" -type f -o -type l -o -type d -name 1bit)
if [ -z "$left" ]; then good "nothing is left"; else bad "left: $left"; fi

begin "wrong calls"
call "$ROOT/scripts/install" --prefix relative
fails_well "prefix is 'relative'"
call "$ROOT/scripts/install" --no-build --dir "$TMP/none"
fails_well 'is missing'
call env SUDO_USER=someone "$ROOT/scripts/install" --dir "$TMP/none"
fails_well 'is missing'
says 'make build as yourself'
call "$ROOT/scripts/install" --uninstall --dir "$TMP/none"
fails_well 'nothing was installed'

closing
