#!/bin/sh
# musl.sh - builds against the C library musl and shows that it works there.
#
#   tools/musl.sh root             build/musl-root: the libraries, from Debian's sources
#   tools/musl.sh build            builds the preset musl: library, tool and tests
#   tools/musl.sh test [PATTERN]   runs tests there
#   tools/musl.sh compare [FULLRANK] every model trained and ranked by it and by this machine's
#                                  build: SHA-256 of data, checkpoints, ranks and scores
#   tools/musl.sh                  all of it
#
# Needs Debian's musl-tools and tcl (which makes sqlite's one file). Sources are downloaded with separate
# lists and caches, without root rights. Only the needed part of each library is built:
# curl without TLS, cairo with its built-in font.
set -eu
cd "$(dirname "$0")/.."
root=$PWD/build/musl-root
build=$PWD/build/musl
work=$PWD/build/musl-sources
jobs=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
sources="zlib jansson cmocka sqlite3 openssl curl libpng1.6 pixman cairo"

# The mirror of this machine's packages of Debian 12.
mirror() { # shellcheck disable=SC2016 # the format is apt's
    apt-get indextargets --format '$(RELEASE) $(REPO_URI)' 'Created-By: Packages' |
        sed -n 's/^bookworm //p' | head -n 1
}

fetch_sources() {
    rm -rf "$work"
    mkdir -p "$work/state/lists/partial" "$work/cache/archives/partial" "$work/etc"
    : >"$work/state/status"
    echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]" \
        "$(mirror) bookworm main" >"$work/etc/sources.list"
    for step in update "source --download-only --tar-only $sources"; do
        # shellcheck disable=SC2086 # words
        (cd "$work" && apt-get -q -y -o APT::Sandbox::User=root -o Debug::NoLocking=true \
            -o Dir::State="$work/state" -o Dir::State::status="$work/state/status" \
            -o Dir::Cache="$work/cache" -o Dir::Etc::SourceList="$work/etc/sources.list" \
            -o Dir::Etc::SourceParts=/dev/null $step >log 2>&1) ||
            { cat "$work/log" >&2; echo "musl.sh: sources cannot be fetched" >&2; exit 1; }
    done
}

# musl-gcc sees only musl's headers. The kernel's and Random123's headers, which belong to no library, are linked.
link_headers() {
    mkdir -p "$root/include" "$root/lib/pkgconfig"
    ln -sfn /usr/include/linux "$root/include/linux"
    ln -sfn /usr/include/asm-generic "$root/include/asm-generic"
    ln -sfn "/usr/include/$(gcc -print-multiarch)/asm" "$root/include/asm"
    ln -sfn /usr/include/Random123 "$root/include/Random123"
}

# Unpacks a library and calls the function that builds it, in its folder; the output is shown if it fails.
library() { # NAME FUNCTION
    [ ! -e "$root/$1.done" ] || return 0
    mkdir -p "$work/$1"
    # "set -e" has no effect inside a condition, so the steps run in a separate shell.
    tar -C "$work/$1" --strip-components=1 -xf "$work/$1"_*.orig.tar.*[z2]
    status=0
    (cd "$work/$1" && set -e && "$2") >"$work/$1.log" 2>&1 || status=$?
    if [ $status != 0 ]; then
        tail -n 40 "$work/$1.log" >&2
        echo "musl.sh: $1 cannot be built" >&2
        exit 1
    fi
    touch "$root/$1.done"
}

configured() { # FOLDER OPTION...: for those with a configure script of GNU's kind, whose library is in FOLDER
    folder=$1
    shift
    ./configure --prefix="$root" --host=x86_64-linux-musl --disable-shared --enable-static "$@" &&
        make -j"$jobs" -C "$folder" install
}
build_zlib() { ./configure --prefix="$root" --static && make -j"$jobs" libz.a && make install; }
with_cmake() { # OPTION...
    cmake -G Ninja -B out -DCMAKE_C_COMPILER=musl-gcc -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX="$root" \
        -DCMAKE_INSTALL_LIBDIR=lib -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DBUILD_SHARED_LIBS=OFF "$@" &&
        cmake --build out -j "$jobs" && cmake --install out
}
build_jansson() { with_cmake -DJANSSON_BUILD_DOCS=OFF -DJANSSON_WITHOUT_TESTS=ON -DJANSSON_EXAMPLES=OFF; }
build_cmocka() {
    with_cmake -DWITH_STATIC_LIB=ON -DUNIT_TESTING=OFF -DWITH_EXAMPLES=OFF -DCMAKE_POLICY_VERSION_MINIMUM=3.5
    find out -name 'libcmocka*.a' -exec cp '{}' "$root/lib/libcmocka.a" ';'
    rm -f "$root"/lib/libcmocka.so*
}
build_sqlite3() {
    CC=gcc ./configure --disable-tcl --disable-readline --disable-load-extension && make sqlite3.c
    # shellcheck disable=SC2086 # words
    musl-gcc $CFLAGS -DSQLITE_THREADSAFE=1 -c sqlite3.c && ar rcs "$root/lib/libsqlite3.a" sqlite3.o
    cp sqlite3.h "$root/include"
    printf 'Name: sqlite3\nDescription: sqlite\nVersion: 3\nCflags: -I%s\nLibs: -L%s -lsqlite3\n' \
        "$root/include" "$root/lib" >"$root/lib/pkgconfig/sqlite3.pc"
}
build_openssl() { # only hashes are asked of it
    # shellcheck disable=SC2086 # words
    ./Configure linux-x86_64 --prefix="$root" --libdir=lib no-shared no-asm no-tests no-engine no-module no-legacy no-ec no-dh \
        no-dsa no-des no-aria no-bf no-blake2 no-camellia no-cast no-chacha no-cmac no-cms no-comp no-ct no-gost no-idea \
        no-md4 no-mdc2 no-ocb no-ocsp no-poly1305 no-rc2 no-rc4 no-rmd160 no-scrypt no-seed no-siphash no-siv no-sm2 no-sm3 \
        no-sm4 no-sock no-srp no-srtp no-ssl no-tls no-dtls no-ts no-whirlpool no-psk no-nextprotoneg $CFLAGS
    make -j"$jobs" build_generated && make -j"$jobs" libcrypto.a libcrypto.pc
    cp libcrypto.a "$root/lib" && cp libcrypto.pc "$root/lib/pkgconfig" && cp -r include/openssl "$root/include"
}
build_curl() {
    configured lib --without-ssl --without-zlib --without-brotli --without-zstd --without-libpsl --without-libidn2 \
        --without-nghttp2 --without-librtmp --disable-ldap --disable-ftp --disable-rtsp --disable-dict --disable-telnet \
        --disable-tftp --disable-pop3 --disable-imap --disable-smb --disable-smtp --disable-gopher --disable-mqtt \
        --disable-manual --disable-ntlm
    make -C include install && make install-pkgconfigDATA
}
build_png() { configured .; }
build_pixman() {
    configured pixman --disable-gtk --disable-libpng --disable-openmp && make install-pkgconfigDATA
}
build_cairo() {
    configured src --enable-svg --enable-pdf --enable-png --disable-ps --disable-xlib --disable-xcb --disable-ft --disable-fc \
        --disable-script --disable-interpreter --disable-gobject --disable-trace --disable-full-testing --disable-gtk-doc \
        --disable-valgrind --without-gallium
}

make_root() {
    [ ! -e "$root/complete" ] || return 0
    export CC=musl-gcc CFLAGS="-O1 -fPIC -idirafter $root/include" LDFLAGS="-L$root/lib" CPPFLAGS="-idirafter $root/include"
    export PKG_CONFIG_LIBDIR="$root/lib/pkgconfig"
    fetch_sources
    link_headers
    library zlib build_zlib
    library jansson build_jansson
    library cmocka build_cmocka
    library sqlite3 build_sqlite3
    library openssl build_openssl
    library curl build_curl
    library libpng1.6 build_png
    library pixman build_pixman
    library cairo build_cairo
    rm -rf "$work"
    touch "$root/complete"
}

# Left out in this build: an installation that is tried with this machine's compiler, and tests that run nothing.
others="cli_install|cli_examples|cli_ports|python|symbols|layers|format|scripts|citations"
run_tests() { # PATTERN
    ctest --test-dir "$build" -j "$jobs" -R "$1" -E "^($others)\$" --output-on-failure
}

compare() { # FULLRANK of this machine
    sh tools/same_bits.sh musl "$1" "$build/fullrank"
}

case ${1-all} in
root) make_root ;;
build) sh tools/build.sh musl ;;
test) run_tests "${2-.}" ;;
compare) compare "${2-build/fullrank}" ;;
all)
    make_root
    sh tools/build.sh musl
    run_tests .
    sh tools/build.sh release
    compare build/fullrank ;;
*) echo "musl.sh: unknown word $1, expected root, build, test or compare" >&2; exit 2 ;;
esac
