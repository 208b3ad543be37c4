#!/bin/sh
# setup.sh - a step of the build of a sandbox image
#
#   setup.sh system [jupyter] [vscode]   packages that tools of agents expect
#   setup.sh user NAME                   that user, with id 1000 if it is free, and sudo without a password
#   setup.sh jupyter NAME                IPython and what AgentSkills read documents with, in /openhands/venv
#   setup.sh browser                     Chromium
#   setup.sh vscode npm|URL NAME         VS Code's server in /openhands/.openvscode-server
#
# It knows apt-get and apk. Each step can be repeated.
set -eu

say() { printf 'setup: %s\n' "$*"; }
die() { printf 'setup: error: %s\n' "$*" >&2; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }

family() {
    if have apt-get; then echo apt
    elif have apk; then echo apk
    else die "this base has neither apt-get nor apk, so nothing can be installed in it; build a plain image (--plain), or use a base of Debian, Ubuntu or Alpine"
    fi
}

# install PACKAGE... - registries fail now and then
install() {
    attempt=1
    while ! install_once "$@"; do
        [ "$attempt" -lt 3 ] || die "these packages could not be installed: $*"
        say "attempt $attempt of 3 failed"
        attempt=$((attempt + 1))
        sleep 3
    done
}

install_once() {
    case $family in
        apt)
            export DEBIAN_FRONTEND=noninteractive
            apt-get -q -o Acquire::Retries=3 update &&
                apt-get -q -o Acquire::Retries=3 install -y --no-install-recommends "$@" || return 1
            rm -rf /var/lib/apt/lists/*
            ;;
        apk) apk add --no-cache "$@" ;;
    esac
}

# The installed packages that could be removed again.
packages() { [ "$family" != apt ] || dpkg-query -W -f '${Package}\n' | sort -u; }

# A Python that can make virtual environments and that IPython's kernel runs on.
base_python() {
    for candidate in python3 /usr/bin/python3; do
        if "$candidate" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 8))' >/dev/null 2>&1; then
            command -v "$candidate"
            return 0
        fi
    done
    return 1
}

system() {
    set -- "$@" end
    packages="bash ca-certificates curl git jq procps ripgrep sudo"
    [ "$family" = apk ] && packages="$packages coreutils findutils grep sed shadow"
    while [ "$1" != end ]; do
        case $1 in
            jupyter | vscode)
                if ! base_python >/dev/null; then
                    [ "$family" = apt ] && packages="$packages python3 python3-venv" || packages="$packages python3"
                fi
                ;;
            *) die "unknown part: $1" ;;
        esac
        shift
    done
    # shellcheck disable=SC2086 # words
    install $packages
}

user() {
    name=$1
    if id "$name" >/dev/null 2>&1; then
        say "$name is there already"
    elif have useradd; then
        getent group sudo >/dev/null 2>&1 || groupadd -f -r sudo
        if getent passwd 1000 >/dev/null 2>&1 || getent group 1000 >/dev/null 2>&1; then
            useradd -m -s /bin/bash -U -G sudo "$name"
        else
            groupadd -g 1000 "$name"
            useradd -m -s /bin/bash -u 1000 -g 1000 -G sudo "$name"
        fi
    else
        die "this base has no useradd to make $name with; build without a user (--no-user)"
    fi
    mkdir -p /etc/sudoers.d /openhands/logs /openhands/workspace /workspace
    printf '%s ALL=(ALL) NOPASSWD:ALL\n' "$name" >"/etc/sudoers.d/$name"
    chmod 440 "/etc/sudoers.d/$name"
    chown "$name:" /openhands/logs /openhands/workspace /workspace
}

# owned NAME DIRECTORY - a file that is changed, and be it to what it was, is in the image twice
owned() { [ -z "$1" ] || find "$2" ! -user "$1" -exec chown -h "$1:" {} +; }

jupyter() {
    python=$(base_python) || die "there is no Python from 3.8 on that can make virtual environments"
    [ -x /openhands/venv/bin/python ] || "$python" -m venv --system-site-packages /openhands/venv
    /openhands/venv/bin/python -m pip install -q --disable-pip-version-check --no-cache-dir --retries 5 \
        -r /openhands/setup/requirements.txt
    /openhands/venv/bin/python -c 'import ipykernel; print("setup: ipykernel", ipykernel.__version__)'
    owned "${1:-}" /openhands/venv
}

browser() {
    have chromium && return 0
    id=
    # shellcheck source=/dev/null
    [ ! -r /etc/os-release ] || id=$(. /etc/os-release && printf '%s' "${ID:-}")
    [ "$id" != ubuntu ] || die "Ubuntu has Chromium as a snap only, which does not run in containers; use a base of Debian, or one that has chromium"
    install chromium
    chromium --version || die "Chromium was installed and does not run"
}

vscode() {
    root=/openhands/.openvscode-server
    if [ ! -x $root/bin/openvscode-server ]; then
        case $1 in
            npm)
                tools=
                for tool in g++ make; do have $tool || tools="$tools $tool"; done
                [ "$family" = apt ] || tools="$tools nodejs npm"
                packages >/tmp/packages.before
                # shellcheck disable=SC2086 # words
                [ -z "$tools" ] || install $tools
                packages >/tmp/packages.after
                bash /openhands/setup/vscode.sh $root
                # What came for the build alone is not needed to run it.
                added=$(comm -13 /tmp/packages.before /tmp/packages.after)
                rm /tmp/packages.before /tmp/packages.after
                # shellcheck disable=SC2086 # words
                [ -z "$added" ] || apt-get -q purge -y $added
                ;;
            *)
                mkdir -p $root
                curl -fsSL --retry 3 --connect-timeout 30 --max-time 1200 -o /tmp/vscode.tar.gz "$1"
                tar -xzf /tmp/vscode.tar.gz -C $root --strip-components=1
                rm /tmp/vscode.tar.gz
                ;;
        esac
    fi
    $root/bin/openvscode-server --version || die "VS Code's server does not start"
    owned "${2:-}" $root
}

family=$(family)
step=${1:-}
[ $# -eq 0 ] || shift
case $step in
    system | user | jupyter | browser | vscode) "$step" "$@" ;;
    *) die "unknown step: $step" ;;
esac
