"""Makes an image of programs of this machine, as a directory with the layout of OCI.

usage: image.py DIRECTORY PROGRAM...

DIRECTORY must not be there. The image has the programs under their names, the libraries that they load, Python's own modules, and
the files that name users. It has two layers: files of other owners than root are in both.
"""

import gzip
import hashlib
import io
import json
import os
import platform
import re
import subprocess
import sys
import sysconfig
import tarfile
from pathlib import Path

USERS = {"passwd": "root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534::/:/bin/false\n", "group": "root:x:0:\nnogroup:x:65534:\n"}
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def libraries(program):
    """What a program loads when it starts, by the names that it looks for."""
    told = subprocess.run(["ldd", str(program)], capture_output=True, text=True).stdout
    return set(re.findall(r"(/[^\s()]+) \(0x", told))


def files(programs):
    """Names in the image, and the files that they are here."""
    found = {}
    for program in map(Path, programs):
        found[str(program)] = program
    modules = Path(sysconfig.get_path("stdlib"))
    for module in modules.rglob("*"):
        apart = {"test", "tests", "__pycache__", "idlelib", "ensurepip", "site-packages", "dist-packages", "pydoc_data"}
        if module.is_file() and not apart & set(module.relative_to(modules).parts):
            found[str(module)] = module
    loaded = [file for name, file in found.items() if ".so" in name or name in programs]
    for file in loaded:
        for library in libraries(file):
            found[library] = Path(library)
    return found


def layer(programs):
    written = io.BytesIO()
    made = set()
    with tarfile.open(fileobj=written, mode="w") as archive:

        def directory(name, mode=0o755):
            if name in made or name == ".":
                return
            directory(os.path.dirname(name) or ".")
            made.add(name)
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode = tarfile.DIRTYPE, mode
            archive.addfile(entry)

        for name in ("dev", "etc", "proc", "root", "sys", "run", "usr/bin", "var"):
            directory(name)
        directory("tmp", 0o1777)
        for name, target in (("bin", "usr/bin"), ("usr/bin/sh", "bash")):
            link = tarfile.TarInfo(name)
            link.type, link.linkname = tarfile.SYMTYPE, target
            archive.addfile(link)
        for name, file in sorted(files(programs).items()):
            inside = re.sub("^bin/", "usr/bin/", name.lstrip("/"))
            directory(os.path.dirname(inside))
            entry = tarfile.TarInfo(inside)
            entry.mode, entry.size = 0o755, file.stat().st_size
            with file.open("rb") as content:
                archive.addfile(entry, content)
        for name, text in USERS.items():
            entry = tarfile.TarInfo(f"etc/{name}")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
        directory("home")
        owned(archive, "home/again", tarfile.REGTYPE, (7, 7), 0o644)
    return written.getvalue()


def owned(archive, name, kind, owner, mode, link=""):
    entry = tarfile.TarInfo(name)
    entry.type, entry.mode, entry.linkname = kind, mode, link
    entry.uid, entry.gid = owner
    archive.addfile(entry)


def of_others():
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as archive:
        owned(archive, "home/app", tarfile.DIRTYPE, (1000, 1001), 0o700)
        owned(archive, "home/app/file", tarfile.REGTYPE, (1000, 1001), 0o600)
        owned(archive, "home/app/link", tarfile.SYMTYPE, (65535, 65535), 0o777, "file")
        owned(archive, "home/app/with-rights", tarfile.REGTYPE, (0, 0), 0o6755)
        owned(archive, "home/again", tarfile.REGTYPE, (0, 0), 0o644)
    return written.getvalue()


def main(directory, *programs):
    blobs = Path(directory) / "blobs/sha256"
    blobs.mkdir(parents=True)

    def blob(kind, content):
        digest = hashlib.sha256(content).hexdigest()
        (blobs / digest).write_bytes(content)
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{digest}", "size": len(content)}

    def document(kind, content):
        return blob(kind, json.dumps(content).encode())

    contents = [layer(programs), of_others()]
    system = {"architecture": ARCHITECTURES.get(platform.machine(), platform.machine()), "os": "linux"}
    config = document(
        "config.v1+json",
        system
        | {
            "config": {"Env": ["PATH=/usr/local/bin:/usr/bin:/bin", "OF_IMAGE=yes"]},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(content).hexdigest()}" for content in contents]},
        },
    )
    layers = [blob("layer.v1.tar+gzip", gzip.compress(content, 1)) for content in contents]
    manifest = document(
        "manifest.v1+json",
        {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": config, "layers": layers},
    )
    Path(directory, "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    Path(directory, "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [manifest]}))


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
