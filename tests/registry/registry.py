"""Starts a registry with TLS and a password, pushes an image to it, and pulls that.

usage: registry.py BINARY SCRATCH

It runs as root of a network that has nothing in it. SCRATCH is an empty directory. Prints one line a check; the last line counts them.
"""

import base64
import ctypes
import gzip
import hashlib
import io
import json
import os
import platform
import ssl
import subprocess
import sys
import tarfile
import time
import urllib.request
from pathlib import Path

# For documents (RFC 5737): nobody has them. The second one is not in the certificate.
ADDRESS, OTHER, PORT = "192.0.2.1", "192.0.2.2", 5000
USER, PASSWORD = "puller", "correct horse"
LARGE = 100_000_000
COUNTS = {"passed": 0, "FAILED": 0, "skipped": 0}
ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
CONFIG = """version: 0.1
storage: {{filesystem: {{rootdirectory: {scratch}/blobs}}}}
http: {{addr: "0.0.0.0:{port}", tls: {{certificate: {scratch}/server.pem, key: {scratch}/server.key}}}}
auth: {{htpasswd: {{realm: test, path: {scratch}/htpasswd}}}}
log: {{level: error}}
"""


def check(what, is_so, why=""):
    result = "passed" if is_so else "FAILED"
    COUNTS[result] += 1
    print(f"{result}  {what}{'' if is_so else f': {why}'}", flush=True)


def run(*command, **options):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, **options).stdout


def certificates(scratch):
    authority = ("-subj", "/CN=authority of a test", "-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign")
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    run("openssl", "req", "-x509", *key, "-days", 2, "-keyout", scratch / "authority.key", "-out", scratch / "authority.pem", *authority)
    run("openssl", "req", *key, "-keyout", scratch / "server.key", "-out", scratch / "server.csr", "-subj", "/CN=registry")
    (scratch / "extensions").write_text(f"subjectAltName=IP:{ADDRESS}\nbasicConstraints=CA:FALSE\n")
    signs = ("-CA", scratch / "authority.pem", "-CAkey", scratch / "authority.key", "-CAcreateserial", "-extfile", scratch / "extensions")
    run("openssl", "x509", "-req", "-days", 2, "-in", scratch / "server.csr", "-out", scratch / "server.pem", *signs)


def password_file(scratch):
    library = ctypes.CDLL("libcrypt.so.1")
    library.crypt.restype = ctypes.c_char_p
    hashed = library.crypt(PASSWORD.encode(), b"$2b$05$abcdefghijklmnopqrstuu")
    assert hashed.startswith(b"$2b$"), hashed
    (scratch / "htpasswd").write_text(f"{USER}:{hashed.decode()}\n")


class Registry:
    """Its API, as who pushes uses it."""

    def __init__(self, scratch):
        self.base = f"https://{ADDRESS}:{PORT}/v2/"
        self.trust = ssl.create_default_context(cafile=scratch / "authority.pem")
        self.login = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()

    def ask(self, method, path, body=None, kind="application/octet-stream"):
        url = path if path.startswith("https:") else self.base + path
        headers = {"Authorization": self.login, "Content-Type": kind}
        request = urllib.request.Request(url, body, headers, method=method)
        return urllib.request.urlopen(request, context=self.trust, timeout=60)

    def blob(self, name, content, kind):
        digest = "sha256:" + hashlib.sha256(content).hexdigest()
        place = self.ask("POST", f"{name}/blobs/uploads/", b"").headers["Location"]
        self.ask("PUT", f"{place}{'&' if '?' in place else '?'}digest={digest}", content)
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": digest, "size": len(content)}

    def manifest(self, name, tag, content):
        body = json.dumps(content).encode()
        self.ask("PUT", f"{name}/manifests/{tag or 'sha256:' + hashlib.sha256(body).hexdigest()}", body, content["mediaType"])
        return {"mediaType": content["mediaType"], "digest": "sha256:" + hashlib.sha256(body).hexdigest(), "size": len(body)}


def tree(entries):
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as archive:
        for name, kind, mode, content in entries:
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode = kind, mode
            if kind == tarfile.SYMTYPE:
                entry.linkname, content = content, b""
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return written.getvalue()


def push(registry, name):
    """An image for this machine and others behind one tag; the digest of its configuration."""
    shell = Path("/bin/busybox").read_bytes()
    words = ("sh", "cat", "ls", "wc", "id", "mkdir", "rm", "env", "true", "sleep", "stat", "test", "echo", "sha256sum", "cut")
    directories = [(place, tarfile.DIRTYPE, 0o755, b"") for place in ("bin", "etc", "root", "proc", "sys", "dev")]
    files = [("bin/busybox", tarfile.REGTYPE, 0o755, shell), ("etc/passwd", tarfile.REGTYPE, 0o644, b"root:x:0:0::/root:/bin/sh\n")]
    links = [(f"bin/{word}", tarfile.SYMTYPE, 0o777, "busybox") for word in words]
    noise = os.urandom(1_000_000)
    large = noise * (LARGE // len(noise))
    first, second = tree(directories + [("tmp", tarfile.DIRTYPE, 0o1777, b"")] + files + links), tree([("large", tarfile.REGTYPE, 0o644, large)])
    # What is not compressed is as large on its way.
    layers = [registry.blob(name, gzip.compress(first, 6), "layer.v1.tar+gzip"), registry.blob(name, second, "layer.v1.tar")]
    diffs = ["sha256:" + hashlib.sha256(content).hexdigest() for content in (first, second)]
    offered = []
    digest = None
    for architecture, system in (("riscv64", "linux"), (ARCHITECTURE, "windows"), (ARCHITECTURE, "linux"), ("unknown", "unknown")):
        is_own = (architecture, system) == (ARCHITECTURE, "linux")
        config = {"architecture": architecture, "os": system, "config": {"Env": ["PATH=/bin", f"OF={architecture}"]}}
        config["rootfs"] = {"type": "layers", "diff_ids": diffs if is_own else []}
        config = registry.blob(name, json.dumps(config).encode(), "config.v1+json")
        kind = "application/vnd.oci.image.manifest.v1+json"
        content = {"schemaVersion": 2, "mediaType": kind, "config": config, "layers": layers if is_own else []}
        offered.append(registry.manifest(name, None, content) | {"platform": {"architecture": architecture, "os": system}})
        digest = config["digest"] if is_own else digest
    index = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": offered}
    return digest, registry.manifest(name, "1", index)["digest"], hashlib.sha256(large).hexdigest()


class Client:
    def __init__(self, binary, scratch):
        self.binary, self.scratch = binary, scratch
        (scratch / "docker").mkdir()
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(scratch), "DOCKER_CONFIG": str(scratch / "docker")}
        self.trusted = {"SSL_CERT_FILE": str(scratch / "authority.pem")}

    def log_in(self, password):
        text = base64.b64encode(f"{USER}:{password}".encode()).decode()
        (self.scratch / "docker/config.json").write_text(json.dumps({"auths": {f"{ADDRESS}:{PORT}": {"auth": text}}}))

    def call(self, *words, trusted=True):
        environment = self.environment | (self.trusted if trusted else {})
        return subprocess.run([self.binary, *words], env=environment, capture_output=True, text=True, timeout=120)

    def refused(self, what, words, reference, trusted=True):
        began = time.monotonic()
        told = self.call("image", "pull", "--quiet", reference, trusted=trusted)
        told_all = told.returncode != 0 and all(word in told.stderr for word in words) and PASSWORD not in told.stderr
        check(what, told_all and time.monotonic() - began < 20, f"{told.returncode}: {told.stdout}{told.stderr}")


def main(binary, scratch):
    scratch = Path(scratch)
    for command in (("link", "set", "lo", "up"), ("address", "add", f"{ADDRESS}/32", "dev", "lo"), ("address", "add", f"{OTHER}/32", "dev", "lo")):
        run("ip", *command)
    certificates(scratch)
    password_file(scratch)
    (scratch / "config.yml").write_text(CONFIG.format(scratch=scratch, port=PORT))
    with (scratch / "registry.log").open("wb") as log:
        server = subprocess.Popen(["docker-registry", "serve", scratch / "config.yml"], stdout=log, stderr=log, env={"PATH": os.environ["PATH"]})
    try:
        registry = Registry(scratch)
        for _ in range(200):
            try:
                registry.ask("GET", "").close()
                break
            except OSError:
                assert server.poll() is None, (scratch / "registry.log").read_text()
                time.sleep(0.05)
        config, index, large = push(registry, "team/image")
        client, reference = Client(binary, scratch), f"{ADDRESS}:{PORT}/team/image:1"
        client.refused("an authority that nobody knows is refused, with what to do", ("UnknownIssuer", "update-ca-certificates", "SSL_CERT_FILE"), reference, False)
        client.refused("a certificate for another name is refused", ("certificate", OTHER), f"{OTHER}:{PORT}/team/image:1")
        client.refused("without credentials it says how to log in", ("docker login",), reference)
        client.log_in("wrong")
        client.refused("a wrong password is refused", ("docker login", "refused"), reference)
        client.log_in(PASSWORD)
        client.refused("what it does not have is told", ("check the name and the tag",), f"{ADDRESS}:{PORT}/team/image:2")
        nothing = json.loads(client.call("image", "ls", "--json").stdout)
        check("nothing is kept of what was refused", nothing == [], nothing)
        began = time.monotonic()
        pulled = client.call("image", "pull", "--quiet", reference)
        took = time.monotonic() - began
        check("of several systems the one of this machine is pulled", pulled.stdout.strip() == config, pulled.stdout + pulled.stderr)
        check("a layer of 100 MB takes less than 60 s", took < 60, took)
        by_digest = client.call("image", "pull", "--quiet", f"{ADDRESS}:{PORT}/team/image@{index}")
        check("the same is had by its digest", by_digest.stdout.strip() == config, by_digest.stdout + by_digest.stderr)
        stored = json.loads(client.call("image", "ls", "--json").stdout)
        check("it is kept once", len(stored) == 1 and len(stored[0]["images"]) == 2 and stored[0]["bytes"] > LARGE, stored)
        command = "sha256sum /large | cut -c 1-64; echo $OF"
        ran = client.call("run", "--isolation", "container", "--image", reference, command)
        if "cannot be had here" in ran.stderr:
            COUNTS["skipped"] += 1
            print(f"skipped  a sandbox is made from it: {ran.stderr.strip()}")
        else:
            check("a sandbox is made from it", ran.stdout.split() == [large, ARCHITECTURE], ran.stdout + ran.stderr)
        log = (scratch / "registry.log").read_text()
        check("the registry has had no trouble", "panic" not in log, log[-500:])
    finally:
        server.kill()
        server.wait()
    print(f"{COUNTS['passed']} passed, {COUNTS['FAILED']} failed, {COUNTS['skipped']} skipped")
    sys.exit(1 if COUNTS["FAILED"] else 0)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
