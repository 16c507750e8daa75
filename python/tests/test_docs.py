"""Documents tell the truth: the reference is that of the docstrings, examples run, every command has its counterpart."""

import os
import re
import subprocess
import sys
import tempfile
import unittest

import fullrank as fr

SOURCE = os.environ.get("FULLRANK_SOURCE") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")

# The Python counterparts of the tool's commands. A new command needs a line here.
COMMANDS = {
    "demo": "study", "data import": "import_file", "data info": "Events.describe", "data verify": "verify",
    "data get": "download", "data export": "Events.save", "data synth": "synth", "train": "Window.train",
    "rank": "Window.rank", "metrics": "Ranking.metrics", "diagnose minimal": "diagnose.minimal",
    "diagnose membership": "diagnose.membership", "diagnose project": "diagnose.project",
    "bench scaling": "Window.scaling", "compare": "compare", "explain": "explain", "study run": "study",
    "study status": "Study.status", "study report": "Study.report", "study preset": "study_preset", "report": "report",
    "baselines": "baselines", "plugin": "plugin", "models": "models", "version": "version", "audit": "audit",
}
# Names that a reader has, but that a page does not define.
MODEL = """
import numpy

class Model:
    def __call__(self, source, time, catalog):
        return numpy.tile(numpy.asarray(catalog, numpy.float32), (len(source), 1))

    def update(self, source, destination, time):
        assert len(source) == len(destination) == len(time)

model = Model()
"""
OF_THE_TOOL = {"help", "cite", "man", "completions"}


class Docs(unittest.TestCase):
    def page(self, name):
        path = os.path.join(SOURCE, name)
        if not os.path.exists(path):
            self.skipTest(f"{name} is not here")
        return path

    def test_reference(self):
        done = subprocess.run([sys.executable, self.page("tools/python_reference.py"), self.page("docs/python.md"),
                               "--check"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_examples_run(self):
        """Every ```python block of these pages, in a folder where wikipedia.csv is a small stream."""
        for name in ("README.md", "docs/python.md", "docs/tutorial.md"):
            with open(self.page(name), encoding="utf-8") as file:
                blocks = re.findall(r"^```python\n(.*?)^```", file.read(), re.M | re.S)
            with tempfile.TemporaryDirectory() as place:
                fr.synth("tiny").save(os.path.join(place, "wikipedia.csv"))
                for block in blocks:
                    done = subprocess.run([sys.executable, "-c", MODEL + block], cwd=place, capture_output=True, text=True)
                    self.assertEqual((done.returncode, done.stderr), (0, ""), f"{name}: {block}")
            self.assertTrue(blocks, name)

    def test_every_command_is_reachable(self):
        tool = os.environ.get("FULLRANK_TOOL", "")
        if not tool:
            self.skipTest("FULLRANK_TOOL is not set")
        text = subprocess.run([tool, "--help"], check=True, capture_output=True, text=True).stdout
        commands = re.findall(r"^  ([a-z]+(?: [a-z]+)?)  ", text.partition("Commands:\n")[2], re.M)
        self.assertGreater(len(commands), 20)
        window = fr.synth("tiny").window()
        for command in commands:
            if command in OF_THE_TOOL:
                continue
            self.assertIn(command, COMMANDS, f"`fullrank {command}` has no counterpart in Python")
            thing = fr
            for word in COMMANDS[command].split("."):
                thing = window if word == "Window" else getattr(thing, word)


if __name__ == "__main__":
    unittest.main()
