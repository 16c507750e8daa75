"""Runs the tests of the package and the examples of its docstrings; prints TAP.

    python tap.py [NAME...]     only tests whose name contains one of these
"""

import doctest
import importlib
import os
import pkgutil
import sys
import unittest

import fullrank

HERE = os.path.dirname(os.path.abspath(__file__))
WANTED = sys.argv[1:]


class Tap(unittest.TestResult):
    count = 0

    def line(self, good, test, extra=""):
        self.count += 1
        print(f"{'ok' if good else 'not ok'} {self.count}{extra} {'' if extra else '- '}{name_of(test)}", flush=True)

    def addSuccess(self, test):
        self.line(True, test)

    def addSkip(self, test, reason):
        self.count += 1
        print(f"ok {self.count} # SKIP {name_of(test)}: {reason}", flush=True)

    def wrong(self, test, error):
        self.line(False, test)
        for one in self._exc_info_to_string(error, test).splitlines():
            print("#  ", one)

    def addError(self, test, err):
        super().addError(test, err)
        self.wrong(test, err)

    addFailure = addError

    def addSubTest(self, test, subtest, err):
        if err is not None:
            super().addSubTest(test, subtest, err)
            self.wrong(subtest, err)


def name_of(test):
    return str(test.id()).replace("fullrank.", "", 1) if hasattr(test, "id") else str(test)


def each(suite):
    for one in suite:
        if isinstance(one, unittest.TestSuite):
            yield from each(one)
        else:
            yield one


def main():
    sys.path.insert(0, HERE)
    suite = unittest.TestSuite([unittest.defaultTestLoader.discover(HERE, "test_*.py")])
    for found in pkgutil.iter_modules(fullrank.__path__):
        if found.name != "_fullrank":
            module = importlib.import_module(f"fullrank.{found.name}")
            suite.addTest(doctest.DocTestSuite(module, optionflags=doctest.ELLIPSIS))
    suite.addTest(doctest.DocTestSuite(fullrank))
    chosen = unittest.TestSuite(t for t in each(suite) if not WANTED or any(w in name_of(t) for w in WANTED))
    result = Tap()
    chosen.run(result)
    print(f"1..{result.count}")
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.exit(code)
