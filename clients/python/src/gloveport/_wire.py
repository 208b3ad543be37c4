"""The bodies of requests and answers, as a sandbox's server describes them.

Made by `generate.py` from its openapi.json. Do not change it by hand.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, TypedDict


class Alive(TypedDict):
    """Body of the answer to `GET /alive` (action-execution-api 2.1)."""

    status: str


Binary: TypeAlias = str


class _BrowserAct1(TypedDict):
    action: Literal["click"]
    target: ElementTarget


class BrowserAct1(_BrowserAct1, total=False):
    """Click on an element."""

    button: str | None
    double: bool


class _BrowserAct2(TypedDict):
    action: Literal["fill"]
    target: ElementTarget
    text: str


class BrowserAct2(_BrowserAct2, total=False):
    """Put a text in the place of what a field contains."""

    submit: bool


class BrowserAct3(TypedDict):
    """Type a text key by key where the focus is."""

    action: Literal["type"]
    text: str


class _BrowserAct4(TypedDict):
    action: Literal["press"]
    keys: str


class BrowserAct4(_BrowserAct4, total=False):
    """Press keys, such as `Control+a`, in an element or where the focus is."""

    target: ElementTarget | None


class BrowserAct5(TypedDict):
    """Choose options of a list, by value or label."""

    action: Literal["select"]
    options: list[str]
    target: ElementTarget


class BrowserAct6(TypedDict):
    """Move the mouse to an element."""

    action: Literal["hover"]
    target: ElementTarget


class _BrowserAct7(TypedDict):
    action: Literal["scroll"]


class BrowserAct7(_BrowserAct7, total=False):
    """Turn the wheel."""

    x: float
    y: float


class BrowserAct8(TypedDict):
    """Choose files for a field."""

    action: Literal["upload"]
    files: list[str]
    target: ElementTarget


class BrowserAct9(TypedDict):
    """Make a page the active one."""

    action: Literal["activate-page"]
    id: str


class BrowserAct10(TypedDict):
    """Close a page."""

    action: Literal["close-page"]
    id: str


BrowserAct: TypeAlias = (
    BrowserAct1
    | BrowserAct2
    | BrowserAct3
    | BrowserAct4
    | BrowserAct5
    | BrowserAct6
    | BrowserAct7
    | BrowserAct8
    | BrowserAct9
    | BrowserAct10
)


BrowserActivity: TypeAlias = Literal["idle", "starting", "ready", "failed", "closed"]


class BrowserConsole(TypedDict):
    """What there is since a question before. Entries that are no longer kept are left out."""

    entries: list[BrowserConsoleEntry]
    next: int


class BrowserConsoleEntry(TypedDict):
    """A line of a page's console."""

    level: str
    text: str
    url: str


class BrowserNetwork(TypedDict):
    """What there is since a question before. Entries that are no longer kept are left out."""

    entries: list[BrowserNetworkEntry]
    next: int


class _BrowserNetworkEntry(TypedDict):
    kind: str
    method: str
    url: str


class BrowserNetworkEntry(_BrowserNetworkEntry, total=False):
    """Something that a page fetched. `GET /v1/browser/har` has all of it."""

    error: str | None
    status: int | None


class _BrowserStatus(TypedDict):
    state: BrowserActivity


class BrowserStatus(_BrowserStatus, total=False):
    """Answer to `GET /v1/browser`: how the browser stands."""

    pages: list[PageInfo]
    pid: int | None
    reason: str | None
    remedy: str | None
    sandboxed: bool | None
    version: str | None


BrowserVersion = TypedDict(
    "BrowserVersion",
    {
        "Browser": "str",
        "Protocol-Version": "str",
        "webSocketDebuggerUrl": "str",
    },
)


CellOutcome: TypeAlias = Literal["completed", "raised", "timed_out", "died"]


class _CellRequest(TypedDict):
    code: str


class CellRequest(_CellRequest, total=False):
    """Body of `POST /v1/kernels/{name}/execute`."""

    timeout: float | None


class CellResult(TypedDict):
    """What became of a cell. In the `end` event of a stream text and images are empty: they came before."""

    end: CellOutcome
    images: list[str]
    interpreter: str
    kernel_lost_before: bool
    text: str


class ConnectionToken(TypedDict, total=False):
    """Body of the answer to `GET /vscode/connection_token` (action-execution-api 2.9)."""

    token: str | None


class Detail(TypedDict):
    """Body of every answer that is an error (action-execution-api 2.1)."""

    detail: str


class DiskUsage(TypedDict):
    """Use of the root file system (action-execution-api 2.5)."""

    free: int
    percent: float
    total: int
    used: int


class Done(TypedDict):
    """Body of the answer to a change."""


class ElementTarget(TypedDict, total=False):
    """Which element of the active page is meant: exactly one of `bid`, `text`, `role` and `selector`."""

    bid: str | None
    name: str | None
    role: str | None
    selector: str | None
    text: str | None


class Error(TypedDict):
    """Body of every answer of the native interface that is an error."""

    error: ErrorObject


class ErrorObject(TypedDict):
    """What failed."""

    code: str
    hint: str
    message: str


ExecActivity: TypeAlias = Literal["queued", "running", "ended"]


class ExecInput(TypedDict):
    """What is typed into a running command."""

    text: str


class ExecList(TypedDict):
    """Body of the answer to `GET /v1/exec`."""

    execs: list[ExecStatus]


ExecReason: TypeAlias = Literal["exited", "timed_out", "cancelled", "refused", "shell_ended", "failed"]


class _ExecRequest(TypedDict):
    command: str


class ExecRequest(_ExecRequest, total=False):
    """A request for a native command."""

    cwd: str | None
    env: dict[str, str]
    id: str | None
    session: Session
    timeout: float | None


class _ExecStatus(TypedDict):
    command: str
    id: str
    session: Session
    state: ExecActivity


class ExecStatus(_ExecStatus, total=False):
    """A command as listings show it."""

    cwd: str | None
    end: int | None
    exit_code: int | None
    hides_input: bool | None
    message: str | None
    reason: ExecReason
    start: int | None
    usage: ExecUsage | None
    waiting_for_input: bool | None


class _ExecUsage(TypedDict):
    cpu_seconds: float
    wall_seconds: float


class ExecUsage(_ExecUsage, total=False):
    """What a native command used."""

    peak_memory_bytes: int | None
    written_bytes: int | None


class ExecuteActionRequest(TypedDict):
    """Body of `POST /execute_action` (action-execution-api 2.4)."""

    action: SerialisedAction


FileChange: TypeAlias = Literal["created", "modified", "attributes", "removed", "overflow"]


class _FileEntry(TypedDict):
    gid: int
    kind: FileKind
    mode: FileMode
    modified: float
    path: str
    size: int
    uid: int


class FileEntry(_FileEntry, total=False):
    """One entry of a file system. Links are not followed."""

    path_base64: str | None
    target: str | None
    target_kind: FileKind | None


class FileEvent(TypedDict):
    """Something that happened below a watched path (`GET /v1/files/watch`)."""

    change: FileChange
    is_directory: bool
    path: str


FileKind: TypeAlias = Literal["file", "directory", "symlink", "other"]


class FileList(TypedDict):
    """Answer to `GET /v1/files/list` and `POST /v1/files/glob`."""

    entries: list[FileEntry]
    truncated: bool


FileMode: TypeAlias = str


class _GlobRequest(TypedDict):
    globs: list[str]


class GlobRequest(_GlobRequest, total=False):
    """Body of `POST /v1/files/glob`."""

    hidden: bool
    limit: int | None
    path: str | None
    respect_ignore: bool


class GrepLine(TypedDict):
    """A line that matches, or one near it."""

    is_match: bool
    line: int
    path: str
    text: str


class GrepMatches(TypedDict):
    """Answer to `POST /v1/files/grep`."""

    lines: list[GrepLine]
    skipped: list[str]
    truncated: bool


class _GrepRequest(TypedDict):
    pattern: str


class GrepRequest(_GrepRequest, total=False):
    """Body of `POST /v1/files/grep`."""

    context: int
    globs: list[str]
    hidden: bool
    ignore_case: bool
    limit: int | None
    literal: bool
    path: str | None
    respect_ignore: bool


class IoCounters(TypedDict):
    """Transfers of the server's process (action-execution-api 2.5)."""

    read_bytes: int
    write_bytes: int


KernelActivity: TypeAlias = Literal["starting", "ready", "failed", "closed"]


class KernelList(TypedDict):
    """Body of the answer to `GET /v1/kernels`."""

    kernels: list[KernelStatus]


class _KernelStatus(TypedDict):
    name: str
    state: KernelActivity


class KernelStatus(_KernelStatus, total=False):
    """One kernel in the answer to `GET /v1/kernels`."""

    interpreter: str | None
    pid: int | None
    reason: str | None
    remedy: str | None


class ListFilesRequest(TypedDict, total=False):
    """Body of `POST /list_files` (action-execution-api 2.6)."""

    path: str | None


class _McpReadiness(TypedDict):
    name: str
    state: str


class McpReadiness(_McpReadiness, total=False):
    """How an MCP server stands."""

    reason: str | None
    since_seconds: float | None


class _McpServer(TypedDict):
    command: str
    name: str


class McpServer(_McpServer, total=False):
    """An MCP server that speaks over its standard input and output (action-execution-api 5.2)."""

    args: list[str]
    env: dict[str, str]


class MemoryUsage(TypedDict):
    """Memory of the server's process (action-execution-api 2.5)."""

    percent: float
    rss: int
    vms: int


class _MkdirRequest(TypedDict):
    path: str


class MkdirRequest(_MkdirRequest, total=False):
    """Body of `POST /v1/files/mkdir`."""

    mode: FileMode | None
    parents: bool


_MoveRequest = TypedDict(
    "_MoveRequest",
    {
        "from": "str",
        "to": "str",
    },
)


class MoveRequest(_MoveRequest, total=False):
    """Body of `POST /v1/files/move`."""

    overwrite: bool
    parents: bool


class _NavigateRequest(TypedDict):
    url: str


class NavigateRequest(_NavigateRequest, total=False):
    """Body of `POST /v1/browser/navigate`."""

    new_page: bool
    wait: NavigateWait


NavigateWait: TypeAlias = Literal["load", "parsed", "answer"]


class _OriginState(TypedDict):
    origin: str


class OriginState(_OriginState, total=False):
    """The local storage of an origin."""

    localStorage: list[StorageEntry]


class _PageInfo(TypedDict):
    active: bool
    id: str
    url: str


class PageInfo(_PageInfo, total=False):
    """A page, or tab."""

    title: str


class _PageView(TypedDict):
    pages: list[PageInfo]
    title: str
    tree: str
    url: str


class PageView(_PageView, total=False):
    """What the active page is like: the answer to `navigate`, `act` and `GET /v1/browser/page`."""

    dialogs: list[str]
    downloads: list[str]
    error: str | None
    focused: str | None


class _PartReadiness(TypedDict):
    name: str
    since_seconds: float
    state: str


class PartReadiness(_PartReadiness, total=False):
    """How a part of the server stands."""

    reason: str | None
    remedy: str | None
    step: str | None
    took_ms: float | None


class PdfRequest(TypedDict, total=False):
    """Body of `POST /v1/browser/pdf`."""

    background: bool
    landscape: bool
    pages: str | None
    scale: float | None


class PluginList(TypedDict):
    """Body of the answer to `GET /v1/plugins`."""

    plugins: list[PluginStatus]


class PluginStatus(PartReadiness, total=False):
    path: str | None
    token: str | None


class ProcessEnd(TypedDict, total=False):
    """How a process ended."""

    exit_code: int | None
    signal: int | None
    timed_out: bool


class ProcessList(TypedDict):
    """Answer to `GET /v1/processes`."""

    directory: str
    processes: list[ProcessStatus]
    user: str


class _ProcessRequest(TypedDict):
    argv: list[str]


class ProcessRequest(_ProcessRequest, total=False):
    """A request for a process."""

    cwd: str | None
    env: dict[str, str]
    stdin: bool
    tag: str | None
    timeout: float | None


class _ProcessSignal(TypedDict):
    name: str


class ProcessSignal(_ProcessSignal, total=False):
    """A signal for a process."""

    group: bool


class _ProcessStatus(TypedDict):
    argv: list[str]
    cwd: str
    id: str
    pid: int


class ProcessStatus(_ProcessStatus, total=False):
    """A process as listings show it."""

    end: ProcessEnd | None
    tag: str | None


class _Readiness(TypedDict):
    parts: list[PartReadiness]
    status: str


class Readiness(_Readiness, total=False):
    """Body of the answer to `GET /ready`."""

    mcp_servers: list[McpReadiness]


class _RemoveRequest(TypedDict):
    path: str


class RemoveRequest(_RemoveRequest, total=False):
    """Body of `POST /v1/files/remove`."""

    missing_ok: bool
    recursive: bool


class Resources(TypedDict):
    """What the server's process uses (action-execution-api 2.5)."""

    cpu_percent: float
    disk: DiskUsage
    io: IoCounters
    memory: MemoryUsage


SandboxActivity: TypeAlias = Literal["running", "paused"]


class _SandboxStatus(TypedDict):
    idle_seconds: float
    since_seconds: float
    state: SandboxActivity


class SandboxStatus(_SandboxStatus, total=False):
    """Body of the answers to `GET /v1/sandbox`, `POST /v1/sandbox/pause` and `POST /v1/sandbox/resume`."""

    idle_limit_seconds: float | None


class ScreenshotRequest(TypedDict, total=False):
    """Body of `POST /v1/browser/screenshot`."""

    full_page: bool
    target: ElementTarget | None


class _SerialisedAction(TypedDict):
    action: str


class SerialisedAction(_SerialisedAction, total=False):
    """A serialised action."""

    args: dict[str, object] | None
    timeout: float | None


class _SerialisedObservation(TypedDict):
    content: str
    observation: str


class SerialisedObservation(_SerialisedObservation, total=False):
    """What every serialised observation has, for the document of the interface."""

    extras: dict[str, object] | None


class ServerInfo(TypedDict):
    """Body of the answer to `GET /server_info` (action-execution-api 2.5)."""

    idle_time: float
    resources: Resources
    uptime: float


Session: TypeAlias = Literal["main", "new"]


class StorageEntry(TypedDict):
    """One entry of a storage."""

    name: str
    value: str


class StorageState(TypedDict, total=False):
    """Cookies and local storage, in the form that Playwright calls a storage state: `GET` and `PUT
    /v1/browser/storage`."""

    cookies: list[dict[str, object]]
    origins: list[OriginState]


class Stored(TypedDict):
    """Answer to `PUT /v1/files/content` and `PUT /v1/files/archive`."""

    bytes: int
    files: int
    path: str


TerminalActivity: TypeAlias = Literal["starting", "running", "ended"]


class TerminalList(TypedDict):
    """Body of the answer to `GET /v1/terminals`."""

    terminals: list[TerminalStatus]


class TerminalRequest(TypedDict, total=False):
    """A request for a terminal with a program on it."""

    argv: list[str] | None
    columns: int
    cwd: str | None
    env: dict[str, str]
    id: str | None
    rows: int


class TerminalSize(TypedDict):
    """Size of a terminal in characters."""

    columns: int
    rows: int


class _TerminalStatus(TypedDict):
    argv: list[str]
    attached: int
    columns: int
    cwd: str
    end: int
    id: str
    rows: int
    start: int
    state: TerminalActivity


class TerminalStatus(_TerminalStatus, total=False):
    """A terminal as listings show it."""

    exit_code: int | None
    pid: int | None
    signal: int | None


class UpdateMcpResponse(TypedDict):
    """Body of the answer to `POST /update_mcp_server` (action-execution-api 5.2)."""

    detail: str
    router_error_log: str


class UploadForm(TypedDict):
    """The form of the request, for the document of the interface."""

    file: Binary


class Uploaded(TypedDict):
    """What was stored."""

    destination: str
    filename: str
    recursive: bool


class ValidationError(TypedDict):
    """Body of an answer with status 422 (action-execution-api 2.1)."""

    detail: str
    errors: str
