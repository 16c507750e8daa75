"""Runs every command of a Markdown page, in order, and compares what it prints with the page.

usage: tutorial.py PAGE FULLRANK [--shown]

A block marked sh is run as it is, or skipped with --shown. In a block without a mark, lines that begin with "$ " are commands, and the lines
after them are their output on stdout; "..." stands for any lines. Prints the differences.
"""
import os
import re
import subprocess
import sys

page, fullrank = sys.argv[1], os.path.abspath(sys.argv[2])
path = os.path.dirname(fullrank) + ":" + os.path.dirname(sys.executable) + ":" + os.environ["PATH"]
count = failed = 0


def run(command, expected):
    global count, failed
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, env={**os.environ, "PATH": path})
    printed = "\n".join(line.rstrip() for line in done.stdout.splitlines())
    wanted = ".*".join(re.escape(part) for part in re.split(r"^\.\.\.$", expected.strip("\n"), flags=re.M))
    good = done.returncode == 0 and re.fullmatch(wanted, printed, re.S)
    count += 1
    failed += not good
    if not good:
        print(f"{command}: exit code {done.returncode}\n{printed}\n{done.stderr}")


for mark, block in re.findall(r"^```(\w*)\n(.*?)^```$", open(page, encoding="utf-8").read(), re.M | re.S):
    if mark == "sh" and "--shown" not in sys.argv:
        run(block, "...")
    elif not mark:
        for command, printed in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.M):
            run(command, printed)
sys.exit(failed > 0 or not count)
