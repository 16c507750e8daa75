#!/usr/bin/env python3
"""Runs a command on a terminal of a given width. Used by cli/wide.sh and cli/terminal.sh.

    tests/terminal.py [--about] COLUMNS COMMAND...

Writes what the command writes and ends with its exit code. With --about the output is one line of facts (exit code,
lines wider than the terminal, escape sequences, lines with a time left), then all lines without colours.
"""
import fcntl
import os
import pty
import re
import struct
import sys
import termios


def run(columns, command):
    """Exit code and output."""
    pid, end = pty.fork()
    if pid == 0:
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        os.environ["TERM"] = "xterm"
        os.execv(command[0], command)
    out = b""
    while True:
        try:
            piece = os.read(end, 65536)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        out += piece
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), out


def describe(code, text, columns):
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text)
    lines = [line for line in re.split(r"[\r\n]", plain) if line.strip()]
    wide = sum(len(line) > columns for line in lines)
    timed = any(re.search(r"\d+%  .*\d:\d\d left  ", line) for line in lines)
    word = {True: "some", False: "no"}
    print(f"code {code}, {wide} too wide, {word[chr(27) in text]} escapes, {word[timed]} time left")
    print("\n".join(lines))


about = sys.argv[1] == "--about"
width, *words = sys.argv[1 + about:]
status, shown = run(int(width), words)
if about:
    describe(status, shown.decode(), int(width))
else:
    sys.stdout.buffer.write(shown.replace(b"\r\n", b"\n"))
    sys.exit(status)
