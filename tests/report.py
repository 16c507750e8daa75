#!/usr/bin/env python3
"""report.py - opens a study's report.html in a headless Chromium and tries everything in it.

usage: report.py CHROMIUM FULLRANK STUDY-DIRECTORY [--numbers | --shots DIRECTORY]

Speaks the DevTools protocol over --remote-debugging-pipe (file descriptors 3 and 4, JSON ended by
a 0 byte), so the standard library is enough. Prints "pass NAME" or "miss NAME: found"; with
--numbers only what the slider shows is tested, with --shots pictures of every section (light, dark,
narrow, zoomed, print) are written for a person to look at.
"""
import base64
import fcntl
import glob
import json
import os
import select
import subprocess
import sys
import tempfile
import time
import urllib.parse

SAMPLERS = ["uniform", "random", "source-history", "unseen"]
GRID = ["popularity", "tgb-hist"]  # computed beforehand, for some K


class Browser:
    """A headless Chromium and one page in it."""

    def __init__(self, program):
        to_browser, to_us = os.pipe(), os.pipe()
        ends = [fcntl.fcntl(fd, fcntl.F_DUPFD, 10) for fd in (to_browser[0], to_us[1])]

        def place():
            os.dup2(ends[0], 3)
            os.dup2(ends[1], 4)

        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.process = subprocess.Popen(
            [program, "--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu",
             "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking",
             "--disable-component-update", "--disable-extensions", "--hide-scrollbars",
             "--user-data-dir=" + self.profile.name, "about:blank"],
            preexec_fn=place, pass_fds=ends + [3, 4], close_fds=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for fd in ends + [to_browser[0], to_us[1]]:
            os.close(fd)
        self.write, self.read = to_browser[1], to_us[0]
        self.number, self.rest, self.events, self.session = 0, b"", [], None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self.session = session["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")

    def message(self, deadline):
        while b"\0" not in self.rest:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.read], [], [], left)[0]:
                raise TimeoutError("the browser does not answer")
            piece = os.read(self.read, 1 << 20)
            if not piece:
                raise EOFError("the browser has ended")
            self.rest += piece
        one, self.rest = self.rest.split(b"\0", 1)
        return json.loads(one)

    def call(self, method, **params):
        self.number += 1
        request = {"id": self.number, "method": method, "params": params}
        if self.session:
            request["sessionId"] = self.session
        os.write(self.write, json.dumps(request).encode() + b"\0")
        deadline = time.monotonic() + 60
        while True:
            answer = self.message(deadline)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.events.append(answer)

    def run(self, script):
        """The value of a JavaScript expression; promises are waited for."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True,
                           awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(json.dumps(answer["exceptionDetails"])[:500])
        return answer["result"].get("value")

    def wait(self, condition, seconds=120):
        deadline = time.monotonic() + seconds
        while not self.run(condition):
            if time.monotonic() > deadline:
                raise TimeoutError(condition)
            time.sleep(0.02)

    def open(self, path):
        self.call("Page.navigate", url="file://" + path)
        self.wait("document.readyState === 'complete'")

    def key(self, key, code, text=""):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, text=text,
                      windowsVirtualKeyCode=code)

    def shot(self, path, box):
        picture = self.call("Page.captureScreenshot", captureBeyondViewport=True, clip=box)
        with open(path, "wb") as file:
            file.write(base64.b64decode(picture["data"]))

    def size(self, width, height=900, scale=1):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=scale, mobile=False)

    def close(self):
        try:
            self.session = None
            self.call("Browser.close")
        except (OSError, EOFError, TimeoutError, RuntimeError):
            self.process.kill()
        self.process.wait()
        self.profile.cleanup()


def test(name, good, found=""):
    print(f"pass {name}" if good else f"miss {name}: {found}")


# ---- what the tool says ----

def expectations(fullrank, directory, ks, small):
    """{(set, model title, sampler, K): mean MRR over seeds, "full" for the whole catalog}"""
    models = subprocess.run([fullrank, "models", "--json"], check=True, capture_output=True, text=True).stdout
    labels = {one["name"]: one["label"] for one in json.loads(models)}
    sums = {}
    files = sorted(glob.glob(os.path.join(directory, "ranks", "*.npy")))
    out = subprocess.run(
        [fullrank, "metrics", "--json", "--k", ",".join(map(str, ks)), "--small", small,
         "--sampler", ",".join(SAMPLERS[1:] + GRID), *files], check=True, capture_output=True, text=True)
    for one in json.loads(out.stdout):
        # DATA+MODEL+rank, DATA+MODEL+SEED+rank or DATA+MODEL+OBJECTIVE+SEED+rank
        data, name, *rest = map(urllib.parse.unquote, os.path.basename(one["file"]).split("+"))
        title = labels.get(name, name.removeprefix("baseline:"))
        if rest[0] == "bpr":
            title += f" ({rest[0]})"
        sums.setdefault((data, title, "full", 0), []).append(one["mrr"])
        for k, value in one["expected"].items():
            sums.setdefault((data, title, "uniform", int(k)), []).append(value["mrr"])
        for sampler in SAMPLERS[1:] + GRID:
            for k, value in one["sampled"][sampler].items():
                sums.setdefault((data, title, sampler, int(k)), []).append(value["mrr"])
    return {key: None if None in v else sum(v) / len(v) for key, v in sums.items()}


BOARDS = """Object.fromEntries([...document.querySelectorAll('.board:not([hidden])')].map((b) =>
  [b.dataset.set, {now: [...b.querySelectorAll('ol')[0].children].map((li) =>
                     [li.dataset.model, Number(li.dataset.mrr), li.innerText]),
                   full: [...b.querySelectorAll('ol')[1].children].map((li) =>
                     [li.dataset.model, Number(li.dataset.mrr)]),
                   verdict: b.querySelector('.verdict').textContent}]))"""
IDLE = "document.getElementById('boards').dataset.busy === 'no'"


def choose(page, identity, value):
    page.run(f"""(() => {{ const e = document.getElementById({json.dumps(identity)});
        e.value = {json.dumps(str(value))};
        for (const kind of ['input', 'change']) e.dispatchEvent(new Event(kind, {{bubbles: true}}));
        }})()""")
    page.wait(IDLE)


def check_numbers(page, fullrank, directory):
    most = page.run("Number(document.getElementById('k-number').max)")
    ks = sorted({1, 5, 20, 37, most - 1, most})
    for small in ("whole", "ineligible"):
        expected = expectations(fullrank, directory, ks, small)
        choose(page, "small", small)
        for sampler in SAMPLERS + (GRID if small == "whole" else []):
            choose(page, "sampler", sampler)
            worst, compared = 0, 0
            for k in ks if sampler in SAMPLERS else (1, 5, 20):
                choose(page, "k-number", k)
                for data, board in page.run(BOARDS).items():
                    for model, mrr, _ in board["now"]:
                        wanted = expected.get((data, model, sampler, k))
                        if wanted is None:  # K beyond this catalog: skipped there
                            continue
                        compared += 1
                        worst = max(worst, abs(mrr - wanted) if mrr is not None else 1)
                    order = [mrr for _, mrr, _ in board["now"] if mrr is not None]
                    worst = max(worst, 0 if order == sorted(order, reverse=True) else 1)
            test(f"{sampler}, small pools {small}: the page agrees with `fullrank metrics`",
                 compared >= 20 and worst < 1e-9, f"{compared} compared, worst {worst}")
    shown = {(data, model) for data, board in page.run(BOARDS).items() for model, *_ in board["now"]}
    test("every run is there", shown == {key[:2] for key in expected}, shown)
    full = [abs(mrr - expected[data, model, "full", 0])
            for data, board in page.run(BOARDS).items() for model, mrr in board["full"]]
    test("so does the full catalog", full and max(full) < 1e-9, full)
    choose(page, "small", "whole")
    choose(page, "sampler", "uniform")
    choose(page, "k-number", most)
    largest = [b for b in page.run(BOARDS).values()
               if all(abs(x[1] - y[1]) < 1e-12 for x, y in zip(b["now"], b["full"]))]
    test("all negatives are the full catalog", largest, page.run(BOARDS))


def check_controls(page):
    choose(page, "k-number", 20)
    page.run("document.getElementById('k-slider').focus()")
    page.key("ArrowRight", 39)
    page.wait(IDLE)
    up = page.run("document.getElementById('k-number').value")
    page.key("Home", 36)
    page.wait(IDLE)
    home = page.run("document.getElementById('k-number').value")
    page.key("End", 35)
    page.wait(IDLE)
    end = page.run("document.getElementById('k-number').value === "
                   "document.getElementById('k-number').max")
    test("arrow keys, Home and End move the slider", (up, home, end) == ("21", "1", True),
         (up, home, end))
    test("the slider says its K", "K = " in page.run(
        "document.getElementById('k-slider').getAttribute('aria-valuetext')"))
    page.key("Tab", 9)
    page.key("Tab", 9)
    focused = page.run("document.activeElement.dataset.k")
    outline = page.run("getComputedStyle(document.activeElement).outlineStyle")
    test("Tab goes on to the buttons, and shows where", (focused, outline) == ("1", "solid"),
         (focused, outline))
    page.key("Tab", 9)
    page.key("Enter", 13, "\r")
    page.wait(IDLE)
    found = page.run("document.getElementById('k-number').value")
    test("a button sets K", found == "5", found)
    page.wait("/^K = 5\\./.test(document.getElementById('announce').textContent)")
    test("the order is announced", True)
    before = page.run(BOARDS)
    page.run("document.querySelector('#data-filter input').click()")
    page.wait(IDLE)
    test("a data set can be left out", len(page.run(BOARDS)) == len(before) - 1)
    page.run("document.querySelector('#data-filter input').click()")
    page.run("document.getElementById('all-baselines').click()")
    page.wait(IDLE)
    shown = {m for b in page.run(BOARDS).values() for m, _, _ in b["now"]}
    test("baselines can be left out", "recency" not in shown and "CRAFT-R" in shown, shown)
    page.run("document.getElementById('all-baselines').click()")
    page.run("document.querySelector('#model-filter [data-name=\"CRAFT\"]').click()")
    page.wait(IDLE)
    shown = {m for b in page.run(BOARDS).values() for m, _, _ in b["now"]}
    test("so can a model", "CRAFT" not in shown and "recency" in shown, shown)
    page.run("document.querySelector('#model-filter [data-name=\"CRAFT\"]').click()")
    page.wait(IDLE)
    # Different places are marked by signs and words, and their number is correct.
    wrong = []
    for board in page.run(BOARDS).values():
        full = [m for m, _ in board["full"]]
        for i, (model, _, text) in enumerate(board["now"]):
            moved = full.index(model) - i
            sign = "=" if not moved else ("▲ " if moved > 0 else "▼ ") + str(abs(moved))
            if sign not in text:
                wrong.append((model, sign, text))
    test("changes of place are marked", not wrong, wrong)


def check_events(page, directory):
    read = """[...document.querySelectorAll('#event-table tbody tr')].map((tr) =>
        [tr.dataset.row, Number(tr.dataset.difference),
         ...[...tr.cells].map((c) => c.innerText)])"""
    rows = page.run(read)
    sizes = [abs(row[1]) for row in rows]
    test("disagreements are listed, largest first",
         len(rows) == 10 and sizes == sorted(sizes, reverse=True) and sizes[0] > 0, sizes)
    choose(page, "event-kind", "new")
    rows = page.run(read)
    test("new destinations alone", rows and all(row[6] == "new" for row in rows), rows[:2])
    choose(page, "event-count", 100)
    choose(page, "event-kind", "all")
    test("more of them", len(page.run(read)) == 100)
    # The same from the record files: the largest difference between two baselines.
    for place, model in (("event-first", "recency"), ("event-second", "popularity")):
        value = page.run(f"""[...document.getElementById('{place}').options]
            .find((o) => o.text === '{model}').value""")
        choose(page, place, value)
    data = page.run("document.getElementById('event-data').selectedOptions[0].text")
    ranks = []
    for model in ("recency", "popularity"):
        path = os.path.join(directory, "ranks", f"{urllib.parse.quote(data)}+baseline%3A{model}+rank.npy")
        out = subprocess.run([sys.argv[2], "metrics", path, "--per-event", "-", "--quiet"],
                             check=True, capture_output=True, text=True).stdout
        lines = [line.split("\t") for line in out.splitlines() if "\t" in line]
        head = lines[0]
        event, covered, rr = map(head.index, ("event", "covered", "reciprocal_rank"))
        ranks.append({line[event]: float(line[rr]) for line in lines[1:] if line[covered] == "1"})
    differences = sorted((abs(ranks[0][e] - ranks[1][e]) for e in ranks[0]), reverse=True)
    rows = page.run(read)
    same = all(abs(abs(row[1]) - abs(ranks[0][row[0]] - ranks[1][row[0]])) < 1e-6 for row in rows)
    test("they are those of the records",
         same and abs(abs(rows[0][1]) - differences[0]) < 1e-6, (rows[0], differences[0]))


def check_silence(page, path):
    page.run("1")
    asked = [e["params"]["request"]["url"] for e in page.events
             if e.get("method") == "Network.requestWillBeSent"]
    strangers = [u for u in asked if not u.startswith("data:") and u != "file://" + path]
    test("no network request", not strangers, strangers)
    said = [e["params"] for e in page.events
            if e.get("method") in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled",
                                   "Log.entryAdded")]
    test("nothing on the console, no exception", not said, json.dumps(said)[:400])
    # The policy works: a request by the page itself is refused.
    blocked = page.run("""new Promise((done) => {
        document.addEventListener('securitypolicyviolation', (e) => done(e.effectiveDirective));
        fetch('https://example.org/').then(() => done('sent'), () => {});
        setTimeout(() => done('nothing'), 2000); })""")
    test("the policy refuses requests", blocked == "connect-src", blocked)


def check_figures(page):
    """Every scorer of the board is in the figures; a pointer is told values; files come along."""
    scorers = set(page.run("[...document.querySelectorAll('#model-filter input[data-name]')]"
                           ".map((b) => b.dataset.name)"))
    main = {s for s in scorers if not s.endswith(")")}  # "CRAFT (bpr)" has tables of its own
    for name in ("expected", "ranks", "time"):
        words = set(page.run(f"""[...document.querySelector('[download="{name}.svg"]')
            .closest('figure').querySelectorAll('.at-wide text')].map((t) => t.textContent)"""))
        test(f"all scorers are in the figure {name}", main and main <= words, main - words)
    hints = page.run("[...document.querySelectorAll('.at-wide circle > title')]"
                     ".map((t) => t.textContent)")
    test("a pointer is told values", any(h.startswith("CRAFT-R at 20: 0.") for h in hints), hints[:3])
    kinds = page.run("""[...document.querySelectorAll('.get a')].map((a) =>
        [a.download.split('.').pop(), a.href.split(';')[0], a.href.length > 500])""")
    test("figures can be taken along as SVG, PDF and CSV",
         {tuple(k) for k in kinds} == {("svg", "data:image/svg+xml", True),
                                       ("pdf", "data:application/pdf", True),
                                       ("csv", "data:text/csv", True)}, kinds[:3])


def check_agreement(page):
    """Kendall's tau is one number: in short, on the board and in the table."""
    choose(page, "k-number", 20)
    short = page.run("[...document.querySelectorAll('#short .tau')].map((t) => t.textContent)")
    board = page.run("""[...document.querySelectorAll('.board .verdict')].map((v) =>
        /is (-?[\\d.]+)\\./.exec(v.textContent)[1])""")
    table = page.run("""(() => {
        const t = [...document.querySelectorAll('table')].find((t) =>
            t.caption.textContent === 'Agreement of model orders');
        let k = 0; // beside the paper's numbers, a head spans two columns
        for (const h of t.tHead.rows[0].cells) {
            if (h.textContent === 'K = 20') break;
            k += h.colSpan;
        }
        return [...t.tBodies].map((b) => b.rows[1].cells[k].textContent); })()""")
    test("tau is the same everywhere", short and short == board == table, (short, board, table))


def check_tables(page):
    """Columns sort, the first one stays, and tables can be copied."""
    head = """[...document.querySelectorAll('table')].find((t) =>
        t.caption.textContent === 'Main result')"""
    column = f"""[...{head}.tBodies[0].rows].filter((r) => !r.classList.contains('set'))
        .map((r) => parseFloat(r.cells[1].textContent))"""
    before = page.run(column)
    page.run(f"""[...{head}.tHead.querySelectorAll('th')].find((h) =>
        h.tabIndex === 0 && /^(expected-20|ours)/.test(h.textContent)).focus()""")
    page.key("Enter", 13, "\r")
    down = page.run(column)
    page.key("Enter", 13, "\r")
    up = page.run(column)
    test("Enter on a head sorts by it, both ways",
         down == sorted(before, reverse=True) and up == sorted(before), (before, down, up))
    page.size(390)
    page.run(f"{head}.parentElement.scrollLeft = 200")
    left = page.run(f"{head}.tBodies[0].rows[1].cells[0].getBoundingClientRect().left - "
                    f"{head}.parentElement.getBoundingClientRect().left")
    test("the first column stays while the rest scrolls", abs(left) < 1, left)
    page.size(1280)
    silent = page.run("""[...document.querySelectorAll('figure.table')].filter((f) =>
        !/n = \\d|over \\d+ test events/.test(f.querySelector('figcaption')?.textContent) &&
        ![...f.querySelectorAll('thead th')].some((h) => h.textContent === 'events'))
        .map((f) => f.querySelector('caption').textContent)""")
    test("every table says its number of events", silent == ["Where every number comes from"], silent)
    buttons = page.run(f"[...{head}.closest('figure').querySelectorAll('.copies button')]"
                       ".map((b) => b.textContent)")
    test("tables can be copied", buttons == ["CSV", "LaTeX", "Markdown"], buttons)
    text = page.run("""new Promise((done) => {
        document.addEventListener('copy', (e) => done(String(getSelection()) ||
            document.activeElement.value), {once: true});
        navigator.clipboard.writeText = (t) => { done(t); return Promise.resolve(); };
        document.querySelector('.copies button').click(); })""")
    test("what is copied is the table", text.startswith("data") or "," in text.splitlines()[0], text[:80])


def check_contrast(page):
    """WCAG's contrast of every text on the page with what is painted behind it."""
    measure = """(() => {
        const parts = (c) => (c.match(/[\\d.]+/g) || []).map(Number);
        const light = (c) => c.slice(0, 3).map((v) => (v /= 255) <= .04045 ? v / 12.92 :
            ((v + .055) / 1.055) ** 2.4).reduce((s, v, i) => s + v * [.2126, .7152, .0722][i], 0);
        const low = [];
        for (const e of document.querySelectorAll('main *, header *')) {
            if (e.closest('svg') || !e.offsetParent || e.closest(':disabled')) continue;
            if (![...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim())) continue;
            let behind = e, paint;
            do paint = parts(getComputedStyle(behind).backgroundColor);
            while ((paint.length > 3 && paint[3] < 1) && (behind = behind.parentElement));
            if (!behind) paint = parts(getComputedStyle(document.body).backgroundColor);
            const [a, b] = [light(parts(getComputedStyle(e).color)), light(paint)];
            const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
            if (ratio < 4.5) low.push([e.tagName, e.className, e.textContent.slice(0, 30), ratio]);
        }
        // Figures are white with dark text; a filter makes them dark, so colours go through it, too.
        const brush = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
        let texts = 0;
        for (const svg of document.querySelectorAll('.plot svg')) {
            if (!svg.getBoundingClientRect().width) continue;
            const filters = [];
            for (let e = svg; e; e = e.parentElement)
                if (getComputedStyle(e).filter !== 'none') filters.push(getComputedStyle(e).filter);
            const seen = (c) => {
                brush.filter = filters.join(' ') || 'none';
                brush.fillStyle = c;
                brush.fillRect(0, 0, 9, 9);
                return light([...brush.getImageData(4, 4, 1, 1).data]);
            };
            const b = seen(svg.querySelector('rect')?.getAttribute('fill') || '#ffffff');
            for (const t of svg.querySelectorAll('text')) {
                const a = seen(getComputedStyle(t).fill);
                const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
                texts++;
                if (ratio < 4.5) low.push(['figure', '', t.textContent.slice(0, 30), ratio]);
            }
        }
        if (texts < 50) low.push(['figures', '', 'too few texts', texts]);
        return low; })()"""
    for scheme in ("light", "dark"):
        page.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": scheme}])
        low = page.run(measure)
        test(f"text has a contrast of 4.5 at least, {scheme}", not low, low[:5])
    page.call("Emulation.setEmulatedMedia", features=[])


CONTROLS = "a[href], button, input, select, summary, [tabindex='0']"


def check_keyboard(page):
    """Tab alone reaches everything that can be used, shows where it is, and leaves again; keys use it."""
    page.run("""document.querySelectorAll('details').forEach((d) => { d.open = true; });
        window.tabbed = [document.querySelector('.skip')]; tabbed[0].focus()""")
    count = page.run(f"[...document.querySelectorAll({json.dumps(CONTROLS)})].filter((e) =>"
                     " e.offsetParent && !e.disabled).length")
    for _ in range(count + 30):
        page.key("Tab", 9)
        if not page.run("""(() => { const e = document.activeElement;
                if (e === document.body || tabbed.includes(e)) return false;
                tabbed.push(e); e.dataset.outline = getComputedStyle(e).outlineStyle; return true; })()"""):
            break
    missed = page.run(f"""[...document.querySelectorAll({json.dumps(CONTROLS)})].filter((e) => e.offsetParent &&
        !e.disabled && !tabbed.includes(e)).map((e) => e.outerHTML.slice(0, 80))""")
    test("Tab reaches every control", count > 50 and not missed, (count, missed[:5]))
    dim = page.run("tabbed.filter((e) => e.dataset.outline === 'none').map((e) => e.outerHTML.slice(0, 80))")
    test("and always shows where it is", not dim, dim[:5])

    def go(script):  # by Tab alone, from the top
        page.run("document.querySelector('.skip').focus()")
        for _ in range(count + 30):
            page.key("Tab", 9)
            if page.run(f"document.activeElement === {script}"):
                return
        raise RuntimeError("not reached: " + script)

    sampler = "document.getElementById('sampler')"
    go(sampler)
    page.key("ArrowDown", 40)
    page.wait(IDLE)
    test("arrows choose the sampler", page.run(sampler + ".value") == "random", page.run(sampler + ".value"))
    page.key("ArrowUp", 38)
    page.wait(IDLE)
    box = "document.querySelector('#model-filter [data-name=\"recency\"]')"
    go(box)
    for shown in (False, True):
        page.key(" ", 32, " ")
        page.wait(IDLE)
        found = "recency" in {m for b in page.run(BOARDS).values() for m, _, _ in b["now"]}
        test(f"Space {'shows a model again' if shown else 'leaves a model out'}", found == shown, found)
    summary = "document.querySelector('figure details > summary')"
    go(summary)
    page.key("Enter", 13, "\r")
    test("Enter folds a protocol", page.run(summary + ".parentElement.open") is False)
    copy = "document.querySelector('.copies button')"
    page.run("navigator.clipboard.writeText = (t) => { window.copied = t; return Promise.resolve(); }")
    go(copy)
    page.key("Enter", 13, "\r")
    test("Enter copies a table", "," in str(page.run("window.copied")), page.run("window.copied"))


def check_grid(page):
    """K of samplers that were computed beforehand."""
    choose(page, "sampler", "popularity")
    choose(page, "k-number", 19)
    shown = page.run("document.querySelector('.board h4').textContent")
    test("K snaps to what was computed", shown == "K = 20 sampled, precomputed", shown)
    choose(page, "sampler", "uniform")


def check_layout(page, path):
    for width in (1280, 640, 390, 360):  # 640: 200 % zoom of a usual window
        page.size(width)
        wide = page.run("document.documentElement.scrollWidth")
        test(f"nothing is cut off at {width} px", wide <= width, wide)
    page.size(1280)
    names = page.run("""[...document.querySelectorAll('input, select, button')].filter((e) =>
        e.offsetParent && !e.labels?.length && !e.getAttribute('aria-label') && !e.textContent)
        .length""")
    test("every control has a name", names == 0, names)
    test("all figures have a text", page.run(
        "[...document.querySelectorAll('.plot')].every((f) => f.querySelector('svg[aria-label]') && "
        "f.querySelector('figcaption').innerText.length > 20)"))
    page.size(390)
    test("a phone shows narrow figures", page.run(
        "[...document.querySelectorAll('.plot')].every((f) => !f.querySelector('.at-wide').offsetParent"
        " && f.querySelector('.at-narrow svg').getBoundingClientRect().width > 300)"))
    page.size(1280)
    widths = page.run("[...document.querySelectorAll('.plot > .at-wide')].map((d) => "
                      "d.getBoundingClientRect().width / d.closest('main').clientWidth)")
    test("figures are as wide as the text", widths and min(widths) > 0.9, widths)
    ids = page.run("[...document.querySelectorAll('[id]')].map((e) => e.id)")
    test("no identifier occurs twice", len(ids) == len(set(ids)))
    dark = []
    for scheme in ("light", "dark"):
        page.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": scheme}])
        dark.append(page.run("getComputedStyle(document.body).backgroundColor"))
    test("dark mode is dark", dark[0] != dark[1], dark)
    page.call("Emulation.setEmulatedMedia", features=[])
    page.call("Emulation.setScriptExecutionDisabled", value=True)
    page.call("Page.navigate", url="file://" + path)
    page.wait("document.readyState === 'complete'")
    page.wait("document.querySelectorAll('table').length > 5")
    text = page.run("document.querySelector('main').innerText")
    test("without JavaScript the tables are there", "Main result" in text and "CRAFT-R" in text)
    test("and what needs it is not", page.run("document.getElementById('explorer').hidden"))
    page.call("Emulation.setScriptExecutionDisabled", value=False)


def pictures(page, path, folder):
    os.makedirs(folder, exist_ok=True)
    for name, width, scheme in (("light", 1280, "light"), ("dark", 1280, "dark"),
                                ("narrow", 360, "light"), ("zoom", 640, "light")):
        page.size(width)
        page.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": scheme}])
        page.open(path)
        page.wait("document.documentElement.dataset.ready === 'yes' && " + IDLE)
        page.size(width, page.run("document.documentElement.scrollHeight"))
        parts = page.run("[...document.querySelectorAll('section')].map((s) => s.id)")
        for part in ["header", *parts]:
            box = page.run(f"""(() => {{ const b = (document.getElementById('{part}') ||
                document.querySelector('{part}')).getBoundingClientRect();
                return {{x: 0, y: b.y, width: {width}, height: b.height, scale: 1}}; }})()""")
            page.shot(os.path.join(folder, f"{name}-{part}.png"), box)
            if part == "sampling":
                page.shot(os.path.join(folder, f"{name}-top.png"), {**box, "height": 940})
    page.call("Emulation.setEmulatedMedia", features=[])
    paper = page.call("Page.printToPDF", printBackground=False)
    with open(os.path.join(folder, "print.pdf"), "wb") as file:
        file.write(base64.b64decode(paper["data"]))


def main():
    program, fullrank, directory = sys.argv[1:4]
    path = os.path.join(os.path.realpath(directory), "report.html")
    page = Browser(program)
    try:
        page.size(1280)
        page.open(path)
        page.wait("document.documentElement.dataset.ready === 'yes' && " + IDLE)
        test("the page opens", page.run("document.querySelectorAll('.board').length") > 0)
        if "--shots" in sys.argv:
            pictures(page, path, sys.argv[sys.argv.index("--shots") + 1])
            return
        check_numbers(page, fullrank, directory)
        if "--numbers" in sys.argv:
            return
        check_agreement(page)
        check_figures(page)
        check_tables(page)
        check_contrast(page)
        check_grid(page)
        check_keyboard(page)
        check_controls(page)
        check_events(page, directory)
        check_silence(page, path)
        check_layout(page, path)
    finally:
        page.close()


if __name__ == "__main__":
    main()
