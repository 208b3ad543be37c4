// What the package has in Node and in a browser.

export type { CellOptions } from "./cells.js";
export { Command, type CommandOptions, CommandStream, type FollowOptions, type RunOptions } from "./commands.js";
export * from "./errors.js";
export { Files, type ReadOptions, type WriteOptions } from "./files.js";
export { Process, Processes, type ProcessOptions, type WaitOptions } from "./processes.js";
export { RemoteSandbox, type Session } from "./sandbox.js";
export {
    Cell,
    type CellError,
    type CommandStatus,
    type Completed,
    type Copied,
    type Display,
    type FileStat,
    Output,
    type ProcessEnd,
    type ProcessInfo,
    type ProcessOutput,
    Result,
    type SandboxState,
    Secret,
    type Usage,
} from "./values.js";
