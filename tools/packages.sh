#!/bin/sh
# packages.sh - finds missing packages and installs them with apt-get, if possible.
#
#   tools/packages.sh build          what a build needs
#   tools/packages.sh build check    what the tests need too
#
# Needs are tested by use (a command that runs, a library pkg-config knows), not by package name: a
# library from elsewhere counts, and a machine that has everything needs no network and no root
# rights. Fails only if something that every build needs is still missing.
set -u

quiet() { "$@" >/dev/null 2>&1; }

compiles() { # HEADER: the C compiler finds it
    printf '#include <%s>\n' "$1" | quiet cc -E -x c -
}

# The Debian package of each need, and how to test that it is there.
present() {
    case $1 in
    gcc) quiet command -v cc ;;
    libc6-dev) compiles stdlib.h ;;
    cmake) quiet cmake --version ;;
    ninja-build) quiet ninja --version ;;
    pkg-config) quiet pkg-config --version ;;
    zlib1g-dev) quiet pkg-config --exists zlib ;;
    libcurl4-openssl-dev) quiet pkg-config --exists libcurl ;;
    libssl-dev) quiet pkg-config --exists libcrypto ;;
    libsqlite3-dev) quiet pkg-config --exists sqlite3 ;;
    libjansson-dev) quiet pkg-config --exists jansson ;;
    libcairo2-dev) quiet pkg-config --exists cairo ;; # brings a font along
    librandom123-dev) compiles Random123/philox.h ;;
    ca-certificates) [ -s /etc/ssl/certs/ca-certificates.crt ] || ! quiet command -v apt-get ;;
    libopenmpi-dev) quiet command -v mpicc ;;
    openmpi-bin) quiet command -v mpirun ;;
    libcmocka-dev) quiet pkg-config --exists cmocka ;;
    locales) [ -e /usr/share/i18n/locales/de_DE ] && quiet command -v localedef ;;
    python3) quiet python3 --version ;;
    python3-numpy) quiet python3 -c 'import numpy' || quiet /usr/bin/python3 -c 'import numpy' ;;
    python3-dev) for python in python3 /usr/bin/python3; do
        header=$("$python" -c 'import sysconfig; print(sysconfig.get_path("include"))' 2>/dev/null) &&
            [ -e "$header/Python.h" ] && return 0
        done; return 1 ;;
    python3-venv) quiet python3 -c 'import ensurepip' || quiet /usr/bin/python3 -c 'import ensurepip' ;;
    python3-pip) quiet python3 -m pip --version || quiet /usr/bin/python3 -m pip --version ;;
    chromium) quiet command -v chromium || quiet command -v chromium-browser ||
        quiet command -v google-chrome ;; # opens the report
    *) echo "packages.sh: no test for $1" >&2; return 1 ;;
    esac
}

required="" optional=""
for group; do
    case $group in
    build) required="$required gcc libc6-dev cmake ninja-build pkg-config zlib1g-dev
        libcurl4-openssl-dev libssl-dev libjansson-dev libsqlite3-dev libcairo2-dev librandom123-dev"
        optional="$optional ca-certificates" ;; # for downloads by https
    check) required="$required libcmocka-dev" optional="$optional locales python3 python3-numpy
        python3-dev python3-venv python3-pip chromium libopenmpi-dev openmpi-bin" ;;
    *) echo "packages.sh: unknown group $group, expected build or check" >&2; exit 2 ;;
    esac
done

missing() { # PACKAGE...: those of them that are not there
    for package; do
        present "$package" || printf '%s ' "$package"
    done
}

# shellcheck disable=SC2086 # the lists are words
{
    wanted=$(missing $required $optional)
    [ -n "$wanted" ] || exit 0

    as_root=none
    if [ "$(id -u)" = 0 ]; then
        as_root=""
    elif quiet command -v sudo; then
        as_root=sudo
        [ -t 0 ] || as_root="sudo -n" # nobody is there to type a password
    fi

    if ! quiet command -v apt-get; then
        echo "There is no apt-get here to install what is missing: ${wanted}(Debian names)" >&2
    elif [ "$as_root" = none ]; then
        echo "Neither root nor sudo, so install as root: apt-get install $wanted" >&2
    else
        echo "Installing $wanted"
        log=$(mktemp)
        trap 'rm -f "$log"' EXIT
        apt() { # COMMAND...; another apt-get may be at work on a machine that has just started
            $as_root env DEBIAN_FRONTEND=noninteractive \
                apt-get -q -y -o DPkg::Lock::Timeout=120 "$@" </dev/null >>"$log" 2>&1
        }
        install() { apt install --no-install-recommends $wanted; }
        # Package lists may be missing or too old; they are fetched only if this is the case.
        install || { apt update && install; } || { cat "$log" >&2; echo "apt-get failed" >&2; }
    fi

    lacking=$(missing $required)
    if [ -n "$lacking" ]; then
        echo "Needed: a C compiler, cmake, ninja, pkg-config and the development files of zlib," \
            "libcurl, OpenSSL, jansson, SQLite, cairo, Random123 and (for ./check) cmocka;" \
            "Debian packages still missing: $lacking" >&2
        exit 1
    fi
    lacking=$(missing $optional)
    [ -z "$lacking" ] || echo "What needs these will not work, its tests are skipped: $lacking" >&2
}
