#!/usr/bin/env bash
# Breaks when docs/field-reports.md, the links or the commands of the docs are not true any more.
. "$(dirname "$0")/check.sh"
cd "$ROOT" || exit 1

begin "field reports"
call scripts/field-reports --check
ends_with 0

begin "links between documents"
while IFS=: read -r file link; do
    target=${link%%#*}
    if [ -z "$target" ] || [ -e "$(dirname "$file")/$target" ]; then good "$file: $link"; else bad "$file links to $target, which is not there"; fi
done < <(git ls-files '*.md' | xargs grep -oHE '\]\([^)]+\)' | sed -E 's/\]\(([^)]+)\)/\1/' | grep -v ':https\?:')

begin "make targets named in the docs"
while read -r target; do
    if make -n "$target" >/dev/null 2>&1; then good "make $target"; else bad "make $target is no target"; fi
done < <(git ls-files '*.md' | xargs grep -ohE '(^|`)make [a-z][a-z-]*' | sed 's/.*make //' | sort -u)

begin "scripts named in the docs"
while read -r script; do
    if [ -x "$script" ]; then good "$script"; else bad "$script is not there"; fi
done < <(git ls-files '*.md' ':!models' ':!docs/evidence' | xargs grep -ohE '\bscripts/[a-z][a-z-]*' | sort -u)

begin "commands of 1bit named in the docs"
program=${ONEBIT_PROGRAM:-build/bin/1bit}
if [ -x "$program" ]; then
    while read -r command; do
        call "$program" "$command" --help
        ends_with 0
    done < <(git ls-files '*.md' | xargs grep -ohE '(^|`)1bit [a-z]+' | sed 's/.*1bit //' | sort -u)
else
    skip "$program is not built"
fi

closing
