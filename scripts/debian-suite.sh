# shellcheck shell=bash
# Access to packages of another Debian suite, which are unpacked and never installed. Source it after common.sh.

# debian_suite SUITE: reads the suite's package list into $work/apt; sets $suite_apt, the apt options that reach it.
debian_suite() {
    local base work=${work:?call work_folder first}
    mkdir -p "$work/apt/lists/partial" "$work/apt/cache/archives/partial" "$work/deb"
    # the same mirror that this machine uses, whichever that is
    # shellcheck disable=SC2016
    base=$(apt-get indextargets --format '$(REPO_URI) $(LABEL)' | awk '$2=="Debian"{print $1; exit}')
    # shellcheck disable=SC2016
    [ -n "$base" ] || base=$(apt-get indextargets --format '$(REPO_URI)' | grep -m1 '/debian/*$') ||
        fail "apt knows no Debian archive" "add one to /etc/apt/sources.list and run apt-get update"
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $base $1 main" >"$work/apt/sources.list"
    # the sandbox user of apt could not write into a folder of ours
    suite_apt=(-oDir::Etc::sourcelist="$work/apt/sources.list" -oDir::Etc::sourceparts=/dev/null
        -oDir::State::lists="$work/apt/lists" -oDir::Cache="$work/apt/cache" -oAPT::Sandbox::User="$(id -un)")
    apt-get "${suite_apt[@]}" update >"$work/log" 2>&1 ||
        { tail -n 5 "$work/log" >&2; fail "cannot read the package list of Debian $1" "check the network, or set ONEBIT_SHADER_TOOLS=system"; }
}

# suite_download SUITE PACKAGE...: into $work/deb
suite_download() {
    local suite=$1
    shift
    (cd "$work/deb" && apt-get "${suite_apt[@]}" download -q "$@" >"$work/log" 2>&1) ||
        { tail -n 5 "$work/log" >&2; fail "cannot fetch $* from Debian $suite" "check the network, or set ONEBIT_SHADER_TOOLS=system"; }
}
