"""What tests share: the output of a function, a directory for files, a Python of its own."""

import contextlib
import io
import os
import subprocess
import sys
import tempfile
import unittest

import gloveport

PACKAGES = os.path.dirname(os.path.dirname(os.path.abspath(gloveport.__file__)))


def printed(function, *args, **kwargs):
    """What a function prints. It returns nothing."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        returned = function(*args, **kwargs)
    assert returned is None, returned
    return output.getvalue()


def run(code, path=(), **environment):
    """What a Python of its own prints, which finds our packages behind those of ``path``."""
    environment = {**os.environ, "PYTHONPATH": "", **environment}
    setup = f"import sys; sys.path[1:1] = {list(path)!r}; sys.path.append({PACKAGES!r})\n"
    done = subprocess.run(
        [sys.executable, "-c", setup + code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True,
        env={key: value for key, value in environment.items() if value is not None}, timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


class InDirectory(unittest.TestCase):
    """Each test has a directory of its own, which is the current one."""

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        self.directory = os.path.realpath(directory.name)
        os.chdir(self.directory)

    def write(self, name, content):
        path = os.path.join(self.directory, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode())
        return path
