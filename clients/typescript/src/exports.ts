// What the package has in Node and in a browser.

export type { CellOptions } from "./cells.js";
export { Command, type CommandOptions, CommandStream, type FollowOptions, type RunOptions } from "./commands.js";
export type { TerminalEnd } from "./conversation.js";
export * from "./errors.js";
export { Files, type FindOptions, type GrepOptions, type ReadOptions, type WriteOptions } from "./files.js";
export {
    Browser,
    type BrowserOptions,
    type BrowserStatus,
    type ConsoleEntry,
    type ElementTarget,
    type Entries,
    type NetworkEntry,
    Page,
    type PageInfo,
} from "./pages.js";
export {
    type ForkOptions,
    type GatewayCapabilities,
    type GatewayStartOptions,
    type ListOptions,
    RemoteGateway,
    type SandboxInfo,
} from "./gateway.js";
export { Process, Processes, type ProcessOptions, type WaitOptions } from "./processes.js";
export { RemoteSandbox, type Session } from "./sandbox.js";
export { Terminal, type TerminalInfo, type TerminalOptions, type TerminalWaitOptions } from "./terminals.js";
export { type CallOptions, Mcp, type McpServer, type McpStatus, type Tool, ToolResult, Tools } from "./tools.js";
export {
    Cell,
    type CellError,
    type CommandStatus,
    type Completed,
    type Copied,
    type Display,
    type FileChange,
    type FileStat,
    type GrepLine,
    type GrepResult,
    Output,
    type ProcessEnd,
    type ProcessInfo,
    type ProcessOutput,
    Result,
    type SandboxState,
    Secret,
    type Snapshot,
    type Usage,
} from "./values.js";
export { Watch, type WatchOptions } from "./watching.js";
