#!/bin/sh
# A provider for gloveport in POSIX shell (docs/exec-providers.md).
#
# A sandbox is our server as a process of this machine, in a session of its own. The plain values of a request come as
# variables; what is secret or nested comes on standard input, and `gloveport provider json` takes it out, so that
# nothing else is needed but setsid and flock (util-linux). State is one file for each value.

set -eu
mask=$(umask)
umask 077

state=${GLOVEPORT_PROVIDER_SHELL_STATE:-${XDG_STATE_HOME:-$HOME/.local/state}/gloveport-provider-shell}
mkdir -p "$state"

# Errors: a code of the protocol, a text, and more fields of JSON. Ids need no quoting, they are plain by contract.
refuse() {
    printf '{"error": {"code": "%s", "message": "%s"%s}}\n' "$1" "$2" "${3:-}"
    exit 1
}

# The start of a process, which tells it from a later one of the same number; nothing if it has ended.
started() {
    stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 0
    set -- ${stat##*) }
    case $1 in Z | X) ;; *) echo "${20}" ;; esac
}

runs() { # file with a process and its start
    test -s "$1" && read -r pid start <"$1" && test "$(started "$pid")" = "$start"
}

held() { # file that a living backend has locked
    test -e "$1" && ! flock --shared --nonblock "$1" true
}

live() {
    runs "$1/server" || { test ! -e "$1/server" && runs "$1/maker"; }
}

lifetime() {
    if test ! -e "$1/kept"; then echo backend; else echo kept; fi
}

# A sandbox as JSON. What may hold quotes was stored as JSON.
view() {
    if runs "$1/server"; then
        view_state='"running"'
    elif live "$1"; then
        view_state='"pending"'
    else
        view_state='"stopped", "reason": "its server has ended"'
    fi
    printf '{"id": "%s", "session_id": "%s", "state": %s, "lifetime": "%s", "created": %s, "url": %s' \
        "${1##*/}" "$(cat "$1/session")" "$view_state" "$(lifetime "$1")" "$(cat "$1/created")" "$(cat "$1/url")"
    printf ', "session_key": %s, "labels": %s, "workspace": %s}' \
        "$(cat "$1/key")" "$(cat "$1/labels")" "$(cat "$1/workspace")"
}

# Directories of sandboxes; one without a view is being made or removed.
all() {
    for directory in "$state"/*/; do
        test ! -e "$directory/created" || echo "${directory%/}"
    done
}

of_session() { # the live one, if there are several
    found=
    for directory in $(all); do
        if test "$(cat "$directory/session" 2>/dev/null)" = "$1" && { test -z "$found" || live "$directory"; }; then
            found=$directory
        fi
    done
    echo "$found"
}

# Ends a sandbox with everything in it: the server ends its programs, and a killed one leaves them to its guard.
remove() {
    if runs "$1/server"; then
        read -r server start <"$1/server"
        guard=$(pgrep -P "$server" || true)
        kill -TERM "$server" 2>/dev/null || true
        tries=0
        while test -n "$(started "$server")" && test $tries -lt 100; do
            sleep 0.05
            tries=$((tries + 1))
        done
        kill -KILL "$server" 2>/dev/null || true
        for process in $guard; do
            while test -n "$(started "$process")" && test $tries -lt 200; do
                sleep 0.05
                tries=$((tries + 1))
            done
        done
    fi
    rm -rf "$1"
}

# The view of a sandbox, or null. It may be removed while it is looked at.
answer() {
    shown=null
    if test -n "$1" && test -e "$1/created"; then shown=$(view "$1" 2>/dev/null) || shown=null; fi
    printf '{"sandbox": %s}\n' "$shown"
}

create() {
    request=$(cat)
    json() { printf '%s' "$request" | "$GLOVEPORT_SERVER" provider json "$@"; }

    # One at a time looks for the session and takes it.
    exec 9>"$state/.lock"
    flock 9
    old=$(of_session "$GLOVEPORT_SESSION_ID")
    if test -n "$old"; then
        if live "$old"; then
            refuse session-exists "the session has a sandbox" ", \"id\": \"${old##*/}\""
        fi
        remove "$old"
    fi
    # Named before it is made, so that it is taken back whenever the end comes.
    directory=$state/shell-$(cat /proc/sys/kernel/random/uuid)
    trap 'remove "$directory"' EXIT
    trap 'exit 1' TERM INT HUP
    mkdir "$directory"
    echo "$GLOVEPORT_SESSION_ID" >"$directory/session"
    if test -n "${GLOVEPORT_WORKSPACE:-}"; then
        workspace=$GLOVEPORT_WORKSPACE
        json --quoted /spec/workspace/path >"$directory/workspace"
    else
        workspace=$directory/files
        printf '"%s"' "$workspace" >"$directory/workspace"
    fi
    mkdir -p "$workspace"
    json --quoted /spec/session_key >"$directory/key"
    json --quoted /spec/labels >"$directory/labels"
    echo null >"$directory/url"
    echo "$$ $(started $$)" >"$directory/maker"
    echo "$GLOVEPORT_BACKEND_LOCK" >"$directory/backend"
    if test "$GLOVEPORT_KEEP_ALIVE" = 1; then touch "$directory/kept"; fi
    date +%s.%N >"$directory/created"
    flock --unlock 9
    exec 9>&-

    # The server gets what it is given, and of ours only what every program needs.
    variables=$(json --export /server/environment)
    arguments=$(json /server/arguments/0)
    (
        set -- "$(command -v setsid)" "$GLOVEPORT_SERVER" "$arguments" --port 0 --workspace "$workspace"
        cd "$workspace"
        umask "$mask"
        for name in $(env | sed -n 's/^\(GLOVEPORT_[A-Z_]*\)=.*/\1/p'); do unset "$name"; done
        # From here on every variable may have another value.
        eval "$variables"
        exec "$@"
    ) <&- >"$directory/address" 2>"$directory/log" &
    echo "$! $(started $!)" >"$directory/server"
    tries=0
    while test ! -s "$directory/address"; do
        runs "$directory/server" || refuse start-failed "the server has ended"
        test $tries -lt 1500 || refuse start-failed "the server told no address"
        sleep 0.02
        tries=$((tries + 1))
    done
    echo '{"phase": "started"}'
    sed 's/^listening on \(.*\)$/"\1"/' "$directory/address" >"$directory/url"
    answer "$directory"
    trap - EXIT
}

list() {
    separator=
    printf '{"sandboxes": ['
    for directory in $(all); do
        if test "$GLOVEPORT_ENDED" = 1 || live "$directory"; then
            # It may be removed while it is looked at.
            shown=$(view "$directory" 2>/dev/null) || continue
            printf '%s%s' "$separator" "$shown"
            separator=', '
        fi
    done
    echo ']}'
}

logs() {
    # `tail --pid` ends with the server; a server that has ended leaves a process number that is nobody's.
    lines=${GLOVEPORT_TAIL:-+1}
    directory=$state/$GLOVEPORT_SANDBOX_ID
    if test "$GLOVEPORT_FOLLOW" = 1 && runs "$directory/server"; then
        exec tail -s 0.1 --pid="${pid}" -f -n "$lines" "$directory/log"
    fi
    exec tail -n "$lines" "$directory/log"
}

garbage() {
    separator=
    printf '{"removed": ['
    for directory in "$state"/*/; do
        directory=${directory%/}
        reason=
        if test ! -e "$directory/created"; then
            # Left by a program that was killed while it made it; one that is alive holds the lock.
            flock --nonblock "$state/.lock" test ! -e "$directory/created" && reason="its making was given up"
        elif ! live "$directory"; then
            reason="it has ended"
        elif test ! -e "$directory/kept" && ! held "$(cat "$directory/backend")"; then
            reason="its backend has died"
        elif test -e "$directory/kept" && test "$GLOVEPORT_ALL" = 1; then
            reason="no backend is known to hold it"
        fi
        if test -z "$reason" || test ! -d "$directory"; then continue; fi
        session=$(cat "$directory/session" 2>/dev/null || true)
        printf '%s{"id": "%s", "session_id": %s, "reason": "%s"}' \
            "$separator" "${directory##*/}" "$(test -z "$session" && echo null || echo "\"$session\"")" "$reason"
        separator=', '
        if test "$GLOVEPORT_DRY_RUN" = 0; then remove "$directory"; fi
    done
    echo ']}'
}

case ${1:-} in
describe)
    echo '{"protocol": 1, "name": "shell", "poll_interval": 0.2, "capabilities": {"isolation": "none",
        "host_directories": true, "labels": true, "logs": true, "follow_logs": true, "keep_alive": true}}'
    ;;
create) create ;;
find) answer "$state/$GLOVEPORT_SANDBOX_ID" ;;
find-session) answer "$(of_session "$GLOVEPORT_SESSION_ID")" ;;
list) list ;;
delete)
    directory=$state/$GLOVEPORT_SANDBOX_ID
    if test -e "$directory/created"; then
        remove "$directory"
        echo '{"deleted": true}'
    else
        echo '{"deleted": false}'
    fi
    ;;
logs) logs ;;
collect-garbage) garbage ;;
check)
    works=true
    for tool in setsid flock pgrep tail; do command -v "$tool" >/dev/null || works=false; done
    echo "{\"checks\": [{\"name\": \"setsid, flock, pgrep\", \"works\": $works, \"found\": \"util-linux and procps\",
        \"remedy\": \"install util-linux and procps\"}]}"
    ;;
*) refuse unsupported "the verb ${1:-}" ;;
esac
