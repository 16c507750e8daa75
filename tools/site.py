"""Lays out the documentation for mkdocs: the pages of docs/, README.md as the first one, the header by chapters, and
the examples, with links that lead from one to the other.

usage: site.py REPOSITORY OUTPUT

Pages and files of the repository keep their places (docs/study.md, examples/feed.c, include/fullrank.h), so that their
links work as they are; a source file becomes a page that shows it.
"""
import os
import re
import shutil
import sys

repository, output = sys.argv[1:3]
LANGUAGE = {".c": "c", ".h": "c", ".cpp": "cpp", ".py": "python", ".txt": "cmake", ".sh": "sh"}
FENCE = "````"


def read(path):
    with open(os.path.join(repository, path), encoding="utf-8") as file:
        return file.read()


def write(path, text):
    place = os.path.join(output, path)
    os.makedirs(os.path.dirname(place), exist_ok=True)
    with open(place, "w", encoding="utf-8") as file:
        file.write(text)


def listing(path, text):
    kind = LANGUAGE.get(os.path.splitext(path)[1], "")
    return f"{FENCE}{kind}\n{text.rstrip()}\n{FENCE}\n"


def header(path):
    """The header: its opening, then a section for each chapter."""
    first, *rest = re.split(r"^/\* ---- (\d+\. .*?) ---- \*/$", read(path), flags=re.M)
    page = ["# The C interface\n", listing(path, first)]
    for title, text in zip(rest[::2], rest[1::2]):
        page += [f"## {title}\n", listing(path, text.strip("\n"))]
    return "\n".join(page)


def source_page(path):
    """The page that shows a source file."""
    if path.endswith(".h"):
        return header(path)
    return f"# {path}\n\n{listing(path, read(path))}"


def link(page, target):
    """A link of a page: to a page as it is, to a source file by its page, to a folder by its list."""
    if re.match(r"[a-z]+:|#", target):
        return target
    path, _, part = target.partition("#")
    whole = os.path.normpath(os.path.join(os.path.dirname(page), path))
    if os.path.isdir(os.path.join(repository, whole)):
        path = path.rstrip("/") + "/index.md"
    elif not path.endswith((".md", ".png", ".svg")):
        sources.add(whole)
        path += ".md"
    return path + ("#" + part if part else "")


def put_page(path, text):
    write(path, re.sub(r"(?<=\]\()([^)\s]+)(?=\))", lambda found: link(path, found[1]), text))


sources = set()
shutil.rmtree(output, ignore_errors=True)
put_page("index.md", read("README.md"))
for name in ("CHANGELOG.md", "CONTRIBUTING.md", "bench/README.md"):
    put_page(name, read(name))
for name in sorted(os.listdir(os.path.join(repository, "docs"))):
    if name.endswith(".md"):
        put_page("docs/" + name, read("docs/" + name))
    else:
        shutil.copy(os.path.join(repository, "docs", name), os.path.join(output, "docs", name))
put_page("examples/index.md", read("examples/README.md"))
names = [e for e in sorted(os.listdir(os.path.join(repository, "examples/python"))) if e.endswith(".py")]
put_page("examples/python/index.md", "# Examples in Python\n\nPrograms to copy; the tests run them.\n\n" +
         "".join(f"- [{e}]({e})\n" for e in names))
sources.add("include/fullrank.h")
for path in sorted(sources):
    write(path + ".md", source_page(path))
