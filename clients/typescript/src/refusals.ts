// Answers that are errors, and which error each of them is.

import {
    type ApiError,
    ConflictError,
    ConnectionLostError,
    type ErrorDetails,
    FileChangedError,
    ForbiddenError,
    type GloveportError,
    InvalidRequestError,
    NotFoundError,
    OutputGoneError,
    PausedError,
    RemoteFileError,
    RemoteFileExistsError,
    RemoteFileNotFoundError,
    RemoteIsADirectoryError,
    RemoteNotADirectoryError,
    RemotePermissionError,
    SandboxGoneError,
    ServerFailedError,
    TooManyError,
    UnexpectedAnswerError,
} from "./errors.js";

type ApiErrorClass = new (message: string, details: ErrorDetails & { status?: number }) => ApiError;

const BY_CODE = new Map<string, ApiErrorClass>([
    ["not_found", RemoteFileNotFoundError],
    ["exists", RemoteFileExistsError],
    ["is_a_directory", RemoteIsADirectoryError],
    ["not_a_directory", RemoteNotADirectoryError],
    ["permission_denied", RemotePermissionError],
    ["not_empty", RemoteFileError],
    ["not_a_regular_file", RemoteFileError],
    ["storage_full", RemoteFileError],
    ["file_refused", RemoteFileError],
    ["name_too_long", RemoteFileError],
    ["range_behind_end", RemoteFileError],
    ["changed", FileChangedError],
    ["paused", PausedError],
    ["output_gone", OutputGoneError],
    ["too_many_requests", TooManyError],
    ["too_many_transfers", TooManyError],
]);

const BY_STATUS = new Map<number, ApiErrorClass>([
    [400, InvalidRequestError],
    [403, ForbiddenError],
    [404, NotFoundError],
    [409, ConflictError],
    [413, InvalidRequestError],
    [429, TooManyError],
]);

/** What to do where the server is not what it should be. */
export const CHECK_THE_URL = "check that the URL is that of a sandbox's server, of the version of this package";

/** What to do where a server is gone. */
export const ENDED = "check the URL, and whether the session has ended: `gloveport session ls`";

/** A kind of servers: what it asks for, and how it is spoken of. */
export interface ServerKind {
    /** The header that has the key. */
    readonly header: string;
    readonly what: string;
    /** What to do where nothing answers. */
    readonly remedy: string;
    /** The error for an answer of the server at a URL that is one. */
    readonly refusal: (status: number, body: Uint8Array, where: string) => GloveportError;
}

/** The servers of sandboxes. */
export const SANDBOX: ServerKind = {
    header: "X-Session-API-Key",
    what: "the sandbox's server",
    remedy: ENDED,
    refusal: ofAnswer,
};

/** The error for an answer of a sandbox's server at a URL that is one. */
export function ofAnswer(status: number, body: Uint8Array, where: string): GloveportError {
    const text = new TextDecoder().decode(body);
    return told(status, text, where) ?? unexpected(status, text, where);
}

/** What a server of ours says; nothing if it is none, or has another form. */
function told(status: number, text: string, where: string): GloveportError | undefined {
    let answer: { error?: Record<string, unknown>; detail?: unknown };
    try {
        answer = JSON.parse(text) as typeof answer;
        if (typeof answer !== "object" || answer === null) return undefined;
    } catch {
        return undefined;
    }
    const { error, detail } = answer;
    if (typeof detail === "string") {
        if (status === 503 && detail.startsWith("the sandbox is paused")) {
            // A gateway says so.
            return new PausedError(`the sandbox at ${where} is paused`, {
                status,
                remedy: "resume it at its gateway",
                code: "paused",
            });
        }
        if ((status === 502 || status === 504) && detail.startsWith("the server of the sandbox does not answer")) {
            // A gateway says so, also for a moment of a sandbox that is being ended.
            return new ConnectionLostError(
                `the gateway has lost the connection to the sandbox's server at ${where}: ${detail}`,
                { remedy: "find out whether it was done before you ask again" },
            );
        }
        // As the routes of OpenHands have it. A path that is not there may be that of any server.
        if (status !== 404)
            return new (BY_STATUS.get(status) ?? ServerFailedError)(detail, { status, code: "refused" });
        // A gateway says so.
        if (!detail.startsWith("there is no such sandbox")) return undefined;
        const message = `the sandbox at ${where} is not there, or no more: ${detail}`;
        return new SandboxGoneError(message, { remedy: ENDED });
    }
    const [code, message, remedy] = [error?.["code"], error?.["message"], error?.["hint"]];
    if (typeof code !== "string" || typeof message !== "string") return undefined;
    if (code === "forbidden" && message === "Invalid API Key") {
        return new ForbiddenError(`the sandbox's server at ${where} does not take the key: ${message}`, {
            status,
            code,
            remedy: "give the key that the server has; `gloveport session env ID` prints that of a session",
        });
    }
    if (typeof remedy === "string") {
        const kind = BY_CODE.get(code) ?? BY_STATUS.get(status) ?? ServerFailedError;
        return new kind(message, { status, remedy, code });
    }
    if (error?.["request_id"] === undefined) return undefined;
    return new UnexpectedAnswerError(`${where} is a gateway, and none of its sandboxes: ${message}`, {
        remedy: "give the URL and the key of a sandbox, as `url` and `key` of `info` of a `Gateway` are",
        code: "is_gateway",
    });
}

function unexpected(status: number, text: string, where: string): UnexpectedAnswerError {
    const start = JSON.stringify(text.slice(0, 200).trim());
    return new UnexpectedAnswerError(`the answer of ${where} with status ${status} is none of gloveport's: ${start}`, {
        remedy: CHECK_THE_URL,
        ...(status === 404 ? { code: "no_such_path" } : {}),
    });
}
