// The bodies of requests and answers, as a sandbox's server describes them.
//
// Made by `generate.mjs` from its openapi.json. Do not change it by hand.

/** Body of the answer to `GET /alive` (action-execution-api 2.1). */
export interface Alive {
    /** `ok` or `not initialized`. */
    status: string;
}

/** Bytes of any kind, for the document. */
export type Binary = string;

/** Click on an element. */
export interface BrowserAct1 {
    action: "click";
    /** `left`, `middle` or `right`. */
    button?: string | null;
    /** Click twice. */
    double?: boolean;
    /** The element. */
    target: ElementTarget;
}

/** Put a text in the place of what a field contains. */
export interface BrowserAct2 {
    action: "fill";
    /** Press Enter afterwards. */
    submit?: boolean;
    /** The field. */
    target: ElementTarget;
    /** The text. */
    text: string;
}

/** Type a text key by key where the focus is. */
export interface BrowserAct3 {
    action: "type";
    /** The text. */
    text: string;
}

/** Press keys, such as `Control+a`, in an element or where the focus is. */
export interface BrowserAct4 {
    action: "press";
    /** The keys. */
    keys: string;
    target?: ElementTarget | null;
}

/** Choose options of a list, by value or label. */
export interface BrowserAct5 {
    action: "select";
    /** The options. */
    options: string[];
    /** The list. */
    target: ElementTarget;
}

/** Move the mouse to an element. */
export interface BrowserAct6 {
    action: "hover";
    /** The element. */
    target: ElementTarget;
}

/** Turn the wheel. */
export interface BrowserAct7 {
    action: "scroll";
    /** Pixels to the right. */
    x?: number;
    /** Pixels down. */
    y?: number;
}

/** Choose files for a field. */
export interface BrowserAct8 {
    action: "upload";
    /** Their paths in the sandbox. */
    files: string[];
    /** The field. */
    target: ElementTarget;
}

/** Make a page the active one. */
export interface BrowserAct9 {
    action: "activate-page";
    /** Its id. */
    id: string;
}

/** Close a page. */
export interface BrowserAct10 {
    action: "close-page";
    /** Its id. */
    id: string;
}

/** Body of `POST /v1/browser/act`: one thing that is done in the active page. */
export type BrowserAct =
    | BrowserAct1
    | BrowserAct2
    | BrowserAct3
    | BrowserAct4
    | BrowserAct5
    | BrowserAct6
    | BrowserAct7
    | BrowserAct8
    | BrowserAct9
    | BrowserAct10;

/** How a browser stands. */
export type BrowserActivity = "idle" | "starting" | "ready" | "failed" | "closed";

/** What there is since a question before. Entries that are no longer kept are left out. */
export interface BrowserConsole {
    /** What pages wrote, oldest first. */
    entries: BrowserConsoleEntry[];
    /** The `since` of the next question. */
    next: number;
}

/** A line of a page's console. */
export interface BrowserConsoleEntry {
    /** `log`, `info`, `warning`, `error`, `exception` and others. */
    level: string;
    /** What was written. */
    text: string;
    /** The address of the page or the script. */
    url: string;
}

/** What there is since a question before. Entries that are no longer kept are left out. */
export interface BrowserNetwork {
    /** What pages fetched, oldest first. */
    entries: BrowserNetworkEntry[];
    /** The `since` of the next question. */
    next: number;
}

/** Something that a page fetched. `GET /v1/browser/har` has all of it. */
export interface BrowserNetworkEntry {
    /** Why it failed. */
    error?: string | null;
    /** What it is for: `Document`, `Script`, `XHR` and others. */
    kind: string;
    /** `GET` and others. */
    method: string;
    /** Status of the answer. */
    status?: number | null;
    /** Its address. */
    url: string;
}

/** Answer to `GET /v1/browser`: how the browser stands. */
export interface BrowserStatus {
    /** The open pages, in the order in which they came. */
    pages?: PageInfo[];
    /** Its first process, once it is up. */
    pid?: number | null;
    /** Why it cannot be used. */
    reason?: string | null;
    /** What can be done about it. */
    remedy?: string | null;
    /** Whether pages are kept apart from the rest of the sandbox by Chromium's own sandbox, once it is up. */
    sandboxed?: boolean | null;
    /** How it stands. */
    state: BrowserActivity;
    /** Which browser it is, such as `Chrome/156.0.8078.79`, once it is up. */
    version?: string | null;
}

/** What clients of the DevTools protocol ask first. */
export interface BrowserVersion {
    /** Which browser it is. */
    Browser: string;
    /** Version of the protocol. */
    "Protocol-Version": string;
    /** Where the protocol is spoken. */
    webSocketDebuggerUrl: string;
}

/** How a cell ended. */
export type CellOutcome = "completed" | "raised" | "timed_out" | "died";

/** Body of `POST /v1/kernels/{name}/execute`. */
export interface CellRequest {
    /** The cell. */
    code: string;
    /** Seconds from its turn on; without a limit it may run for ever. */
    timeout?: number | null;
}

/** What became of a cell. In the `end` event of a stream text and images are empty: they came before. */
export interface CellResult {
    /** How it ended. */
    end: CellOutcome;
    /** Images as `data:` URLs. */
    images: string[];
    /** Path of the interpreter. */
    interpreter: string;
    /** The kernel had ended before the cell; variables of earlier cells are gone. */
    kernel_lost_before: boolean;
    /** What it showed, without colours. */
    text: string;
}

/** Body of the answer to `GET /vscode/connection_token` (action-execution-api 2.9). */
export interface ConnectionToken {
    /** The token, or null without the editor. */
    token?: string | null;
}

/** Body of every answer that is an error (action-execution-api 2.1). */
export interface Detail {
    /** What went wrong. */
    detail: string;
}

/** Use of the root file system (action-execution-api 2.5). */
export interface DiskUsage {
    /** Bytes that a normal user can still use. */
    free: number;
    /** Used part of what normal users can use, in percent with one decimal. */
    percent: number;
    /** Size in bytes. */
    total: number;
    /** Used bytes. */
    used: number;
}

/** Body of the answer to a change. */
export interface Done {
}

/** Which element of the active page is meant: exactly one of `bid`, `text`, `role` and `selector`. */
export interface ElementTarget {
    /** Its id in the tree of the page (`[12]`). */
    bid?: string | null;
    /** With `role`: its accessible name, of which a part is enough, whatever its case. */
    name?: string | null;
    /** Its role for assistive technology, such as `button` or `textbox`. */
    role?: string | null;
    /** A CSS selector; open shadow trees are searched, too. */
    selector?: string | null;
    /**
     * Text that it shows, or its label: the first visible element whose own text contains it, whatever its case;
     * one that has exactly this text goes before.
     */
    text?: string | null;
}

/** Body of every answer of the native interface that is an error. */
export interface Error {
    /** What failed. */
    error: ErrorObject;
}

/** What failed. */
export interface ErrorObject {
    /** A name for programs. */
    code: string;
    /** What to do about it; may be empty. */
    hint: string;
    /** What failed, for people. */
    message: string;
}

/** How a native command stands. */
export type ExecActivity = "queued" | "running" | "ended";

/** What is typed into a running command. */
export interface ExecInput {
    /**
     * Text, sent with Enter; a key such as `C-c`, sent without; or the name of a key (`Up`, `Escape`, `F1`, `M-x`),
     * which is pressed and followed by Enter, as the reference does it (`bash-session` 5.2).
     */
    text: string;
}

/** Body of the answer to `GET /v1/exec`. */
export interface ExecList {
    /** The commands. */
    execs: ExecStatus[];
}

/** Why a native command ended. */
export type ExecReason = "exited" | "timed_out" | "cancelled" | "refused" | "shell_ended" | "failed";

/** A request for a native command. */
export interface ExecRequest {
    /** The command text, of one or many lines. */
    command: string;
    /** Directory to run in; only with a new session. */
    cwd?: string | null;
    /** Variables added to the environment; only with a new session. */
    env?: Record<string, string>;
    /** Name that the caller chooses: letters, digits, `-`, `_`, `.`; made up if it is absent. */
    id?: string | null;
    /** Where it runs. */
    session?: Session;
    /**
     * Seconds, counted from the request, after which the command is given up: one that waits for its turn never
     * begins; one that runs is interrupted, 2 s later quit (C-\\), and 2 s later killed with its session (new
     * session) or left to itself (main session).
     */
    timeout?: number | null;
}

/** A command as listings show it. */
export interface ExecStatus {
    /** Its text. */
    command: string;
    /** Working directory of the shell afterwards. */
    cwd?: string | null;
    /** How many bytes it wrote. */
    end?: number | null;
    /** Exit status; null if there is none. This and all that follows is there once it has ended. */
    exit_code?: number | null;
    /** True while it waits for a line that its terminal does not show, such as a password; else absent. */
    hides_input?: boolean | null;
    /** Its id. */
    id: string;
    /** What failed, for people. */
    message?: string | null;
    /** Why it ended. */
    reason?: ExecReason;
    /** Where it runs. */
    session: Session;
    /** Offset where its output begins, which is 0; absent while it is queued. */
    start?: number | null;
    /** How it stands. */
    state: ExecActivity;
    usage?: ExecUsage | null;
    /** Whether the program in the foreground waits for input; only while it runs. */
    waiting_for_input?: boolean | null;
}

/** What a native command used. */
export interface ExecUsage {
    /** CPU time in seconds, in steps of the kernel's clock tick. */
    cpu_seconds: number;
    /** Largest private memory that a sample saw, in bytes; absent for a command that ended before the first. */
    peak_memory_bytes?: number | null;
    /** Time from the start to the end in seconds. */
    wall_seconds: number;
    /** Bytes written to storage. */
    written_bytes?: number | null;
}

/** Body of `POST /execute_action` (action-execution-api 2.4). */
export interface ExecuteActionRequest {
    /** The serialised action. */
    action: SerialisedAction;
}

/** What happened to a file. */
export type FileChange = "created" | "modified" | "attributes" | "removed" | "overflow";

/** One entry of a file system. Links are not followed. */
export interface FileEntry {
    /** Group id. */
    gid: number;
    /** What it is. */
    kind: FileKind;
    /** Permission bits. */
    mode: FileMode;
    /** Time of the last change of the content, in seconds since 1970. */
    modified: number;
    /** The path: absolute from `stat` and `watch`, relative to the directory that was asked for elsewhere. */
    path: string;
    /** The bytes of a path that is not UTF-8. */
    path_base64?: string | null;
    /** Size in bytes. */
    size: number;
    /** What a link points to. */
    target?: string | null;
    target_kind?: FileKind | null;
    /** User id of the owner. */
    uid: number;
}

/** Something that happened below a watched path (`GET /v1/files/watch`). */
export interface FileEvent {
    /** What happened. */
    change: FileChange;
    /** It is a directory. */
    is_directory: boolean;
    /** Where. */
    path: string;
}

/** What something in a file system is. */
export type FileKind = "file" | "directory" | "symlink" | "other";

/** Answer to `GET /v1/files/list` and `POST /v1/files/glob`. */
export interface FileList {
    /** The entries, sorted bytewise by path. */
    entries: FileEntry[];
    /** There are more than the limit. */
    truncated: boolean;
}

/** Permission bits in octal. */
export type FileMode = string;

/** Body of `POST /v1/files/glob`. */
export interface GlobRequest {
    /** Patterns such as `src/** /*.rs`, relative to the directory; `!` in front excludes. */
    globs: string[];
    /** Looks at names that begin with a dot, too. */
    hidden?: boolean;
    /** Most entries of the answer. */
    limit?: number | null;
    /** Directory to look in; none is the directory that the tools start in. */
    path?: string | null;
    /** Leaves out what `.gitignore` and `.ignore` files name. */
    respect_ignore?: boolean;
}

/** A line that matches, or one near it. */
export interface GrepLine {
    /** Whether it matches, or only stands near a match. */
    is_match: boolean;
    /** Number of the line, counted from 1. */
    line: number;
    /** The file, relative to the directory that was asked for. */
    path: string;
    /** The line without its end; cut after 4,096 characters. */
    text: string;
}

/** Answer to `POST /v1/files/grep`. */
export interface GrepMatches {
    /** Lines in the order of files (bytewise) and lines. */
    lines: GrepLine[];
    /** Files that could not be read, with the reason; at most 100. */
    skipped: string[];
    /** There are more matches than the limit. */
    truncated: boolean;
}

/** Body of `POST /v1/files/grep`. */
export interface GrepRequest {
    /** Lines shown before and after each match. */
    context?: number;
    /** Only files that match one of these patterns; `!` in front excludes. */
    globs?: string[];
    /** Looks at names that begin with a dot, too. */
    hidden?: boolean;
    /** Upper and lower case are the same. */
    ignore_case?: boolean;
    /** Most matching lines of the answer. */
    limit?: number | null;
    /** The pattern is plain text. */
    literal?: boolean;
    /** File or directory to search; none is the directory that the tools start in. */
    path?: string | null;
    /** Regular expression in the syntax of the Rust `regex` crate. */
    pattern: string;
    /** Leaves out what `.gitignore` and `.ignore` files name. */
    respect_ignore?: boolean;
}

/** Transfers of the server's process (action-execution-api 2.5). */
export interface IoCounters {
    /** Bytes read from storage; 0 if unknown. */
    read_bytes: number;
    /** Bytes written to storage; 0 if unknown. */
    write_bytes: number;
}

/** How a kernel stands. */
export type KernelActivity = "starting" | "ready" | "failed" | "closed";

/** Body of the answer to `GET /v1/kernels`. */
export interface KernelList {
    /** The kernels. */
    kernels: KernelStatus[];
}

/** One kernel in the answer to `GET /v1/kernels`. */
export interface KernelStatus {
    /** Path of its interpreter, once it is ready. */
    interpreter?: string | null;
    /** Its name; `default` is the one of `run_ipython`. */
    name: string;
    /** Its process id, once it is ready. */
    pid?: number | null;
    /** Why it cannot be used. */
    reason?: string | null;
    /** What can be done about it. */
    remedy?: string | null;
    /** How it stands. */
    state: KernelActivity;
}

/** Body of `POST /list_files` (action-execution-api 2.6). */
export interface ListFilesRequest {
    /** The directory; none is the initial working directory. */
    path?: string | null;
}

/** How an MCP server stands. */
export interface McpReadiness {
    /** Its name. */
    name: string;
    /** Why it failed, with the last that it printed. */
    reason?: string | null;
    /** Time since it is so. */
    since_seconds?: number | null;
    /** `idle`, `starting`, `ready` or `failed`. */
    state: string;
}

/** An MCP server that speaks over its standard input and output (action-execution-api 5.2). */
export interface McpServer {
    /** Its arguments. As text, they are split as a shell does it. */
    args?: string[];
    /** The program, without blanks. */
    command: string;
    /** Variables for its environment. */
    env?: Record<string, string>;
    /** Letters, digits, underscores and hyphens. */
    name: string;
}

/** Memory of the server's process (action-execution-api 2.5). */
export interface MemoryUsage {
    /** Resident bytes in percent of the physical memory. */
    percent: number;
    /** Resident bytes. */
    rss: number;
    /** Virtual bytes. */
    vms: number;
}

/** Body of `POST /v1/files/mkdir`. */
export interface MkdirRequest {
    mode?: FileMode | null;
    /** Makes missing parents, and it is no error if the directory is there. */
    parents?: boolean;
    /** The directory. */
    path: string;
}

/** Body of `POST /v1/files/move`. */
export interface MoveRequest {
    /** What is moved. */
    from: string;
    /** Replaces what is there: a file, or an empty directory. */
    overwrite?: boolean;
    /** Makes missing parent directories. */
    parents?: boolean;
    /** Its new path. */
    to: string;
}

/** Body of `POST /v1/browser/navigate`. */
export interface NavigateRequest {
    /** Opens it in a page of its own, which is the active one then. */
    new_page?: boolean;
    /** Where to: an address with a scheme, or `back`, `forward` or `reload`. */
    url: string;
    /** What is waited for. */
    wait?: NavigateWait;
}

/** When a navigation has ended. */
export type NavigateWait = "load" | "parsed" | "answer";

/** The local storage of an origin. */
export interface OriginState {
    /** What it keeps. */
    localStorage?: StorageEntry[];
    /** The origin, such as `https://example.org`. */
    origin: string;
}

/** A page, or tab. */
export interface PageInfo {
    /** Whether it is the one that actions are for. */
    active: boolean;
    /** What names it. */
    id: string;
    /** Its title. */
    title?: string;
    /** Its address. */
    url: string;
}

/** What the active page is like: the answer to `navigate`, `act` and `GET /v1/browser/page`. */
export interface PageView {
    /** Questions of the page that were answered meanwhile (dialogs). */
    dialogs?: string[];
    /** Files that were downloaded meanwhile, as paths in the sandbox. */
    downloads?: string[];
    /** Why what was asked for failed. */
    error?: string | null;
    /** The id of the element that has the focus. */
    focused?: string | null;
    /** All pages. */
    pages: PageInfo[];
    /** Its title. */
    title: string;
    /** The accessibility tree as text; elements have their ids in brackets. */
    tree: string;
    /** Its address. */
    url: string;
}

/** How a part of the server stands. */
export interface PartReadiness {
    /** Its name. */
    name: string;
    /** Why it failed. */
    reason?: string | null;
    /** What can be done about it. */
    remedy?: string | null;
    /** Time since it is so. */
    since_seconds: number;
    /** `off`, `idle`, `starting`, `ready` or `failed`. */
    state: string;
    /** What it does to become ready. */
    step?: string | null;
    /** How long it took to become ready. */
    took_ms?: number | null;
}

/** Body of `POST /v1/browser/pdf`. */
export interface PdfRequest {
    /** With colours and pictures behind texts. */
    background?: boolean;
    /** Broad pages. */
    landscape?: boolean;
    /** Which pages, such as `1-3, 5`; all by default. */
    pages?: string | null;
    /** From 0.1 to 2; 1 is the usual size. */
    scale?: number | null;
}

/** Body of the answer to `GET /v1/plugins`. */
export interface PluginList {
    /** The plugins. */
    plugins: PluginStatus[];
}

export interface PluginStatus extends PartReadiness {
    /** Path that leads to its service, if it has one; for the browser, to the page on which it is seen. */
    path?: string | null;
    /** What lets a browser in, as `?tkn=`. */
    token?: string | null;
}

/** How a process ended. */
export interface ProcessEnd {
    /** Exit status; absent for one that a signal ended, and where it is not known. */
    exit_code?: number | null;
    /** Number of the signal that ended it. */
    signal?: number | null;
    /** Its time was over. */
    timed_out?: boolean;
}

/** Answer to `GET /v1/processes`. */
export interface ProcessList {
    /** Directory that tools start in. */
    directory: string;
    /** Those that run, and the latest that ended, in the order of their start. */
    processes: ProcessStatus[];
    /** Name of the user that they work as. */
    user: string;
}

/** A request for a process. */
export interface ProcessRequest {
    /** Program and arguments. */
    argv: string[];
    /** Directory to start in, as an absolute path; where the sandbox's tools start if it is absent. */
    cwd?: string | null;
    /** Variables added to the environment. */
    env?: Record<string, string>;
    /** It gets what is sent as its input; without this its input is empty. */
    stdin?: boolean;
    /** A name that the caller gives it, which listings show. Several may have the same. */
    tag?: string | null;
    /** Seconds after which it and everything that it started are ended. */
    timeout?: number | null;
}

/** A signal for a process. */
export interface ProcessSignal {
    /** Everything that the program started gets it, too, but for what made a process group of its own. */
    group?: boolean;
    /** Its name without `SIG`. */
    name: string;
}

/** A process as listings show it. */
export interface ProcessStatus {
    /** Program and arguments. */
    argv: string[];
    /** Directory that it was started in. */
    cwd: string;
    end?: ProcessEnd | null;
    /** Its id, which no other process of the sandbox has had. */
    id: string;
    /** Process id of the program. */
    pid: number;
    /** The name that the caller gave it. */
    tag?: string | null;
}

/** Body of the answer to `GET /ready`. */
export interface Readiness {
    /** The MCP servers. They are started when they are used, and one that fails does not make the sandbox fail. */
    mcp_servers?: McpReadiness[];
    /** The shell and the plugins. */
    parts: PartReadiness[];
    /** `ready`, `starting` or `failed`. */
    status: string;
}

/** Body of `POST /v1/files/remove`. */
export interface RemoveRequest {
    /** It is no error if nothing is there. */
    missing_ok?: boolean;
    /** What is removed; a link itself, not its target. */
    path: string;
    /** Removes a directory with everything in it. */
    recursive?: boolean;
}

/** What the server's process uses (action-execution-api 2.5). */
export interface Resources {
    /** Processor time in percent of one processor; may exceed 100. */
    cpu_percent: number;
    /** The root file system. */
    disk: DiskUsage;
    /** Transfers of the process. */
    io: IoCounters;
    /** Memory of the process. */
    memory: MemoryUsage;
}

/** What a sandbox does. */
export type SandboxActivity = "running" | "paused";

/** Body of the answers to `GET /v1/sandbox`, `POST /v1/sandbox/pause` and `POST /v1/sandbox/resume`. */
export interface SandboxStatus {
    /** How many of these it takes until it ends by itself; missing or null where it does not end so. */
    idle_limit_seconds?: number | null;
    /** Seconds since the last request was answered that was not about its state; 0 while one is worked on. */
    idle_seconds: number;
    /** Seconds since it began to do that. */
    since_seconds: number;
    /** What it does. */
    state: SandboxActivity;
}

/** Body of `POST /v1/browser/screenshot`. */
export interface ScreenshotRequest {
    /** The whole page, as far as it can be scrolled, up to 16,384 pixels down. */
    full_page?: boolean;
    target?: ElementTarget | null;
}

/** A serialised action. */
export interface SerialisedAction {
    /** Its kind: `run`, `run_ipython`, `read`, `write`, `edit`, `browse` and others. */
    action: string;
    /** Its members, by kind: `{"command": "ls"}` of a `run`. */
    args?: Record<string, unknown> | null;
    /** Seconds after which it is given up. */
    timeout?: number | null;
}

/** What every serialised observation has, for the document of the interface. */
export interface SerialisedObservation {
    /** What is to be seen. */
    content: string;
    /** Its other members, by kind. */
    extras?: Record<string, unknown> | null;
    /** Its kind. */
    observation: string;
}

/** Body of the answer to `GET /server_info` (action-execution-api 2.5). */
export interface ServerInfo {
    /** Seconds since the last action arrived. */
    idle_time: number;
    /** What the process uses. */
    resources: Resources;
    /** Seconds since the executor was made. */
    uptime: number;
}

/** The shell that a native command runs in. */
export type Session = "main" | "new";

/** One entry of a storage. */
export interface StorageEntry {
    /** Its name. */
    name: string;
    /** Its value. */
    value: string;
}

/**
 * Cookies and local storage, in the form that Playwright calls a storage state: `GET` and `PUT
 * /v1/browser/storage`.
 */
export interface StorageState {
    /** The cookies: name, value, domain, path, expires, httpOnly, secure, sameSite. */
    cookies?: (Record<string, unknown>)[];
    /** Local storage by origin. */
    origins?: OriginState[];
}

/** Answer to `PUT /v1/files/content` and `PUT /v1/files/archive`. */
export interface Stored {
    /** Bytes of their contents. */
    bytes: number;
    /** Files written. */
    files: number;
    /** Where it was stored. */
    path: string;
}

/** How a terminal stands. */
export type TerminalActivity = "starting" | "running" | "ended";

/** Body of the answer to `GET /v1/terminals`. */
export interface TerminalList {
    /** Those that run, and the latest that ended. */
    terminals: TerminalStatus[];
}

/** A request for a terminal with a program on it. */
export interface TerminalRequest {
    /** Program and arguments; the interactive shell of the sandbox's user if it is absent. */
    argv?: string[] | null;
    /** Width in characters. */
    columns?: number;
    /** Directory to start in; where the sandbox's shell is if it is absent. */
    cwd?: string | null;
    /** Variables added to the environment, such as `TERM`. */
    env?: Record<string, string>;
    /** Name that the caller chooses: letters, digits, `-`, `_`, `.`; made up if it is absent. */
    id?: string | null;
    /** Height in characters. */
    rows?: number;
}

/** Size of a terminal in characters. */
export interface TerminalSize {
    /** Width. */
    columns: number;
    /** Height. */
    rows: number;
}

/** A terminal as listings show it. */
export interface TerminalStatus {
    /** Program and arguments. */
    argv: string[];
    /** Clients that are attached. */
    attached: number;
    /** Width in characters. */
    columns: number;
    /** Directory that the program was started in. */
    cwd: string;
    /** Offset behind the last byte of output. */
    end: number;
    /**
     * Status as a shell reports it, once it has ended: the exit status, or 128 plus the signal; -1 if it is not
     * known.
     */
    exit_code?: number | null;
    /** Its id. */
    id: string;
    /** Process id of the program, while it runs. */
    pid?: number | null;
    /** Height in characters. */
    rows: number;
    /** Number of the signal that ended it; null if it ended by itself. */
    signal?: number | null;
    /** Offset of the oldest byte of output that is kept. */
    start: number;
    /** How it stands. */
    state: TerminalActivity;
}

/** Body of the answer to `POST /update_mcp_server` (action-execution-api 5.2). */
export interface UpdateMcpResponse {
    /** What happened. */
    detail: string;
    /** Why the update failed; empty if it did not. */
    router_error_log: string;
}

/** The form of the request, for the document of the interface. */
export interface UploadForm {
    /** The file, with its name. */
    file: Binary;
}

/** What was stored. */
export interface Uploaded {
    /** The directory that it was stored in. */
    destination: string;
    /** Its name. */
    filename: string;
    /** Whether it had to be a zip file. */
    recursive: boolean;
}

/** Body of an answer with status 422 (action-execution-api 2.1). */
export interface ValidationError {
    /** Always `Invalid request parameters`. */
    detail: string;
    /** What is wrong, in one free text. */
    errors: string;
}
