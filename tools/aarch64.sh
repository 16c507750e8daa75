#!/bin/sh
# aarch64.sh - builds for AArch64 and shows, under qemu-user, that it computes the same bits as this
# machine.
#
#   tools/aarch64.sh root               build/aarch64-root: the libraries, from Debian's packages
#   tools/aarch64.sh build              cross-builds the preset aarch64, library, tool and tests
#   tools/aarch64.sh test [NAME...]     runs tests of products, functions and fast paths
#   tools/aarch64.sh compare [FULLRANK] every model trained and ranked there and by this machine's
#                                       build: SHA-256 of checkpoints, ranks and scores
#   tools/aarch64.sh                    all of it
#
# Needs Debian's gcc-aarch64-linux-gnu and qemu-user. Packages are downloaded and unpacked with
# separate lists and caches, so this machine's packages do not change, and no root rights are needed.
# qemu is slow, so models and stream are small.
set -eu
cd "$(dirname "$0")/.."
root=$PWD/build/aarch64-root
build=$PWD/build/aarch64

needed="libc6-dev libgcc-12-dev libjansson-dev zlib1g-dev libcurl4-openssl-dev libssl-dev
    libsqlite3-dev libcairo2-dev librandom123-dev libcmocka-dev"

# The mirror of this machine's packages of Debian 12.
mirror() { # shellcheck disable=SC2016 # the format is apt's
    apt-get indextargets --format '$(RELEASE) $(REPO_URI)' 'Created-By: Packages' |
        sed -n 's/^bookworm //p' | head -n 1
}

emulate() { qemu-aarch64 -L "$root" "$@"; }

make_root() {
    [ ! -e "$root/complete" ] || return 0
    fetched=$PWD/build/aarch64-packages
    rm -rf "$root" "$fetched"
    mkdir -p "$root" "$fetched/state/lists/partial" "$fetched/cache/archives/partial" "$fetched/etc"
    : >"$fetched/state/status"
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]" \
        "$(mirror) bookworm main" >"$fetched/etc/sources.list"
    for step in update "install --download-only $needed"; do
        # shellcheck disable=SC2086 # words
        apt-get -q -y -o APT::Architecture=arm64 -o APT::Architectures=arm64 \
            -o APT::Install-Recommends=false -o APT::Sandbox::User=root -o Debug::NoLocking=true \
            -o Dir::State="$fetched/state" -o Dir::State::status="$fetched/state/status" \
            -o Dir::Cache="$fetched/cache" -o Dir::Etc::SourceList="$fetched/etc/sources.list" \
            -o Dir::Etc::SourceParts=/dev/null $step >"$fetched/log" 2>&1 ||
            { cat "$fetched/log" >&2; echo "aarch64.sh: packages cannot be fetched" >&2; exit 1; }
    done
    for package in "$fetched"/cache/archives/*.deb; do dpkg -x "$package" "$root"; done
    rm -rf "$fetched"
    touch "$root/complete"
}

# Tests of code that differs between processors. The other fast paths can be named; their tests take many minutes each
# under qemu.
usual_tests="test_base_os test_base_rng test_nn_gemm test_tgn_fast"

run_tests() {
    for name; do
        if emulate "$build/tests/$name" >"$build/$name.log" 2>&1; then
            echo "ok $name"
        else
            cat "$build/$name.log"
            echo "not ok $name"
            exit 1
        fi
    done
}

compare() { # FULLRANK of this machine
    sh tools/same_bits.sh aarch64 "$1" qemu-aarch64 -L "$root" "$build/fullrank"
}

case ${1-all} in
root) make_root ;;
build) sh tools/build.sh aarch64 ;;
test)
    shift
    # shellcheck disable=SC2086 # words
    [ $# -gt 0 ] || set -- $usual_tests
    run_tests "$@" ;;
compare) compare "${2-build/fullrank}" ;;
all)
    make_root
    sh tools/build.sh aarch64
    # shellcheck disable=SC2086 # words
    run_tests $usual_tests
    sh tools/build.sh release
    compare build/fullrank ;;
*) echo "aarch64.sh: unknown word $1, expected root, build, test or compare" >&2; exit 2 ;;
esac
