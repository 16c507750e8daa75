"""Writes the reference part of docs/python.md from the docstrings of the installed package.

    python tools/python_reference.py docs/python.md           rewrites what follows the mark
    python tools/python_reference.py docs/python.md --check   fails if that would change it (python/tests/test_docs.py)
"""

import inspect
import re
import sys

import fullrank

MARK = "<!-- reference: written by tools/python_reference.py -->\n"
GROUPS = [
    ("Streams", ["read", "events", "import_file", "download", "synth", "verify", "Events"]),
    ("Windows", ["Window", "Part", "Feed", "Batch", "Truth", "Event", "Scorer"]),
    ("Rank records", ["load", "Ranking", "Records", "Slice", "Expected"]),
    ("Trained models", ["Run"]),
    ("Comparing and explaining", ["compare", "Comparison", "explain", "Explanation", "figures", "Figures", "Figure", "report", "Page", "study", "Study",
                                  "study_preset", "diagnose", "audit", "Audit", "Table"]),
    ("Other people's protocols", ["tgb"]),
    ("What there is", ["metrics", "samplers", "slices", "baselines", "models", "plugin", "presets", "options", "version",
                       "Facts"]),
    ("Errors", ["Error", "UsageError", "InputError", "FileError", "OutOfMemory", "Cancelled", "ForceError", "Warning"]),
]


def prose(thing):
    """The docstring without its examples."""
    text = inspect.cleandoc(thing.__doc__ or "")
    return "\n".join(line.rstrip() for line in text.split("\n>>>")[0].split("\n")).strip()


def signature(name, function):
    parameters = list(inspect.signature(function).parameters.values())
    if parameters and parameters[0].name == "self":
        parameters = parameters[1:]
    words, bare = [], False
    for p in parameters:
        if p.kind is p.KEYWORD_ONLY and not bare:
            words.append("*")
            bare = True
        bare = bare or p.kind is p.VAR_POSITIONAL
        star = {p.VAR_KEYWORD: "**", p.VAR_POSITIONAL: "*"}.get(p.kind, "")
        words.append(star + p.name + ("" if p.default is p.empty else f"={p.default!r}"))
    return f"{name}({', '.join(words)})"


def attributes(cls):
    """`self.name = ...  #: what it is` of the constructor."""
    try:
        source = inspect.getsource(cls.__init__)
    except (OSError, TypeError):
        return
    for line in source.splitlines():
        found = re.match(r"\s+self\.(\w+)[^=]*=.*#: (.*)", line)
        if found and not found[1].startswith("_"):
            yield found[1], found[2]


def members(cls):
    """Methods and properties in the order of the source, those of the class itself."""
    for name, thing in vars(cls).items():
        plain = thing.__func__ if isinstance(thing, staticmethod) else thing
        if name.startswith("_") and name != "__call__":
            continue
        if isinstance(plain, property):
            yield name, plain
        elif inspect.isfunction(plain):
            yield signature(name, plain), plain


def describe(name, thing):
    if inspect.ismodule(thing):
        yield f"### {name}\n\n{prose(thing)}\n\n"
        for inner, one in vars(thing).items():
            if getattr(one, "__module__", None) == thing.__name__ and not inner.startswith("_"):
                yield from describe(f"{name}.{inner}", one)
    elif inspect.isclass(thing):
        yield f"### {name}\n\n{prose(thing)}\n\n"
        rows = [(f"`.{n}`", text) for n, text in attributes(thing)]
        rows += [(f"`.{n}`", prose(member)) for n, member in members(thing)]
        for head, text in rows:
            first, _, rest = text.partition("\n\n")
            yield f"- {head}: {' '.join(first.split())}\n"
            if rest:
                yield "\n" + "\n".join("  " + line if line else "" for line in rest.split("\n")) + "\n\n"
        yield "\n" if rows else ""
    else:
        yield f"### {signature(name, thing)}\n\n{prose(thing)}\n\n"


def main():
    path = sys.argv[1]
    with open(path, encoding="utf-8") as file:
        head, mark, before = file.read().partition(MARK)
    assert mark, f"{path}: found no line {MARK!r}"
    names = [name for _, group in GROUPS for name in group if hasattr(fullrank, name)]
    missing = set(fullrank.__all__) - set(names)
    assert not missing, f"no group has {', '.join(sorted(missing))}"
    text = "\n"
    for title, group in GROUPS:
        text += f"## {title}\n\n" + "".join("".join(describe(name, getattr(fullrank, name))) for name in group if name in names)
    text = re.sub(r"\n{3,}", "\n\n", text).rstrip() + "\n"
    if "--check" in sys.argv:
        sys.exit(0 if text == before else f"{path}: not what the docstrings say; run {sys.argv[0]} {path}")
    with open(path, "w", encoding="utf-8") as file:
        file.write(head + mark + text)


main()
