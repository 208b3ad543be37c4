"""Makes an environment with `ipykernel` for the interpreter that runs this.

    python install.py DIRECTORY

The environment has the packages of the interpreter, too, behind its own. It is made in a temporary directory beside
its place and renamed when it is complete. A lock lets only one process do so at a time. On failure the last line of
the output says why.
"""

import fcntl
import os
import shutil
import subprocess
import sys

PACKAGES = ["ipykernel>=6"]
PIP = ["--quiet", "--disable-pip-version-check", "--no-input", "--timeout", "15", "--retries", "2"]
# Seconds for one step.
LIMIT = 600


def run(*words):
    """Runs a program; answers whether it succeeded, and the last line that it printed."""
    ended = subprocess.run(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=LIMIT,
    )
    lines = ended.stdout.decode(errors="replace").strip().splitlines()
    return ended.returncode == 0, lines[-1].strip() if lines else f"status {ended.returncode}"


def works(directory):
    test = "import sys; sys.path = [p for p in sys.path if p]; import ipykernel.kernelapp"
    python = os.path.join(directory, "bin", "python")
    try:
        return run(python, "-c", test)[0]
    except OSError:
        return False


def packages_of(directory):
    version = "python%d.%d" % sys.version_info[:2]
    return os.path.join(directory, "lib", version, "site-packages")


def add_own_packages(directory):
    """The packages of this interpreter come behind those of the environment."""
    own = [entry for entry in sys.path if os.path.basename(entry) in ("site-packages", "dist-packages")]
    path = os.path.join(packages_of(directory), "gloveport.pth")
    if os.path.exists(path):
        return
    with open(path, "w", encoding="utf-8") as file:
        for entry in own:
            file.write("import site; site.addsitedir(%r)\n" % entry)


def make(directory, place):
    """Makes the environment; answers what went wrong."""
    done, why = run(sys.executable, "-m", "venv", directory)
    if done:
        python = os.path.join(directory, "bin", "python")
        done, why = run(python, "-m", "pip", "install", *PIP, *PACKAGES)
        if not done:
            return why
    else:
        # Some systems have `venv` without what it installs pip from.
        shutil.rmtree(directory, ignore_errors=True)
        if not run(sys.executable, "-m", "pip", "--version")[0]:
            return "it has neither pip nor a complete venv: " + why
        done, why = run(sys.executable, "-m", "venv", "--without-pip", directory)
        if not done:
            return why
        target = ["--target", packages_of(directory)]
        done, why = run(sys.executable, "-m", "pip", "install", *PIP, *target, "pip", *PACKAGES)
        if not done:
            return why
    if not works(directory):
        return "what was installed cannot be imported"
    add_own_packages(directory)
    rename_scripts(os.path.join(directory, "bin"), directory.encode(), place.encode())
    return None


def rename_scripts(directory, old, new):
    """Scripts name their interpreter with its whole path, which is another one after the rename."""
    for entry in os.scandir(directory):
        if entry.is_symlink() or not entry.is_file() or entry.stat().st_size > 1 << 20:
            continue
        with open(entry.path, "rb") as file:
            content = file.read()
        if old in content and b"\0" not in content:
            with open(entry.path, "wb") as file:
                file.write(content.replace(old, new))


def main():
    place = os.path.abspath(sys.argv[1])
    parent, name = os.path.split(place)
    os.makedirs(parent, mode=0o700, exist_ok=True)
    # Below another environment `site` would find that one's packages.
    os.environ.pop("PYTHONHOME", None)
    for variable in ("PIP_TARGET", "PIP_PREFIX", "PIP_USER", "PIP_REQUIRE_VIRTUALENV", "__PYVENV_LAUNCHER__"):
        os.environ.pop(variable, None)
    with open(os.path.join(parent, name + ".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if works(place):
            add_own_packages(place)
            return
        unfinished = os.path.join(parent, name + ".unfinished")
        for left in (unfinished, place):
            if os.path.lexists(left):
                shutil.rmtree(left)
        try:
            why = make(unfinished, place)
            if why is not None:
                sys.exit(why)
            os.rename(unfinished, place)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)


try:
    main()
except (OSError, subprocess.TimeoutExpired) as error:
    sys.exit(str(error))
