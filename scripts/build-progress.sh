# shellcheck shell=bash
# Runs a build by Ninja and shows how far it is, not the compilers' warnings. Source it after common.sh.

# build_with_progress LOG COMMAND...: the status of the command. All that it says is in LOG.
build_with_progress() {
    local log=$1
    shift
    "$@" 2>&1 | (trap '' INT && show_progress "$log") # an interrupted Ninja has last words
    return "${PIPESTATUS[0]}"
}

# show_progress LOG: of Ninja's lines, what a person needs: the step, in place on a terminal, each twentieth part of all steps
# in a log; a failed step as a whole, with its command and output; what Ninja itself has to say.
show_progress() {
    local line step total last=-1 part=0 failed="" warnings=0 said=() terminal="" columns
    if [ -t 2 ] && [ "${TERM:-dumb}" != dumb ]; then
        terminal=$'\r\033[K'
        columns=$(stty size <&2 2>/dev/null | cut -d' ' -f2)
        [ "${columns:-0}" -gt 0 ] || columns=80
    fi
    while IFS= read -r line || [ -n "$line" ]; do
        printf '%s\n' "$line" >&3
        # a build inside a step counts by itself, from one again
        if [[ $line =~ ^\[([0-9]+)/([0-9]+)\]\  ]] && [ "${BASH_REMATCH[1]}" -gt "$last" ]; then
            step=${BASH_REMATCH[1]} total=${BASH_REMATCH[2]} last=$step failed="" said=()
            if [ -n "$terminal" ]; then
                printf '%s%s' "$terminal" "${line:0:columns-1}"
            elif [ $((step * 20)) -ge $((total * (part + 1))) ]; then
                part=$((step * 20 / total))
                printf '%s\n' "$line"
            fi
            continue
        fi
        case $line in
            FAILED:*)
                failed=1
                # a step that shares the terminal spoke before it failed
                printf '%s' "$terminal" ${said[@]+"${said[@]/%/$'\n'}"}
                said=()
                ;;
            'ninja: no work to do.') [ "$last" -lt 0 ] || continue ;; # that of a build inside
            *': warning: '*) warnings=$((warnings + 1)) ;;
        esac
        if [ -n "$failed" ]; then
            printf '%s\n' "$line"
        elif [[ $line == ninja:* ]]; then
            printf '%s%s\n' "$terminal" "$line"
        else
            said+=("$line")
        fi
    done 3>"$1" >&2
    printf '%s' "$terminal" >&2
    [ "$warnings" = 0 ] || say "$warnings warnings of compilers, in $1"
}
