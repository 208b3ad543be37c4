"""What each command block of the documents needs, by its file and the words that its first line begins with."""

import shutil
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Plan:
    # Runs before the block, in its directory: what the reader has there.
    given: str = ""
    # Lines that begin with these words are left out, for a reason.
    without: dict = field(default_factory=dict)
    # Why the whole block does not run.
    skip: str = ""
    # `docker`: an engine, with images under the names that the documents use. `cluster`: a namespace of its own in a cluster,
    # whose node has these images. `root`: a file system of its own.
    needs: tuple = ()
    # Seconds.
    limit: int = 120


PROJECT = r"""
git init -q . && git config user.email reader@example.org && git config user.name Reader
printf 'test:\n\t@echo tested\n' > Makefile
mkdir -p src project notes
seq 1 30 | sed 's/^/line /' > src/main.rs && echo 'fn old() {}' >> src/main.rs
echo '// TODO: more' >> src/main.rs
echo 'a draft' > draft.txt; echo 'a note' > notes.txt; echo 'of a project' > project/file
echo 'echo from the script' > script.sh
"""
# A repository where the documents have one of the network.
REPOSITORY = r"""
git init -q "$HOME/repository" && printf 'all:\n\t@echo made\n' > "$HOME/repository/Makefile"
git -C "$HOME/repository" add . && git -C "$HOME/repository" -c user.email=a@example.org -c user.name=A commit -qm made
git config --file "$HOME/.gitconfig" "url.file://$HOME/repository.insteadOf" https://example.org/x
"""
SERVER = "gloveport serve --workspace . --port 8000\n"
SESSION = "ID=$(gloveport session start -q --runtime docker --image debian:13 --id ID)\n"
MCP = 'PATH="$CACHE/mcp/bin:$PATH"\n'
# A site to browse.
SITE = r"""
mkdir site && echo '<title>Site</title><form><input name="q" aria-label="Search"></form><a href="/">Next</a>' > site/index.html
python3 -m http.server 3000 --bind 127.0.0.1 --directory site >/dev/null 2>&1 &
curl -sf --retry 50 --retry-delay 1 --retry-connrefused http://127.0.0.1:3000/ >/dev/null
"""
SESSIONS = "openssl rand -hex 32 > key\ngloveport gateway --port 8080 --key-file key --sessions-directory sessions\n"
VSCODE = 'PATH="$CACHE/vscode/code-server/bin:$PATH"\n'
EXAMPLES = 'ln -s "$CHECKOUT/examples" examples\n'
TRAJECTORY = r"""
echo '[{"id": 0, "source": "user", "action": "message", "args": {"content": "a task"}},
       {"id": 1, "source": "agent", "action": "run", "args": {"command": "echo again"}}]' > trajectory.json
printf '[core]\nruntime = "local"\n' > config.toml
"""
NO_NETWORK = "it reads registries of the network"

PLANS = {
    ("docs/isolation.md", "gloveport run --isolation container --network"): Plan(given=PROJECT),
    ("docs/isolation.md", "gloveport run --isolation container --image"): Plan(skip=NO_NETWORK),
    ("docs/isolation.md", "gloveport session start --secret"): Plan(given="export GITHUB_TOKEN=the-token-of-a-reader\n"),
    ("docs/isolation.md", "gloveport session start build --workspace"): Plan(given=PROJECT),
    ("docs/isolation.md", "gloveport session network log"): Plan(
        given="gloveport session start build --isolation container --network example.org\n"
    ),
    ("README.md", "cargo run --release"): Plan(
        given='cd "$CHECKOUT"', without={"scripts/test": "this is a part of it"}, limit=1800
    ),
    ("README.md", "cargo install --locked"): Plan(
        given='cd "$CHECKOUT"; export CARGO_INSTALL_ROOT="$HOME/.cargo"', limit=1800
    ),
    ("README.md", "gloveport run 'make test'"): Plan(given=PROJECT),
    ("README.md", "export SANDBOX_RUNTIME_CONTAINER_IMAGE"): Plan(skip=NO_NETWORK),
    ("README.md", "gloveport mcp install"): Plan(skip="it asks at a terminal"),
    ("README.md", "gloveport session start build"): Plan(needs=("docker",)),
    ("docs/tour.md", "gloveport run 'cd /tmp"): Plan(given=PROJECT + "mkdir work && cp Makefile work\n"),
    ("docs/tour.md", "gloveport serve --plugin vscode"): Plan(given=VSCODE, needs=("vscode",)),
    ("docs/tour.md", "id=$(gloveport session start)"): Plan(
        # What stands for the network's is a repository of the reader's own, which a sandbox that is kept apart does not see.
        given=PROJECT
        + REPOSITORY
        + 'cp "$CHECKOUT/examples/providers/process.py" my-provider\nexport SANDBOX_ISOLATION=none\n'
    ),
    ("docs/tour.md", "gloveport run --runtime docker"): Plan(
        needs=("docker",), without={"gloveport image build": NO_NETWORK}
    ),
    ("docs/tour.md", "gloveport view -n 10:20"): Plan(
        given=PROJECT + "gloveport serve --workspace . --port 8000\nmkdir -p /workspace\necho out > /workspace/out.log\n",
        needs=("root",),
    ),
    ("docs/tour.md", "gloveport mcp install"): Plan(),
    ("docs/tour.md", "gloveport conformance"): Plan(
        given="(mkdir a b)\ngloveport serve --workspace a --port 8000\ngloveport serve --workspace b --port 8001\n",
        limit=300,
    ),
    # In the root of its own, the user that it makes has a number that nobody has.
    ("docs/tour.md", "gloveport action-execution-server"): Plan(
        given="sed -i '/^[^:]*:[^:]*:1000:/d' /etc/passwd\n", needs=("root",)
    ),
    ("docs/tour.md", "gloveport replay"): Plan(given=TRAJECTORY),
    ("docs/tour.md", 'curl -H "X-Session-API-Key'): Plan(given=PROJECT + SERVER),
    ("docs/tour.md", "glove() {"): Plan(
        given=PROJECT + "seq 1 1000 > big.log\n" + SERVER, without={"glove -N": "it watches until it is ended"}
    ),
    ("CONTRIBUTING.md", "cargo build"): Plan(skip="this runs on what it builds"),
    ("CONTRIBUTING.md", "scripts/test"): Plan(skip="this is a part of it"),
    ("CONTRIBUTING.md", "tests/docker/run"): Plan(skip="the step `docker` of scripts/test is this"),
    ("CONTRIBUTING.md", "tests/kubernetes/run"): Plan(skip="the step `kubernetes` of scripts/test is this"),
    ("docs/docker.md", "gloveport session start --runtime docker"): Plan(given=SESSION, needs=("docker",)),
    ("docs/docker.md", "gloveport session snapshot ID"): Plan(given=SESSION, needs=("docker",)),
    ("docs/exec-providers.md", "gloveport provider conformance"): Plan(
        given=EXAMPLES + "mkdir -p /opt/engine && cp examples/providers/process.py /opt/engine/provider\n",
        needs=("root",),
        limit=600,
    ),
    ("docs/exec-providers.md", "request=$(cat)"): Plan(skip="it is a part of a program that gloveport starts"),
    ("docs/images.md", "gloveport image build --base-image debian:12"): Plan(
        needs=("docker",),
        given='docker image inspect busybox >/dev/null\n',
        without={
            "gloveport image build --base-image debian:12": NO_NETWORK,
            "gloveport image build --base-image node:22": NO_NETWORK,
            "gloveport image exists debian:12 --pull": NO_NETWORK,
        },
    ),
    ("docs/images.md", "export SANDBOX_RUNTIME_CONTAINER_IMAGE"): Plan(skip=NO_NETWORK),
    ("docs/ipython.md", "gloveport ipython"): Plan(
        given=SERVER + "echo 'print(6 * 7)' > cell.py\n",
        without={"gloveport ipython --images": "it needs Matplotlib, which not every machine has"},
        needs=("ipython",),
    ),
    ("docs/ipython.md", "python3 -m pip install"): Plan(skip="it would change the Python of this machine"),
    ("docs/ipython.md", "VSCODE_PORT=41234"): Plan(given=VSCODE, needs=("vscode",)),
    ("docs/browser.md", "curl -H"): Plan(given=SITE + SERVER),
    ("docs/browser.md", "browser() {"): Plan(given=SITE + SERVER),
    # Two sandboxes at once, on a node that others may use.
    ("docs/hosted.md", "export E2B_API_KEY=e2b_..."): Plan(skip="it needs an account of a hosted service"),
    ("docs/hosted.md", "export DAYTONA_API_KEY=dtn_..."): Plan(skip="it needs an account of a hosted service"),
    ("docs/hosted.md", "export MODAL_TOKEN_ID=ak-..."): Plan(skip="it needs an account of a hosted service"),
    ("docs/hosted.md", "export RUNLOOP_API_KEY=ak_..."): Plan(skip="it needs an account of a hosted service"),
    ("docs/kubernetes.md", "gloveport provider ls kubernetes"): Plan(
        given="export KUBERNETES_RESOURCE_CPU_REQUEST=50m KUBERNETES_RESOURCE_MEMORY_REQUEST=64Mi\n",
        needs=("cluster",),
        limit=300,
    ),
    ("docs/kubernetes.md", "kubectl apply -k deploy/kubernetes\n"): Plan(skip="tests/kubernetes/manifests applies them"),
    ("docs/kubernetes.md", "kubectl apply -k deploy/kubernetes/examples"): Plan(skip="its image is one of a registry"),
    ("docs/first-steps.md", "export SANDBOX_RUNTIME_CONTAINER_IMAGE"): Plan(skip=NO_NETWORK),
    ("docs/first-steps.md", "OH_SESSION_API_KEYS_0"): Plan(),
    ("docs/first-steps.md", "gloveport swerex"): Plan(),
    ("docs/first-steps.md", "openssl rand"): Plan(),
    ("docs/gateway.md", "openssl rand"): Plan(),
    ("docs/gateway-api.md", "url=http://127.0.0.1:8080"): Plan(
        given="openssl rand -hex 32 > key\ngloveport gateway --runtime local --port 8080 --key-file key\n"
    ),
    ("docs/session-commands.md", "id=$(gloveport session start --gateway"): Plan(
        given="openssl rand -hex 32 > key\ngloveport gateway --runtime local --port 8080 --key-file key\n"
    ),
    ("docs/gateway.md", "gloveport gateway env"): Plan(
        given="openssl rand -hex 32 > key\ngloveport gateway --runtime local --port 8080 --key-file key\n"
    ),
    ("docs/wires.md", "OH_SESSION_API_KEYS_0"): Plan(),
    ("docs/wires.md", "OH_DEFERRED_INIT=true"): Plan(),
    ("docs/wires.md", "gloveport swerex"): Plan(),
    ("docs/wires.md", "gloveport replay"): Plan(
        given=TRAJECTORY + "printf secret > key && chmod 600 key\n"
        "OH_SESSION_API_KEYS_0=secret gloveport agent-server --port 8000 &\n"
    ),
    ("docs/e2b.md", "openssl rand"): Plan(),
    ("docs/e2b.md", 'eval "$(gloveport gateway env'): Plan(skip="tests/e2b does this and more, with its own Python"),
    ("docs/sessions-over-http.md", "openssl rand"): Plan(),
    ("docs/sessions-over-http.md", "(umask 077"): Plan(given=SESSIONS),
    ("docs/sessions-over-http.md", "python3 examples/sessions"): Plan(given=EXAMPLES + SESSIONS),
    ("docs/gateway.md", "export GLOVEPORT_GATEWAY_DATABASE"): Plan(),
    ("docs/gateway.md", "gloveport gateway audit"): Plan(
        given="export GLOVEPORT_GATEWAY_DATABASE=gateway.db\ngloveport gateway tenant create team-a\n"
    ),
    ("docs/mcp.md", "gloveport mcp call"): Plan(given=SERVER),
    ("docs/mcp.md", "gloveport mcp install"): Plan(
        without={"gloveport mcp install claude": "it asks at a terminal"}
    ),
    ("docs/mcp.md", "gloveport mcp login"): Plan(skip="there is no such server"),
    ("docs/mcp.md", "gloveport mcp tools"): Plan(given=MCP, needs=("mcp",)),
    ("docs/mcp.md", "curl -H"): Plan(given=MCP + SERVER, needs=("mcp",)),
    ("docs/plugins.md", "gloveport plugin ls"): Plan(),
    ("docs/plugins.md", "mkdir -p ~/.config"): Plan(given=EXAMPLES),
    ("docs/session-commands.md", "id=$(gloveport session start)"): Plan(given=PROJECT),
    ("docs/session-commands.md", "set -e"): Plan(
        given=PROJECT + "JOB=7; printf 'test:\\n\\t@echo tested > report.xml\\n' > Makefile\n"
    ),
    ("docs/terminals.md", "gloveport run --url"): Plan(
        given=SERVER,
        without={} if shutil.which("htop") else {"gloveport run --url http://127.0.0.1:8000 -it --terminal work htop": "there is no htop"},
    ),
}
