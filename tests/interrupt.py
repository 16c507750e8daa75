#!/usr/bin/env python3
"""Sends a signal to a command that waits for it, and prints how the command ended.

    interrupt.py SIGNAL COMMAND...

The signal is sent shortly after the command has installed a handler for it (read from /proc), even on a busy machine.
Without /proc it is sent after two seconds. Prints the exit code, or "late" if the command continues for
a minute.
"""
import signal
import subprocess
import sys
import time

number = getattr(signal, sys.argv[1])
process = subprocess.Popen(sys.argv[2:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def handled():
    """Does the command catch the signal by now?"""
    try:
        with open(f"/proc/{process.pid}/status") as file:
            caught = next(line for line in file if line.startswith("SigCgt:"))
    except (OSError, StopIteration):
        time.sleep(2)
        return True
    return int(caught.split()[1], 16) >> (number - 1) & 1


end = time.monotonic() + 60
while process.poll() is None and time.monotonic() < end and not handled():
    time.sleep(0.01)
time.sleep(0.3)
process.send_signal(number)
try:
    print(process.wait(timeout=60))
except subprocess.TimeoutExpired:
    process.kill()
    print("late")
