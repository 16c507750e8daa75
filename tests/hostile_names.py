"""Makes the study of hostile_names.sh and checks its output.

    hostile_names.py document STUDY.json      writes the study
    hostile_names.py KIND FILE...             checks files of that kind; silent if all is well

Names of data sets may not hold blanks; the study's own name may hold anything.
"""

import csv
import html.parser
import json
import re
import sqlite3
import sys
import xml.dom.minidom

ESC, BEL = "\x1b", "\x07"
DATA = [
    "<img\u00a0onerror=alert(1)>&amp;\"'",
    "=cmd|'C_calc'!A0",
    "+1+1",
    "@SUM(1)",
    "\\input{x}$x$%&_#^~{}[*]",
    "**b**_i_`c`|d|[l](u)",
    "';DROP\u00a0TABLE\u00a0run;--",
    ESC + "]0;owned" + BEL + ESC + "[31m\u009b31m\u202e\x7f",
]
STUDY = "<script>alert(1)</script> " + ESC + "[2J\n\\write18{x} =1+1 'quoted' \"twice\" ‮"
UNKNOWN = "none" + ESC + "[31m<b>"
problems = []


def say(file, text):
    problems.append(f"{file}: {text}")


def document(path):
    study = {
        "name": STUDY,
        "data": {name: "plain.csv" for name in DATA},
        "models": ["graphmixer"],
        "seeds": [1],
        "baselines": ["recency", "edgebank"] + ([UNKNOWN] if path == "unknown.json" else []),
        "minimal": False,
        "k": [1, 3],
        "settings": {"epochs": 1, "dim": 4, "time-dim": 4},
        "protocol": {"window": 0},
    }
    json.dump(study, open(path, "w"))


def as_json(file, text):
    json.loads(text)


def status(file, text):
    state = json.loads(text)
    keys = " ".join(unit["key"] for unit in state["units"])
    if state["name"] != STUDY:
        say(file, "name is not exact")
    for name in DATA:
        if name not in keys:
            say(file, f"{name!r} is not in any key")


def database(file, _):
    base = sqlite3.connect(f"file:{file}?mode=ro", uri=True)
    if base.execute("PRAGMA integrity_check").fetchone()[0] != "ok":
        say(file, "damaged")
    done = {key.split("/")[0] for (key,) in base.execute("SELECT key FROM run WHERE status = 'done'")}
    for name in DATA:
        if name not in done:
            say(file, f"nothing done for {name!r}")


NUMBER = re.compile(r"[-+]?(\d+(\.\d+)?|inf)$")


def as_csv(file, text):
    for row in csv.reader(text.splitlines(keepends=True), strict=True):
        for cell in row:
            if cell[:1] in tuple("=+-@\t\r") and cell and not NUMBER.match(cell):
                say(file, f"formula {cell!r}")


def markdown(file, text):
    widths = set()
    for line in text.splitlines():
        if not line.startswith("|"):
            continue
        widths.add(len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)))
        plain = re.sub(r"\\.", "", line).replace("<br>", "").replace("<u>", "").replace("</u>", "")
        if re.search(r"[<>`\[\]]", plain):
            say(file, f"live markup in {line!r}")
    if len(widths) > 1:
        say(file, f"rows of {widths} cells")


def latex(file, text):
    known = set("""usepackage begin end centering caption toprule midrule bottomrule addlinespace multicolumn textit
        textbf underline par smallskip footnotesize pm cmidrule textbackslash textasciitilde textasciicircum textless
        textgreater textbar times cdot le ge approx infty rightarrow alpha beta Delta mu sigma tau dots""".split())
    text = re.sub(r"(?m)^%.*$", "", text)  # TeX reads nothing of a line behind its mark
    for word in re.findall(r"(?<!\\)(?:\\\\)*\\([A-Za-z]+)", text):
        if word not in known:
            say(file, f"command \\{word}")
    body = re.sub(r"\\[^A-Za-z]", "", text)
    depth = 0
    for c in body:
        depth += (c == "{") - (c == "}")
        if depth < 0:
            break
    if depth:
        say(file, "braces do not match")
    for line in body.splitlines()[1:]:
        if re.search(r"[%#^~_]", line):
            say(file, f"live character in {line!r}")


def svg(file, text):
    tree = xml.dom.minidom.parseString(text.encode())
    allowed = "svg title rect polyline polygon line circle text g path image".split()
    for node in tree.getElementsByTagName("*"):
        if node.tagName not in allowed:
            say(file, f"element {node.tagName}")
        for name in node.attributes.keys():
            if name.startswith("on"):
                say(file, f"attribute {name}")


def pdf(file, content):
    if not content.startswith(b"%PDF") or not content.rstrip().endswith(b"%%EOF"):
        say(file, "not a whole PDF")
    if b"/JavaScript" in content or b"/OpenAction" in content:
        say(file, "actions")


class Page(html.parser.HTMLParser):
    def __init__(self, file):
        super().__init__()
        self.file, self.kind, self.script, self.text = file, None, "", ""

    def handle_starttag(self, tag, attributes):
        self.kind = dict(attributes).get("type", "code") if tag == "script" else None
        for name, value in attributes:
            if name.startswith("on"):
                say(self.file, f"attribute {name} of {tag}")
        own = tag == "img" and dict(attributes).get("src", "").startswith("data:image/")
        if tag in ("img", "iframe", "object", "embed") and not own:
            say(self.file, f"element {tag}")

    def handle_endtag(self, tag):
        self.kind = None

    def handle_data(self, data):
        if self.kind == "application/json":
            self.script += data
        elif self.kind is None:
            self.text += data
        elif "alert(1)" in data:
            say(self.file, "a name in a script")


def as_html(file, text):
    page = Page(file)
    page.feed(text)
    names = [data["name"] for data in json.loads(page.script)["data"]]
    if names != DATA:
        say(file, f"data {names} in the page")
    for name in DATA[:7]:
        if name not in page.text:
            say(file, f"{name!r} is not shown")
    if "<script>alert(1)</script> \\x1b[2J\\x0a" not in page.text:
        say(file, "the study's name is not shown")
    if re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", page.text):
        say(file, "control characters")


KINDS = {"json": as_json, "status": status, "database": database, "csv": as_csv, "markdown": markdown,
         "latex": latex, "svg": svg, "pdf": pdf, "html": as_html}
if sys.argv[1] == "document":
    document(sys.argv[2])
else:
    for file in sys.argv[2:]:
        binary = sys.argv[1] in ("pdf", "database")
        content = open(file, "rb").read()
        KINDS[sys.argv[1]](file, content if binary else content.decode())
    print("\n".join(problems[:20]), end="")
sys.exit(bool(problems))
