// What operations return. Times are milliseconds, and sizes are bytes.

import { CellFailedError, CommandFailedError, CommandTimedOutError } from "./errors.js";
import type {
    CellOutcome,
    ExecActivity,
    ExecReason,
    FileChange as FileChangeKind,
    FileKind,
    SandboxActivity,
} from "./wire.js";

/** What a command used. */
export interface Usage {
    /** Milliseconds from its start to its end. */
    readonly wallMs: number;
    /** Milliseconds of processor time. */
    readonly cpuMs: number;
    /** Bytes of memory at most; absent where it ended before they were looked at. */
    readonly peakMemoryBytes?: number;
    /** Bytes written to disks; absent where it ended before they were looked at. */
    readonly writtenBytes?: number;
}

/** What is known of a command that has ended. */
export interface ResultDetails {
    readonly id: string;
    readonly command: string;
    readonly output: string;
    readonly exitCode: number | undefined;
    readonly reason: ExecReason;
    readonly message: string;
    readonly cwd: string | undefined;
    readonly usage: Usage | undefined;
    readonly dropped: number;
    readonly missing: number;
}

/** How a command ended. */
export class Result implements ResultDetails {
    /** Its id. */
    readonly id: string;
    /** Its text. */
    readonly command: string;
    /** What it wrote to its terminal, standard error included. */
    readonly output: string;
    /** The exit status; none if the command was given up. */
    readonly exitCode: number | undefined;
    /** Why it ended: `exited`, `timed_out`, `cancelled`, `refused`, `shell_ended` or `failed`. */
    readonly reason: ExecReason;
    /** What failed, for people; may be empty. */
    readonly message: string;
    /** Working directory of the shell afterwards, where it is known. */
    readonly cwd: string | undefined;
    /** What it used, where it is known. */
    readonly usage: Usage | undefined;
    /** Bytes at the beginning of the output that were left out, because it is longer than asked for. */
    readonly dropped: number;
    /** Bytes of the output that the sandbox no longer had when they were read. */
    readonly missing: number;

    /** @internal */
    constructor(details: ResultDetails) {
        this.id = details.id;
        this.command = details.command;
        this.output = details.output;
        this.exitCode = details.exitCode;
        this.reason = details.reason;
        this.message = details.message;
        this.cwd = details.cwd;
        this.usage = details.usage;
        this.dropped = details.dropped;
        this.missing = details.missing;
    }

    /** Whether it ended with exit code 0, be it that of `exit`, which also ends the shell. */
    get ok(): boolean {
        return (this.reason === "exited" || this.reason === "shell_ended") && this.exitCode === 0;
    }

    /**
     * This result, if the command ended with exit code 0.
     *
     * @throws {@link CommandTimedOutError} if its time limit passed, {@link CommandFailedError} for any other end.
     */
    check(): this {
        if (this.ok) return this;
        throw this.reason === "timed_out" ? new CommandTimedOutError(this) : new CommandFailedError(this);
    }

    /** How it ended, in words, with the last 20 lines of its output. */
    describe(): string {
        const how = this.exitCode === undefined ? this.message || this.reason : `exit code ${this.exitCode}`;
        const last = this.output.trimEnd().split(/\r?\n/).slice(-20).join("\n");
        return `\`${this.command}\` ${this.ok ? "ended" : "failed"}: ${how}${last === "" ? "" : `\n${last}`}`;
    }
}

/** A part of a command's output. */
export class Output {
    /** Offset of its first byte, counted from the beginning of the command's output. */
    readonly offset: number;
    /** Its bytes. */
    readonly data: Uint8Array;
    /** Offset where the next part begins. */
    readonly next: number;
    /** Whether the command has ended, and nothing comes behind this part. */
    readonly ended: boolean;

    /** @internal */
    constructor(offset: number, data: Uint8Array, next: number, ended: boolean) {
        this.offset = offset;
        this.data = data;
        this.next = next;
        this.ended = ended;
    }

    /** The bytes as text. A character that a part cuts in two is shown as �. */
    get text(): string {
        return new TextDecoder().decode(this.data);
    }
}

/** How a command stands. */
export interface CommandStatus {
    /** Its id. */
    readonly id: string;
    /** Its text. */
    readonly command: string;
    /** `queued`, `running` or `ended`. */
    readonly state: ExecActivity;
    /** Whether it waits for input; only while it runs. */
    readonly waitingForInput: boolean;
    /** Whether it waits for input that its terminal does not show, such as a password. */
    readonly hidesInput: boolean;
    /** The exit status, if it has ended with one. */
    readonly exitCode?: number;
    /** Why it ended, if it has. */
    readonly reason?: ExecReason;
}

/** What is at a path. */
export interface FileStat {
    /** The absolute path; in lists the path below the directory that was asked for. */
    readonly path: string;
    /** `file`, `directory`, `symlink` or `other`. */
    readonly kind: FileKind;
    /** Bytes. */
    readonly size: number;
    /** Permission bits, such as 0o644. */
    readonly mode: number;
    /** Id of the user whom it belongs to. */
    readonly uid: number;
    /** Id of the group that it belongs to. */
    readonly gid: number;
    /** Time of the last change of the content. */
    readonly modified: Date;
    /** What a link points to. */
    readonly target?: string;
}

/** A line of a file that matches, or stands near one that does. */
export interface GrepLine {
    /** The file, relative to the directory that was searched. */
    readonly path: string;
    /** Its number, counted from 1. */
    readonly line: number;
    /** Its text without its end, cut after 4,096 characters. */
    readonly text: string;
    /** Whether it matches. */
    readonly isMatch: boolean;
}

/** What a search for lines has found. */
export interface GrepResult {
    /** The lines, in the order of files and in that of their numbers. */
    readonly lines: readonly GrepLine[];
    /** Whether there are more matches than were asked for. */
    readonly truncated: boolean;
    /** Files that could not be read, with the reason; at most 100. */
    readonly skipped: readonly string[];
}

/**
 * Something that happened to a file.
 *
 * With `overflow`, changes were lost, because they came faster than they were read or the connection broke: look at
 * everything again.
 */
export interface FileChange {
    /** `created`, `modified`, `attributes`, `removed` or `overflow`. */
    readonly kind: FileChangeKind;
    /** The absolute path; empty with `overflow`. */
    readonly path: string;
    /** Whether a directory is or was there. */
    readonly isDirectory: boolean;
}

/** What was copied. */
export interface Copied {
    /** Files and links. */
    readonly files: number;
    /** Bytes of the files' contents. */
    readonly bytes: number;
}

/** The exception that a cell raised. */
export interface CellError {
    /** Its class, such as `ZeroDivisionError`. */
    readonly name: string;
    /** Its text. */
    readonly value: string;
    /** Where it was raised, in lines for a terminal. */
    readonly traceback: readonly string[];
}

/** A value in all its forms by their types (`text/plain`, `text/html`, `image/png` in base64). */
export type Display = Readonly<Record<string, unknown>>;

/** What is known of a cell that has ended. */
export interface CellDetails {
    readonly stdout: string;
    readonly stderr: string;
    readonly result: Display | undefined;
    readonly displays: readonly Display[];
    readonly error: CellError | undefined;
    readonly reason: CellOutcome;
    readonly kernelLostBefore: boolean;
    readonly dropped: number;
}

/** What became of a cell. */
export class Cell implements CellDetails {
    /** What it wrote to standard output. */
    readonly stdout: string;
    /** What it wrote to standard error. */
    readonly stderr: string;
    /** The value of its last expression. */
    readonly result: Display | undefined;
    /** What it displayed otherwise, in its order. */
    readonly displays: readonly Display[];
    /** The exception that it raised. */
    readonly error: CellError | undefined;
    /** How it ended: `completed`, `raised`, `timed_out` or `died`. */
    readonly reason: CellOutcome;
    /** Whether the kernel had ended before this cell, so that variables of earlier cells are gone. */
    readonly kernelLostBefore: boolean;
    /** Bytes at the beginnings of `stdout` and `stderr` that were left out, because they are longer than asked for. */
    readonly dropped: number;

    /** @internal */
    constructor(details: CellDetails) {
        this.stdout = details.stdout;
        this.stderr = details.stderr;
        this.result = details.result;
        this.displays = details.displays;
        this.error = details.error;
        this.reason = details.reason;
        this.kernelLostBefore = details.kernelLostBefore;
        this.dropped = details.dropped;
    }

    /** The result as text; empty if there is none. */
    get text(): string {
        const value = this.result?.["text/plain"];
        return typeof value === "string" ? value : "";
    }

    /**
     * This cell, if it came to its end.
     *
     * @throws {@link CellFailedError} for any other end; its `code` is the `reason`.
     */
    check(): this {
        if (this.reason === "completed") return this;
        const what =
            this.error === undefined
                ? `the cell did not come to its end: ${this.reason}`
                : `${this.error.name}: ${this.error.value}`;
        throw new CellFailedError(what, { code: this.reason });
    }
}

/** Bytes that a process wrote. */
export interface ProcessOutput {
    /** Where it wrote them. */
    readonly stream: "stdout" | "stderr";
    /** The bytes. */
    readonly data: Uint8Array;
}

/** How a process ended: with an exit code, or by a signal. */
export interface ProcessEnd {
    /** The exit status, if no signal ended it. */
    readonly exitCode?: number;
    /** The number of the signal that ended it. */
    readonly signal?: number;
    /** Whether its time limit passed. */
    readonly timedOut: boolean;
}

/** A process that has ended, and what it wrote. */
export interface Completed extends ProcessEnd {
    /** What it wrote to standard output. */
    readonly stdout: Uint8Array;
    /** What it wrote to standard error. */
    readonly stderr: Uint8Array;
    /** Bytes that are not there, because they were written faster than they were read for more than a minute. */
    readonly lost: number;
    /** Bytes at the beginnings of `stdout` and `stderr` that were left out, because they are longer than asked for. */
    readonly dropped: number;
}

/** A process as the sandbox lists it. */
export interface ProcessInfo {
    /** Its id. */
    readonly id: string;
    /** Its number in the sandbox. */
    readonly pid: number;
    /** The program and its arguments. */
    readonly argv: readonly string[];
    /** The directory that it was started in. */
    readonly cwd: string;
    /** The name that it was given for lists. */
    readonly tag?: string;
    /** How it ended, if it has. */
    readonly end?: ProcessEnd;
}

/** What the sandbox does. */
export interface SandboxState {
    /** `running` or `paused`. */
    readonly state: SandboxActivity;
    /** Milliseconds since it began that. */
    readonly sinceMs: number;
    /** Milliseconds since the last request that was not about its state. */
    readonly idleMs: number;
    /** How many of these it takes until it ends by itself, if it ends so. */
    readonly idleLimitMs: number | undefined;
}

/** Files of a session, kept as an image that others can start from. It stays until it is removed. */
export interface Snapshot {
    /** What the runtime knows it by. */
    readonly image: string;
    /** Its name. */
    readonly name: string;
    /** What hosts it. */
    readonly runtime: string;
    /** The session that it was made from, if that is known. */
    readonly sessionId?: string;
    /** When it was made, if that is known. */
    readonly created?: Date;
}

/**
 * A secret for a sandbox. What prints or logs it does not show its value.
 *
 * With `hosts` the sandbox has a placeholder, and only HTTPS requests to these hosts get the value (isolation
 * `container`). Without them it is a variable of its commands, which stays out of logs and histories.
 */
export class Secret {
    readonly #value: string;
    /** The hosts that get the value. */
    readonly hosts: readonly string[];

    constructor(value: string, options: { hosts?: readonly string[] } = {}) {
        this.#value = value;
        this.hosts = [...(options.hosts ?? [])];
    }

    /** The value itself. */
    reveal(): string {
        return this.#value;
    }
}
