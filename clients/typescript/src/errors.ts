// What can go wrong. Everything is below `GloveportError`.

import type { Result } from "./values.js";

/** What an error can be told beside its message. */
export interface ErrorDetails {
    /** What to do about it. */
    remedy?: string;
    /** A name for programs, in the place of that of the class. */
    code?: string;
    /** What it follows from. */
    cause?: unknown;
}

/** Something failed. */
export class GloveportError extends Error {
    /** A name for programs, such as `not_found`. */
    readonly code: string;
    /** What to do about it; may be empty. */
    readonly remedy: string;

    constructor(message: string, details: ErrorDetails = {}, code = "failed") {
        super(message, details.cause === undefined ? undefined : { cause: details.cause });
        this.name = new.target.name;
        this.code = details.code ?? code;
        this.remedy = details.remedy ?? "";
    }

    /** The message, and the remedy behind it. */
    override toString(): string {
        return `${this.name}: ${this.message}${this.remedy === "" ? "" : ` (${this.remedy})`}`;
    }
}

/** There is no `gloveport` program to start a session with. */
export class ProgramMissingError extends GloveportError {
    constructor(message: string, details?: ErrorDetails) {
        super(message, details, "program_missing");
    }
}

/** The `gloveport` program or a gateway could not start, find or end a sandbox; the message is what it said. */
export class SessionError extends GloveportError {
    constructor(message: string, details?: ErrorDetails) {
        super(message, details, "session_failed");
    }
}

/** The sandbox was closed by this program. */
export class SandboxClosedError extends GloveportError {
    constructor(message: string, details?: ErrorDetails) {
        super(message, details, "closed");
    }
}

/** Nothing answers at the address of the sandbox or the gateway. What was asked for was not sent, or was followed until then. */
export class UnreachableError extends GloveportError {
    constructor(message: string, details?: ErrorDetails) {
        super(message, details, "unreachable");
    }
}

/** The connection broke, and what was asked for may have happened or not. It was not tried a second time. */
export class ConnectionLostError extends GloveportError {
    constructor(message: string, details?: ErrorDetails) {
        super(message, details, "connection_lost");
    }
}

/** What answers is no server of gloveport, or one of another version. */
export class UnexpectedAnswerError extends GloveportError {
    constructor(message: string, details?: ErrorDetails) {
        super(message, details, "unexpected_answer");
    }
}

/** What was waited for has not happened in its time. */
export class TimedOutError extends GloveportError {
    constructor(message: string, details?: ErrorDetails) {
        super(message, { code: "timed_out", ...details });
    }
}

/** A command, or the program of a terminal, has not ended in the time that somebody waited for it, and goes on. */
export class StillRunningError extends TimedOutError {
    constructor(message: string, details?: ErrorDetails) {
        super(message, { code: "still_running", ...details });
    }
}

/** More came than the caller wants to keep in memory. */
export class TooLargeError extends GloveportError {
    constructor(message: string, details?: ErrorDetails) {
        super(message, details, "too_large");
    }
}

/** The gateway has no sandbox at the address, or no more. Nothing was done. */
export class SandboxGoneError extends GloveportError {
    constructor(message: string, details?: ErrorDetails) {
        super(message, details, "no_such_sandbox");
    }
}

/** The sandbox's server refused a request, or the client did so in its place. */
export class ApiError extends GloveportError {
    /** The status of HTTP; 0 where nothing was sent. */
    readonly status: number;

    constructor(message: string, details: ErrorDetails & { status?: number } = {}) {
        super(message, details);
        this.status = details.status ?? 0;
    }
}

/** The request is not what it must be, such as a command without text. */
export class InvalidRequestError extends ApiError {
    constructor(message: string, details: ErrorDetails & { status?: number } = {}) {
        super(message, { code: "invalid_request", ...details });
    }
}

/** The key is missing or wrong. */
export class ForbiddenError extends ApiError {}

/** The sandbox knows no command, process, kernel or plugin of this name. */
export class NotFoundError extends ApiError {}

/** How things stand does not allow it, such as input for a command that has ended. */
export class ConflictError extends ApiError {}

/** The sandbox has as many commands, processes or requests as it takes. */
export class TooManyError extends ApiError {}

/** The sandbox is paused. */
export class PausedError extends ApiError {}

/** The output at this offset is not kept any more. */
export class OutputGoneError extends ApiError {}

/** The server failed, or lacks what is needed. */
export class ServerFailedError extends ApiError {}

/** A file of the sandbox cannot be used as it was asked for. */
export class RemoteFileError extends ApiError {}

/** Nothing is at the path. */
export class RemoteFileNotFoundError extends RemoteFileError {}

/** Something is at the path already. */
export class RemoteFileExistsError extends RemoteFileError {}

/** A directory is at the path, and a file is needed. */
export class RemoteIsADirectoryError extends RemoteFileError {}

/** A directory is needed, and something else is there. */
export class RemoteNotADirectoryError extends RemoteFileError {}

/** The user of the sandbox may not do this. */
export class RemotePermissionError extends RemoteFileError {}

/** The file was changed while it was read, so what was read is no whole. */
export class FileChangedError extends RemoteFileError {}

/** `check()` found a command that did not end with exit code 0. */
export class CommandFailedError extends GloveportError {
    /** All that is known of it. */
    readonly result: Result;

    constructor(result: Result, code = "command_failed") {
        super(result.describe(), {}, code);
        this.result = result;
    }
}

/** `check()` found a command whose time limit passed. */
export class CommandTimedOutError extends CommandFailedError {
    constructor(result: Result) {
        super(result, "timed_out");
    }
}

/** `check()` found a cell that raised an exception, or did not come to its end. */
export class CellFailedError extends GloveportError {}

/** `check()` found a page in which what was asked for could not be done. */
export class BrowserFailedError extends GloveportError {
    constructor(message: string, details?: ErrorDetails) {
        super(message, details, "browser_failed");
    }
}

/** A tool of MCP failed, or `check()` found that it has. */
export class ToolFailedError extends GloveportError {
    constructor(message: string, details?: ErrorDetails) {
        super(message, details, "tool_failed");
    }
}
