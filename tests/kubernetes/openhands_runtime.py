"""An unmodified `KubernetesRuntime` of the reference works in pods that it makes itself of an image of ours.

    openhands_runtime.py BINARY

Needs the cluster of `scripts/cluster env`; its node takes images from the engine that GLOVEPORT_TEST_CLUSTER_DOCKER names,
in which the image is built as `tests/reference/docker_runtime.py` does it. The reference works only in a pod of a cluster
with a DNS. What it finds there it finds here in a mount namespace of its own: the files of a service account with no more
rights than it uses, and a hosts file with the addresses of the namespace's services. The cluster and the addresses of its
services are real. Its runtime knows no pause: a sandbox rests when it is closed, which leaves the volume, and goes on when
it is connected to again.

In place of VS Code, which tests/vscode drives, the image has a program that answers. All that was made is removed again.
Prints one line a check and, last, `N passed, N failed, N skipped`; exit code 1 if a check failed.
"""

import asyncio
import base64
import functools
import http.server
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
import urllib.error
import urllib.request
import zipfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "reference"))

import docker_runtime  # noqa: E402  what makes the image

MARK = f"gp-openhands-{os.getpid()}"
BASE = "gloveport-test/debian:12"
SESSION = "drives"
POD = f"openhands-runtime-{SESSION}"
ACCOUNT = "/run/secrets/kubernetes.io/serviceaccount"
# How long the client may take for all that it does.
LIMIT = 400

EDITOR = """#!/usr/bin/env python3
import http.server, socketserver, sys
path = next((word.split("=", 1)[1] for word in sys.argv if word.startswith("--socket-path=")), None)
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "6")
        self.end_headers()
        self.wfile.write(b"editor")
    def address_string(self):
        return "socket"
class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
if path:
    Server(path, Answer).serve_forever()
"""

# What the reference's runtime does with each kind, and nothing else.
RIGHTS = (("", "pods", ("get", "create", "delete")), ("", "services", ("create", "delete")),
          ("", "persistentvolumeclaims", ("get", "create", "delete")),
          ("networking.k8s.io", "ingresses", ("create", "delete")))

EXPECTED = {
    "statuses": ["STATUS$STARTING_RUNTIME", "STATUS$READY"],
    "the user is root": "root\n0\n/workspace",
    "the shell keeps its state": ["", "5 /tmp"],
    "variables arrive": 'a "b"',
    "exit codes arrive": 3,
    "a command that waits gets input": "got it",
    "a file is written and read": "one\ntwo\n",
    "the editor edits": [True, "one\nthree"],
    "a missing file is an error": "ErrorObservation",
    "a cell runs": "21",
    "the kernel keeps its state": "40",
    "AgentSkills are there": True,
    "a file is copied in": ["a.txt", "up.txt"],
    "files are copied out": ["a.txt", "up.txt"],
    "the launcher is our program": "/openhands/bin/gloveport",
    "the URL of VS Code": f"http://{SESSION}.localhost/?tkn=TOKEN&folder=/workspace",
    "the service of VS Code asks for the token": 403,
    "VS Code answers with the token": "editor",
    "our list does not have it": 0,
    "our garbage collection leaves it alone": "here",
    "a second client is attached": "up",
    "it leaves the pod when it is closed": "still",
    "a session without a pod is not attached to": "AgentRuntimeDisconnectedError",
    "a closed sandbox has its volume": [f"persistentvolumeclaim/{POD}-pvc"],
    "it goes on with its files": "up",
    "a deleted sandbox has nothing": [],
}


# --- the client, in a mount namespace of its own ----------------------------------------------------------------------


def prepare(told):
    """Makes this a place like a pod: its account, its names."""
    run = os.path.realpath("/var/run")
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", run], check=True)
    place = os.path.join(run, ACCOUNT.removeprefix("/run/"))
    os.makedirs(place)
    for name in ("token", "namespace", "ca.crt"):
        with open(os.path.join(place, name), "w") as file:
            file.write(told[name])
    subprocess.run(["mount", "--bind", told["hosts"], os.path.realpath("/etc/hosts")], check=True)


def outcome(call):
    """What it gives, or the name of what it raises."""
    try:
        return call()
    except Exception as error:
        return type(error).__name__


def connect(runtime):
    """Once more if its service is not there yet: it does not wait for that, and a pod is ready before its service is."""
    from httpx import ConnectError

    for attempt in range(6):
        try:
            return asyncio.run(runtime.connect())
        except ConnectError:
            if attempt == 5:
                raise
            threading.Event().wait(2)


def drive(told, seen):
    home = told["home"]
    from openhands import agenthub  # noqa: F401  registers the agents
    from openhands.core.config import OpenHandsConfig
    from openhands.core.config.kubernetes_config import KubernetesConfig
    from openhands.events import EventStream
    from openhands.events.action import CmdRunAction, FileEditAction, FileReadAction, FileWriteAction, IPythonRunCellAction
    from openhands.llm.llm_registry import LLMRegistry
    from openhands.runtime.impl.kubernetes.kubernetes_runtime import KubernetesRuntime
    from openhands.runtime.plugins import AgentSkillsRequirement, JupyterRequirement, VSCodeRequirement
    from openhands.storage import get_file_store

    config = OpenHandsConfig()
    config.runtime = "kubernetes"
    config.sandbox.runtime_container_image = told["image"]
    config.enable_browser = False
    config.kubernetes = KubernetesConfig(
        namespace=told["namespace"], resource_cpu_request="20m", resource_memory_request="64Mi",
        resource_memory_limit="1Gi", pvc_storage_size="64Mi",
    )
    registry, store = LLMRegistry(config), get_file_store("local", os.path.join(home, "store"))
    statuses, runtimes = [], []

    def session(attach=False, sid=SESSION):
        made = KubernetesRuntime(
            config, EventStream(f"{MARK}-{len(runtimes)}", store), registry, sid=sid,
            plugins=[AgentSkillsRequirement(), JupyterRequirement(), VSCodeRequirement()], attach_to_existing=attach,
            env_vars={"FROM_CLIENT": 'a "b"'}, status_callback=lambda level, status, text: statuses.append(status.value),
        )
        runtimes.append(made)
        return made

    runtime = session()

    def run(command, runtime=runtime, **more):
        return runtime.run(CmdRunAction(command=command, **more)).content.strip()

    def cell(code):
        return runtime.run_ipython(IPythonRunCellAction(code=code)).content

    connect(runtime)
    seen["statuses"] = list(dict.fromkeys(statuses))
    seen["the user is root"] = run("whoami; id -u; pwd")
    seen["the shell keeps its state"] = [run("x=5; cd /tmp"), run("echo $x $PWD")]
    seen["variables arrive"] = run('echo "$FROM_CLIENT"')
    seen["exit codes arrive"] = runtime.run(CmdRunAction(command="(exit 3)")).exit_code
    waiting = CmdRunAction(command="read line; echo got $line")
    waiting.set_hard_timeout(2, blocking=False)
    runtime.run(waiting)
    seen["a command that waits gets input"] = run("it", is_input=True)
    path = "/workspace/a.txt"
    runtime.write(FileWriteAction(path=path, content="one\ntwo"))
    seen["a file is written and read"] = runtime.read(FileReadAction(path=path)).content
    edited = runtime.edit(FileEditAction(path=path, command="str_replace", old_str="two", new_str="three"))
    seen["the editor edits"] = ["has been edited" in edited.content, run(f"cat {path}")]
    seen["a missing file is an error"] = type(runtime.read(FileReadAction(path="/workspace/none"))).__name__
    seen["a cell runs"] = cell("y = 20\nprint(y + 1)").splitlines()[0]
    seen["the kernel keeps its state"] = cell("print(y * 2)").splitlines()[0]
    seen["AgentSkills are there"] = "one" in cell(f"open_file({path!r})")
    with open(os.path.join(home, "up.txt"), "w") as file:
        file.write("up")
    runtime.copy_to(os.path.join(home, "up.txt"), "/workspace")
    files = runtime.list_files("/workspace")
    seen["a file is copied in"] = sorted(name for name in files if name.endswith(".txt"))
    with zipfile.ZipFile(runtime.copy_from("/workspace")) as archive:
        names = (os.path.basename(name) for name in archive.namelist())
        seen["files are copied out"] = sorted(name for name in names if name.endswith(".txt"))
    seen["the launcher is our program"] = run("readlink -f /openhands/micromamba/bin/micromamba")
    seen["vscode"] = [runtime.vscode_url, runtime.get_vscode_token()]
    ask = functools.partial(told["ask"], runtime.get_vscode_token())
    seen["the service of VS Code asks for the token"], seen["VS Code answers with the token"] = ask()
    seen["our list does not have it"] = told["ours"]("ls", "--all")
    told["ours"]("gc", "--all")
    seen["our garbage collection leaves it alone"] = run("echo here")
    other = session(attach=True)
    asyncio.run(other.connect())
    seen["a second client is attached"] = run("cat /workspace/up.txt", other)
    other.close()
    seen["it leaves the pod when it is closed"] = run("echo still")
    missing = session(attach=True, sid="missing")
    seen["a session without a pod is not attached to"] = outcome(lambda: asyncio.run(missing.connect()))
    runtime.close()
    seen["a closed sandbox has its volume"] = told["objects"](1)
    runtime = session()
    connect(runtime)
    seen["it goes on with its files"] = run("cat /workspace/up.txt", runtime)
    asyncio.run(KubernetesRuntime.delete(SESSION))
    seen["a deleted sandbox has nothing"] = told["objects"](0)


def kubectl(*words, given=None):
    command = [os.environ["GLOVEPORT_TEST_CLUSTER_SCRIPT"], "kubectl", *words]
    environment = {**os.environ, "HOME": os.environ.get("HOME_OF_SCRIPTS", os.environ["HOME"])}
    return subprocess.run(command, env=environment, input=given, capture_output=True, text=True, timeout=120)


def objects(namespace, wanted):
    """The objects of the session, as soon as they are so many."""
    kinds = "pods,services,ingresses,persistentvolumeclaims"
    found, attempt = [], 0
    while attempt == 0 or (len(found) != wanted and attempt < 120):
        if attempt:
            threading.Event().wait(0.5)
        told = kubectl("get", kinds, "--namespace", namespace, "--output", "name", "--ignore-not-found")
        found = told.stdout.split() if told.returncode == 0 else [told.stderr.strip()]
        attempt += 1
    return found


def ask(namespace, token):
    """What the service of the editor answers without the token, and with it."""
    url = f"http://{POD}-svc-code.{namespace}.svc.cluster.local:8081/"
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPCookieProcessor())
    answers = []
    for address in (url, f"{url}?tkn={token}&folder=/workspace"):
        try:
            with opener.open(address, timeout=30) as answer:
                answers.append(answer.read().decode(errors="replace"))
        except urllib.error.HTTPError as error:
            answers.append(error.code)
    return answers


def ours(binary, namespace, home, *words):
    """What our program says of this namespace: how many lines beyond the head of a list."""
    environment = {"PATH": os.environ["PATH"], "HOME": home, "KUBECONFIG": os.environ["KUBECONFIG"],
                   "KUBERNETES_NAMESPACE": namespace}
    command = [binary, "session", "--runtime", "kubernetes", *words]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        return done.stderr
    return sum(SESSION in line for line in done.stdout.splitlines())


def inside():
    """The client: what it saw is the last line of its output."""
    told = json.load(sys.stdin)
    prepare(told)
    namespace = told["namespace"]
    told["ask"] = functools.partial(ask, namespace)
    told["objects"] = functools.partial(objects, namespace)
    told["ours"] = functools.partial(ours, told["binary"], namespace, told["home"])
    seen = {}
    try:
        drive(told, seen)
    except Exception as error:  # the checks that are missing say what was not reached
        seen["the client"] = f"{type(error).__name__}: {error}"
    sys.stdout.flush()
    print("\n" + json.dumps(seen), flush=True)
    # Threads of the reference's do not keep it from its end.
    os._exit(0)


# --- around it --------------------------------------------------------------------------------------------------------


def serve_editor(home):
    """The archive that stands for VS Code's server, served on the loopback, and its URL."""
    folder = os.path.join(home, "served")
    os.mkdir(folder)
    with tarfile.open(os.path.join(folder, "editor.tar.gz"), mode="w:gz") as archive:
        entry = tarfile.TarInfo("editor/bin/openvscode-server")
        entry.size, entry.mode = len(EDITOR), 0o755
        archive.addfile(entry, io.BytesIO(EDITOR.encode()))

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, f"http://127.0.0.1:{server.server_port}/editor.tar.gz"


def build(binary, client, home):
    server, url = serve_editor(home)
    told = docker_runtime.sources()
    base = docker_runtime.base_with_authorities(client, BASE)
    environment = {**os.environ, **told, "HOME": home, "OH_RUNTIME_RUNTIME_IMAGE_REPO": f"{MARK}-runtime"}
    words = [binary, "image", "build", "--base-image", base, "--jupyter", "--vscode", url, "--quiet", "--",
             "--network=host", *(word for name in told for word in ("--build-arg", name))]
    done = subprocess.run(words, env=environment, cwd=home, capture_output=True, text=True, timeout=900)
    server.shutdown()
    return done.returncode, done.stdout.strip(), done.stderr


def account(namespace):
    """A namespace with an account for the client; gives the account's token."""
    rules = [{"apiGroups": [group], "resources": [kind], "verbs": list(verbs)} for group, kind, verbs in RIGHTS]
    role = "rbac.authorization.k8s.io"
    items = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "openhands", "namespace": namespace}},
        {"apiVersion": f"{role}/v1", "kind": "Role", "rules": rules,
         "metadata": {"name": "openhands", "namespace": namespace}},
        {"apiVersion": f"{role}/v1", "kind": "RoleBinding", "metadata": {"name": "openhands", "namespace": namespace},
         "roleRef": {"apiGroup": role, "kind": "Role", "name": "openhands"},
         "subjects": [{"kind": "ServiceAccount", "name": "openhands", "namespace": namespace}]},
    ]
    listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    made = kubectl("apply", "--filename", "-", given=listed)
    if made.returncode != 0:
        raise RuntimeError(made.stderr)
    # Pods wait for the account of their namespace.
    while kubectl("get", "serviceaccount", "default", "--namespace", namespace).returncode != 0:
        threading.Event().wait(0.2)
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/openhands/token"
    answer = kubectl("create", "--raw", path, "--filename", "-", given=json.dumps(request))
    return json.loads(answer.stdout)["status"]["token"]


def name_services(namespace, hosts, ended):
    """Keeps the addresses of the services in the file, as the DNS of a cluster would."""
    template = "jsonpath={range .items[*]}{.spec.clusterIP} {.metadata.name}{\"\\n\"}{end}"
    with open("/etc/hosts") as file:
        before = file.read().rstrip("\n")
    last = None
    while not ended.is_set():
        told = kubectl("get", "services", "--namespace", namespace, "--output", template)
        lines = (line.split() for line in told.stdout.splitlines())
        text = "\n".join([before, *(f"{line[0]} {line[1]}.{namespace}.svc.cluster.local" for line in lines)]) + "\n"
        if told.returncode == 0 and text != last:
            # The same file, as it is mounted.
            with open(hosts, "r+") as file:
                file.write(text)
                file.truncate()
            last = text
        ended.wait(0.3)


def client(binary, image, home, namespace):
    """Runs the client and gives what it saw."""
    hosts = os.path.join(home, "hosts")
    shutil.copy("/etc/hosts", hosts)
    authority = kubectl("config", "view", "--raw", "--output", "json")
    cluster = json.loads(authority.stdout)["clusters"][0]["cluster"]
    if "certificate-authority-data" in cluster:
        certificate = base64.b64decode(cluster["certificate-authority-data"]).decode()
    else:
        with open(cluster["certificate-authority"]) as file:
            certificate = file.read()
    service = kubectl("get", "service", "kubernetes", "--output", "jsonpath={.spec.clusterIP} {.spec.ports[0].port}")
    host, port = service.stdout.split()
    told = {"token": account(namespace), "namespace": namespace, "ca.crt": certificate, "hosts": hosts, "home": home,
            "image": image, "binary": binary}
    environment = {
        **os.environ, "HOME": home, "HOME_OF_SCRIPTS": os.environ["HOME"], "TMPDIR": home, "LOG_LEVEL": "ERROR",
        "NO_PROXY": "*", "no_proxy": "*",
        "KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port,
    }
    ended = threading.Event()
    names = threading.Thread(target=name_services, args=(namespace, hosts, ended))
    names.start()
    words = ["unshare", "--mount", "--propagation", "private", sys.executable, os.path.abspath(__file__), "--inside"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    process = subprocess.Popen(words, env=environment, cwd=home, **pipes)
    try:
        output, _ = process.communicate(json.dumps(told), timeout=LIMIT)
        return json.loads(output.strip().splitlines()[-1])
    except (subprocess.TimeoutExpired, json.JSONDecodeError, IndexError) as error:
        return {"the client": f"{type(error).__name__}: {error}"}
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        ended.set()
        names.join()


def main():
    binary = os.path.abspath(sys.argv[1])
    # A test that runs out of time must not leave pods and images behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    total = len(EXPECTED) + 1
    if "GLOVEPORT_TEST_CLUSTER_DOCKER" not in os.environ:
        print("skipped: no cluster is named; see scripts/cluster env")
        print(f"0 passed, 0 failed, {total} skipped")
        return 0
    import docker

    docker_runtime.MARK = MARK
    os.environ["DOCKER_HOST"] = os.environ["GLOVEPORT_TEST_CLUSTER_DOCKER"]
    engine = docker.from_env(timeout=60)
    home = tempfile.mkdtemp(prefix="reference-kubernetes-")
    passed = failed = 0

    def check(name, value, expected):
        nonlocal passed, failed
        good = docker_runtime.normal(value) == docker_runtime.normal(expected)
        passed, failed = passed + good, failed + (not good)
        print(f"ok      {name}" if good else f"FAILED  {name}: {value!r}, not {expected!r}")

    try:
        code, image, errors = build(binary, engine, home)
        check("an image is built", (code, errors if code else ""), (0, ""))
        seen = client(binary, image, home, MARK) if code == 0 else {}
        url, token = seen.pop("vscode", ("not reached", ""))
        seen["the URL of VS Code"] = url.replace(token, "TOKEN") if url and token else url
        for name, expected in EXPECTED.items():
            check(name, seen.pop(name, "not reached"), expected)
        for name, value in seen.items():
            print(f"        {name}: {value}")
        if failed:
            print(kubectl("get", "pods,events", "--namespace", MARK).stdout)
    finally:
        kubectl("delete", "namespace", MARK, "--ignore-not-found", "--wait=true", "--timeout=60s")
        for image in engine.api.images():
            for tag in image["RepoTags"] or ():
                if tag.startswith(MARK):
                    engine.images.remove(tag, force=True)
        shutil.rmtree(home, ignore_errors=True)
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    if sys.argv[1:] == ["--inside"]:
        inside()
    sys.exit(main())
