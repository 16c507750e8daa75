#!/bin/sh
# site.sh - the documentation as a static site with search, in build/site.
#
#   tools/site.sh [PYTHON]
#
# Needs mkdocs-material from PyPI (pip install mkdocs-material) in the given Python; nothing else
# does. A broken link or any other warning of mkdocs is an error.
set -eu
cd "$(dirname "$0")/.."
python=${1:-python3}
if ! "$python" -c 'import material' 2>/dev/null; then
    echo "site.sh: $python has no mkdocs-material; pip install mkdocs-material" >&2
    exit 1
fi
"$python" tools/site.py . build/site-pages
log=build/site-log
if ! NO_MKDOCS_2_WARNING=1 "$python" -m mkdocs build --strict --config-file mkdocs.yml >$log 2>&1; then
    cat $log >&2
    exit 1
fi
echo "build/site/index.html"
