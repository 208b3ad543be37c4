// Files of a sandbox.

import { countOf, modeOf } from "./checks.js";
import { type Connection, type Request, Retry } from "./connection.js";
import {
    ConnectionLostError,
    FileChangedError,
    RemoteFileError,
    RemoteFileNotFoundError,
    RemoteNotADirectoryError,
    TooLargeError,
    UnreachableError,
} from "./errors.js";
import { joined } from "./exchange.js";
import { Fields, foreign, fromBase64, parsed } from "./fields.js";
import { LIMITS } from "./limits.js";
import { nameOf, pathQuery } from "./names.js";
import type { Copied, FileStat, GrepResult } from "./values.js";
import { type Watch, watch, type WatchOptions } from "./watching.js";
import type * as wire from "./wire.js";

/** Most entries of a directory or of a search. */
const MOST_ENTRIES = 100_000;

/** How a file is read. */
export interface ReadOptions {
    /** Gives it up, and throws its reason. */
    signal?: AbortSignal | undefined;
}

/** How a file is written. */
export interface WriteOptions {
    /** Permission bits such as 0o755; without them an existing file keeps its own. */
    mode?: number | undefined;
    /** Makes missing directories. */
    parents?: boolean | undefined;
    /** Fails if something is there. */
    exclusive?: boolean | undefined;
    /** Gives it up, and throws its reason. */
    signal?: AbortSignal | undefined;
}

/** How lines are searched for. */
export interface GrepOptions {
    /** Only files that match one of these patterns; `!` in front excludes. */
    globs?: readonly string[] | undefined;
    /** The pattern is plain text. */
    literal?: boolean | undefined;
    /** Upper and lower case are the same. */
    ignoreCase?: boolean | undefined;
    /** Looks at names that begin with a dot, too. */
    hidden?: boolean | undefined;
    /** Leaves out what `.gitignore` and `.ignore` files name. */
    respectIgnore?: boolean | undefined;
    /** Lines before and after each match that are in the result, too. */
    context?: number | undefined;
    /** Matching lines at most: 1000 by default. */
    limit?: number | undefined;
    /** Gives it up, and throws its reason. */
    signal?: AbortSignal | undefined;
}

/** How names are searched for. */
export interface FindOptions {
    /** With `false` it leaves out names that begin with a dot. */
    hidden?: boolean | undefined;
    /** Leaves out what `.gitignore` and `.ignore` files name. */
    respectIgnore?: boolean | undefined;
    /** Gives it up, and throws its reason. */
    signal?: AbortSignal | undefined;
}

/**
 * Files of a sandbox. A relative path begins in its workspace.
 *
 * Names that are not UTF-8 have half surrogates for their bytes, as `list` and `glob` give them. `mkdir`, `remove` and
 * `rename` do not take these.
 */
export class Files {
    readonly #connection: Connection;

    /** @internal */
    constructor(connection: Connection) {
        this.#connection = connection;
    }

    /**
     * The content of a file: 256 MiB at most, or `most` bytes.
     *
     * @throws {@link TooLargeError} if it has more, which `stream` does not mind; {@link RemoteFileNotFoundError} if
     * nothing is there, and others for what else is.
     */
    async read(path: string, options: ReadOptions & { most?: number | undefined } = {}): Promise<Uint8Array> {
        const most = countOf("most", options.most ?? LIMITS.answer);
        const pieces: Uint8Array[] = [];
        let size = 0;
        for await (const piece of this.stream(path, options)) {
            size += piece.length;
            if (size > most) {
                const remedy = "read it with `stream`, or give `most`";
                throw new TooLargeError(`the file \`${path}\` has more than ${most} bytes`, { remedy });
            }
            pieces.push(piece);
        }
        return joined(pieces, size);
    }

    /**
     * The content of a file as text, which is UTF-8. What is not is shown as �.
     *
     * @throws The same as `read`.
     */
    async readText(path: string, options: ReadOptions & { most?: number | undefined } = {}): Promise<string> {
        return new TextDecoder("utf-8", { ignoreBOM: true }).decode(await this.read(path, options));
    }

    /**
     * The content of a file piece by piece, whatever its size. When the connection breaks, it goes on where it was.
     *
     * @throws {@link FileChangedError} if the file was changed meanwhile.
     */
    async *stream(path: string, options: ReadOptions = {}): AsyncGenerator<Uint8Array, void> {
        const retry = new Retry();
        const { signal } = options;
        let offset = 0;
        let tag: string | undefined;
        for (;;) {
            const headers: Record<string, string> =
                offset > 0 ? { Range: `bytes=${offset}-`, "If-Range": tag ?? "" } : {};
            let close = () => {};
            try {
                const query = pathQuery(path);
                const answer = await this.#connection.open({
                    method: "GET",
                    path: "/v1/files/content",
                    query,
                    headers,
                    signal,
                });
                close = () => answer.close();
                const found = answer.headers.get("etag") ?? undefined;
                if (tag !== undefined && (found !== tag || (offset > 0 && answer.status !== 206))) {
                    const remedy = "read it again";
                    throw new FileChangedError(`the file \`${path}\` was changed while it was read`, {
                        code: "changed",
                        remedy,
                    });
                }
                tag = found;
                for (let piece = await answer.read(); piece !== undefined; piece = await answer.read()) {
                    retry.progressed();
                    offset += piece.length;
                    yield piece;
                }
                return;
            } catch (error) {
                if (!(error instanceof UnreachableError || error instanceof ConnectionLostError)) throw error;
                // A page of another origin does not see the tag, and cannot know whether the rest is of the same file.
                if (offset > 0 && tag === undefined) throw error;
                await retry.wait(error, this.#connection, signal);
            } finally {
                close();
            }
        }
    }

    /**
     * Writes a file, whole or not at all: who reads it meanwhile sees the old content or the new one.
     *
     * Pieces that come one by one need Node, and are sent once: where the connection breaks they are not asked for
     * again.
     *
     * @throws {@link RemoteFileExistsError} with `exclusive` if something is there; {@link RemoteFileNotFoundError}
     * without `parents` if its directory is not.
     */
    async write(
        path: string,
        data: string | Uint8Array | Blob | AsyncIterable<Uint8Array>,
        options: WriteOptions = {},
    ): Promise<void> {
        const { signal } = options;
        if (typeof data === "string" || data instanceof Uint8Array || data instanceof Blob) {
            const content = typeof data === "string" ? new TextEncoder().encode(data) : data;
            await this.#connection.perform(writing(path, content as Uint8Array<ArrayBuffer> | Blob, options));
        } else {
            // It may be gone through only once.
            await this.#connection.once({ ...writing(path, () => data, options), signal });
        }
    }

    /**
     * What is at a path: what a link leads to, or, with `followLinks: false`, the link itself.
     *
     * @throws {@link RemoteFileNotFoundError} if nothing is.
     */
    async stat(path: string, options: { followLinks?: boolean | undefined } = {}): Promise<FileStat> {
        const query = { ...pathQuery(path), follow: String(options.followLinks ?? true) };
        const request: Request = { method: "GET", path: "/v1/files/stat", query, repeatable: true };
        return statOf(parsed((await this.#connection.perform(request)).body));
    }

    /** Whether something is at a path, to which links lead. */
    async exists(path: string): Promise<boolean> {
        try {
            await this.stat(path);
            return true;
        } catch (error) {
            if (error instanceof RemoteFileNotFoundError || error instanceof RemoteNotADirectoryError) return false;
            throw error;
        }
    }

    /**
     * What is in a directory, sorted by names, hidden files, too: 100,000 entries at most.
     *
     * @throws {@link RemoteNotADirectoryError} if it is none; {@link RemoteFileError} with the code `truncated` if it
     * has more.
     */
    async list(path: string): Promise<FileStat[]> {
        const query = { ...pathQuery(path), limit: String(MOST_ENTRIES) };
        const request: Request = { method: "GET", path: "/v1/files/list", query, repeatable: true };
        return entriesOf(path, (await this.#connection.perform(request)).body);
    }

    /**
     * What a pattern such as `src/**\/*.py` matches below a directory, sorted, hidden files, too: 100,000 entries at
     * most.
     *
     * @throws {@link RemoteFileError} with the code `truncated` if there are more.
     */
    async glob(path: string, pattern: string): Promise<FileStat[]> {
        return this.find(path, [pattern]);
    }

    /**
     * What patterns match below a directory, sorted: 100,000 entries at most. One with `!` in front excludes, as in
     * `["**\/*.py", "!tests/**"]`.
     *
     * @throws {@link RemoteFileError} with the code `truncated` if there are more.
     */
    async find(path: string, patterns: readonly string[], options: FindOptions = {}): Promise<FileStat[]> {
        const json: wire.GlobRequest = {
            globs: [...patterns],
            path,
            hidden: options.hidden ?? true,
            respect_ignore: options.respectIgnore ?? false,
            limit: MOST_ENTRIES,
        };
        const { signal } = options;
        const request: Request = { method: "POST", path: "/v1/files/glob", json, repeatable: true, signal };
        return entriesOf(path, (await this.#connection.perform(request)).body);
    }

    /**
     * The lines that a regular expression (of the Rust crate `regex`) matches in a file, or in the files below a
     * directory.
     *
     * @throws {@link InvalidRequestError} if the pattern is none.
     */
    async grep(path: string, pattern: string, options: GrepOptions = {}): Promise<GrepResult> {
        const json: wire.GrepRequest = {
            pattern,
            path,
            globs: [...(options.globs ?? [])],
            literal: options.literal ?? false,
            ignore_case: options.ignoreCase ?? false,
            hidden: options.hidden ?? false,
            respect_ignore: options.respectIgnore ?? false,
            context: countOf("context", options.context ?? 0),
            limit: countOf("limit", options.limit ?? 1000),
        };
        const { signal } = options;
        const request: Request = { method: "POST", path: "/v1/files/grep", json, repeatable: true, signal };
        return matchesOf(parsed((await this.#connection.perform(request)).body));
    }

    /**
     * What happens to files at a path from now on: to a file, to what is in a directory, or, with `recursive`, to all
     * below it. Returns when everything is watched.
     *
     * A connection that breaks is made again; what happened meanwhile is told as an `overflow`.
     *
     * @throws {@link RemoteFileNotFoundError} if nothing is there.
     */
    async watch(path: string, options: WatchOptions = {}): Promise<Watch> {
        return watch(this.#connection, path, options);
    }

    /**
     * Makes a directory. With `recursive` missing ones above it are made, too, and it may be there.
     *
     * @param options - `mode` are its permission bits, such as 0o700.
     * @throws {@link RemoteFileExistsError} if something is there.
     */
    async mkdir(
        path: string,
        options: { mode?: number | undefined; recursive?: boolean | undefined } = {},
    ): Promise<void> {
        const recursive = options.recursive ?? false;
        const json: wire.MkdirRequest = { path, parents: recursive };
        if (options.mode !== undefined) json.mode = modeOf(options.mode);
        await this.#connection.perform({ method: "POST", path: "/v1/files/mkdir", json, repeatable: recursive });
    }

    /**
     * Moves what is at a path to another one, within one file system. With `overwrite` a file or an empty directory
     * there gives way.
     *
     * @throws {@link RemoteFileExistsError} without `overwrite` if something is there.
     */
    async rename(path: string, target: string, options: { overwrite?: boolean | undefined } = {}): Promise<void> {
        const json: wire.MoveRequest = { from: path, to: target, overwrite: options.overwrite ?? false };
        await this.#connection.perform({ method: "POST", path: "/v1/files/move", json });
    }

    /**
     * Removes a file, a link, or an empty directory; with `recursive` a directory with everything in it.
     *
     * @throws {@link RemoteFileNotFoundError} without `force` if nothing is there.
     */
    async remove(
        path: string,
        options: { recursive?: boolean | undefined; force?: boolean | undefined } = {},
    ): Promise<void> {
        const force = options.force ?? false;
        const json: wire.RemoveRequest = { path, recursive: options.recursive ?? false, missing_ok: force };
        await this.#connection.perform({ method: "POST", path: "/v1/files/remove", json, repeatable: force });
    }
}

/** The request that writes a file. */
export function writing(path: string, content: NonNullable<Request["content"]>, options: WriteOptions): Request {
    const exclusive = options.exclusive ?? false;
    const query: Record<string, string> = {
        ...pathQuery(path),
        parents: String(options.parents ?? false),
        exclusive: String(exclusive),
    };
    if (options.mode !== undefined) query["mode"] = modeOf(options.mode);
    const headers = { "Content-Type": "application/octet-stream" };
    const { signal } = options;
    return { method: "PUT", path: "/v1/files/content", query, headers, content, repeatable: !exclusive, signal };
}

/** Unpacks a tar stream into a directory. */
export async function writeArchive(
    connection: Connection,
    path: string,
    content: () => AsyncIterable<Uint8Array>,
    signal: AbortSignal | undefined,
): Promise<Copied> {
    const query = { ...pathQuery(path), parents: "true" };
    const headers = { "Content-Type": "application/x-tar" };
    const request = {
        method: "PUT",
        path: "/v1/files/archive",
        query,
        headers,
        content,
        repeatable: true,
        signal,
    } as const;
    const told = new Fields<wire.Stored>(parsed((await connection.perform(request)).body), "what was stored");
    return { files: told.count("files"), bytes: told.count("bytes") };
}

/** Hands out a tree as a tar stream. One that breaks off cannot be continued. */
export async function* readArchive(
    connection: Connection,
    path: string,
    signal: AbortSignal | undefined,
): AsyncGenerator<Uint8Array, void> {
    const answer = await connection.open({ method: "GET", path: "/v1/files/archive", query: pathQuery(path), signal });
    try {
        for (let piece = await answer.read(); piece !== undefined; piece = await answer.read()) yield piece;
    } finally {
        answer.close();
    }
}

function statOf(value: unknown): FileStat {
    const told = new Fields<wire.FileEntry>(value, "a file");
    const exact = told.maybeText("path_base64");
    const target = told.maybeText("target");
    const mode = told.text("mode");
    if (!/^0*[0-7]{1,4}$/.test(mode)) throw foreign(`the mode of a file is ${JSON.stringify(mode.slice(0, 40))}`);
    return {
        path: exact === undefined ? told.text("path") : nameOf(fromBase64(exact)),
        kind: told.word("kind", "file", "directory", "symlink", "other"),
        size: told.count("size"),
        mode: Number.parseInt(mode, 8),
        uid: told.count("uid"),
        gid: told.count("gid"),
        modified: new Date(told.number("modified") * 1000),
        ...(target === undefined ? {} : { target }),
    };
}

function matchesOf(value: unknown): GrepResult {
    const told = new Fields<wire.GrepMatches>(value, "the result of the search");
    const lines = told.list("lines").map((each) => {
        const line = new Fields<wire.GrepLine>(each, "a line");
        const [path, text] = [line.text("path"), line.text("text")];
        return { path, line: line.count("line"), text, isMatch: line.flag("is_match") };
    });
    return { lines, truncated: told.flag("truncated"), skipped: told.texts("skipped") };
}

function entriesOf(path: string, body: Uint8Array): FileStat[] {
    const told = new Fields<wire.FileList>(parsed(body), "the list of files");
    if (told.flag("truncated")) {
        throw new RemoteFileError(`there are more than ${MOST_ENTRIES} entries in \`${path}\``, {
            code: "truncated",
            remedy: "ask for a part of them",
        });
    }
    return told.list("entries").map(statOf);
}
