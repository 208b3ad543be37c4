"""Names of images: the reference's functions and ours give the same answers.

    images.py PROGRAM             compares, with names and trees made at random among others
    images.py --golden DIRECTORY  writes what the reference answers, for the tests of the crate

PROGRAM is the example `names` of the crate `image`. Prints one line for each difference and, last, `N passed, N failed,
N skipped`; exit code 1 if there is one.
"""

import hashlib
import json
import os
import random
import string
import subprocess
import sys
import tempfile

REPOSITORY = "registry.example/team/runtime"
os.environ.update(OH_RUNTIME_RUNTIME_IMAGE_REPO=REPOSITORY, LOG_LEVEL="CRITICAL")

from dirhash import dirhash  # noqa: E402
from openhands.runtime.utils import runtime_build as reference  # noqa: E402

BASES = [
    "debian", "debian:11", "ubuntu", "ubuntu:22.04", "nikolaik/python-nodejs:python3.12-nodejs22", "a", "a/b/c/d:Tag_1.2-x",
    "registry.example/team/image:1", "registry.example/team/runtime", "registry.example/team/runtime:oh_v0.62.0_x",
    "mirror.example/registry.example/team/runtime:t", "localhost/a:b", "a" * 32, "a" * 33, f"{'a' * 31}/b", f"{'a' * 40}/{'b' * 40}:c",
    f"x/{'y' * 60}:{'z' * 128}", f"a:{'t' * 90}", f"a:{'t' * 99}", f"a:{'t' * 100}", f"a:{'t' * 101}", f"{'p/' * 50}q:T" , "UPPER.example/a:B",
    "registry.example/eval.x86_64.django__django-11999:latest",
]
HASHES = ["b08f254d76b1c6a7ad924708c0032251", "102aecc0cea025253c0278f54ebef078", "0" * 32, "f" * 32, "0" * 31 + "1", "24"]


def of_base(base):
    repository, tag = reference.get_runtime_image_repo_and_tag(base)
    return [repository, tag, f"oh_v{reference.get_version()}_{reference.get_tag_for_versioned_image(base)}"]


def of_lock(base, browser, inputs):
    """The formula of the reference, with other files than its own."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in zip(("pyproject.toml", "poetry.lock"), inputs):
            with open(os.path.join(folder, name), "w") as file:
                file.write(text)
        place = reference.openhands.__file__
        reference.openhands.__file__ = os.path.join(folder, "__init__.py")
        try:
            return f"oh_v{reference.get_version()}_{reference.get_hash_for_lock_files(base, browser)}"
        finally:
            reference.openhands.__file__ = place


def of_directory(path):
    return dirhash(path, "md5", ignore=[".*/", "__pycache__/", "*.pyc"])


def random_base(random):
    part = lambda: "".join(random.choices(string.ascii_lowercase + string.digits, k=random.randint(1, 30)))  # noqa: E731
    name = "/".join(part() for _ in range(random.randint(1, 5)))
    tag = "".join(random.choices(string.ascii_letters + string.digits + "_", k=random.randint(1, 128)))
    return name + random.choice(["", f":{tag}"])


def random_tree(random, path, depth=0):
    names = ["a", "b.py", "c.pyc", ".hidden", "__pycache__", "ü", "with blank", "d.md", "e", "f", ".g"]
    for name in random.sample(names, random.randint(1, 6)):
        target = os.path.join(path, name)
        if depth < 3 and random.random() < 0.4 and not name.endswith((".pyc", ".py", ".md")):
            os.mkdir(target)
            if random.random() < 0.8:
                random_tree(random, target, depth + 1)
        elif not os.path.exists(target):
            with open(target, "wb") as file:
                file.write(random.randbytes(random.choice([0, 1, 70_000])))
    if random.random() < 0.3 and not os.path.lexists(os.path.join(path, "link")):
        with open(os.path.join(path, "zz"), "wb") as file:
            file.write(b"target")
        os.symlink("zz", os.path.join(path, "link"))


def questions(random):
    """Pairs of a question and the reference's answer."""
    for hex in HASHES + ["".join(random.choices("0123456789abcdef", k=32)) for _ in range(200)]:
        yield {"short": hex}, reference.truncate_hash(hex)
    for base in BASES + [random_base(random) for _ in range(300)]:
        yield {"base": base, "repository": REPOSITORY}, of_base(base)
    for base in BASES[:5]:
        for browser in (True, False):
            inputs = ["one", hashlib.md5(base.encode()).hexdigest() * 500]
            yield {"lock": base, "browser": browser, "inputs": inputs, "repository": REPOSITORY}, of_lock(base, browser, inputs)


def golden(directory):
    short = {hex: reference.truncate_hash(hex) for hex in HASHES}
    bases = {base: of_base(base) for base in BASES}
    locks = [{"base": base, "browser": browser, "inputs": ["one", "two"], "tag": of_lock(base, browser, ["one", "two"])}
             for base in BASES[:3] for browser in (True, False)]
    tree = {"a": "1", "b/c": "2", "b/.d": "", "b/e/f.md": "x", "ü/g": "ß"}
    with tempfile.TemporaryDirectory() as folder:
        for name, text in {**tree, ".h/i": "x", "__pycache__/j": "x", "k.pyc": "x"}.items():
            os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
            with open(os.path.join(folder, name), "w") as file:
                file.write(text)
        value = {"repository": REPOSITORY, "short": short, "bases": bases, "locks": locks,
                 "tree": {"files": tree, "hash": of_directory(folder)}}
    with open(os.path.join(directory, "names.json"), "w") as file:
        json.dump(value, file, indent=2, ensure_ascii=False)
        file.write("\n")


def compare(program):
    source = random.Random(62)
    process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    passed = failed = 0

    def ask(question, expected):
        nonlocal passed, failed
        process.stdin.write(json.dumps(question) + "\n")
        process.stdin.flush()
        answer = json.loads(process.stdout.readline())
        if answer == expected:
            passed += 1
        else:
            failed += 1
            print(f"FAILED  {json.dumps(question)[:300]}: the reference says {expected}, and we {answer}")

    for question, expected in questions(source):
        ask(question, expected)
    for _ in range(40):
        with tempfile.TemporaryDirectory() as folder:
            random_tree(source, folder)
            try:
                expected = of_directory(folder)
            except ValueError:
                expected = {"error": "the directory has no files"}
            ask({"directory": folder}, expected)
    process.stdin.close()
    process.wait(timeout=10)
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    if sys.argv[1] == "--golden":
        golden(sys.argv[2])
    else:
        sys.exit(compare(os.path.abspath(sys.argv[1])))
