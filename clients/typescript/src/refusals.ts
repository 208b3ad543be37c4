// Answers that are errors, and which error each of them is.

import {
    type ApiError,
    ConflictError,
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

/** The error for an answer that is one. */
export function ofAnswer(status: number, body: Uint8Array): GloveportError {
    const text = new TextDecoder().decode(body);
    try {
        const { error, detail } = JSON.parse(text) as { error?: Record<string, unknown>; detail?: unknown };
        if (typeof detail === "string" && status !== 404) {
            // As the routes of OpenHands have it. A path that is not there may be that of any server.
            return new (BY_STATUS.get(status) ?? ServerFailedError)(detail, { status, code: "refused" });
        }
        const [code, message, remedy] = [error?.["code"], error?.["message"], error?.["hint"]];
        if (typeof code === "string" && typeof message === "string" && typeof remedy === "string") {
            const kind = BY_CODE.get(code) ?? BY_STATUS.get(status) ?? ServerFailedError;
            return new kind(message, { status, remedy, code });
        }
    } catch {
        // It is not JSON, or has another form.
    }
    const start = JSON.stringify(text.slice(0, 200).trim());
    return new UnexpectedAnswerError(`the answer with status ${status} is none of gloveport's: ${start}`, {
        remedy: CHECK_THE_URL,
        ...(status === 404 ? { code: "no_such_path" } : {}),
    });
}
