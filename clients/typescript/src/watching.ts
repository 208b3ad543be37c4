/// <reference lib="esnext.disposable" preserve="true" />
// Watches of files.

import { secondsOf } from "./checks.js";
import { type Connection, Retry } from "./connection.js";
import { ConnectionLostError, ServerFailedError, TimedOutError, UnreachableError } from "./errors.js";
import { EventParser } from "./events.js";
import type { Answer } from "./exchange.js";
import type { Fields } from "./fields.js";
import { LIMITS } from "./limits.js";
import { pathQuery } from "./names.js";
import type { FileChange } from "./values.js";
import type * as wire from "./wire.js";

/** How files are watched. */
export interface WatchOptions {
    /** Watches everything below a directory. */
    recursive?: boolean | undefined;
    /** Milliseconds without a change after which waiting for the next one throws {@link TimedOutError}. */
    timeoutMs?: number | undefined;
    /** Ends it, and throws its reason. */
    signal?: AbortSignal | undefined;
}

/** Watches a path. */
export async function watch(connection: Connection, path: string, options: WatchOptions): Promise<Watch> {
    if (options.timeoutMs !== undefined) secondsOf("timeoutMs", options.timeoutMs);
    options.signal?.throwIfAborted();
    const leaving = new AbortController();
    const changes = follow(connection, path, options, leaving.signal);
    const opened = new Watch(changes, leaving, options.signal);
    try {
        // Everything is watched when this is there.
        await changes.next();
        return opened;
    } catch (error) {
        await opened.close();
        throw error;
    }
}

/** Hands out nothing once everything is watched, then each change, and ends when what is watched is gone. */
async function* follow(
    connection: Connection,
    path: string,
    { recursive, timeoutMs }: WatchOptions,
    signal: AbortSignal,
): AsyncGenerator<FileChange | undefined, undefined> {
    const query = { ...pathQuery(path), recursive: String(recursive ?? false) };
    const retry = new Retry();
    let changed = performance.now();
    const left = () => (timeoutMs === undefined ? LIMITS.silence : changed + timeoutMs - performance.now());
    let isFirst = true;
    for (;;) {
        let answer: Answer | undefined;
        try {
            answer = await connection.open({ method: "GET", path: "/v1/files/watch", query, signal });
            retry.opened();
            const parser = new EventParser();
            const next = (from: Answer) => from.read(Math.max(1, Math.min(LIMITS.silence, left())));
            for (let piece = await next(answer); piece !== undefined; piece = await next(answer)) {
                for (const { name, data } of parser.feed(piece)) {
                    if (name === "ready") {
                        yield isFirst ? undefined : { kind: "overflow", path: "", isDirectory: false };
                        isFirst = false;
                    } else if (name === "change") {
                        yield changeOf(data as Fields<unknown> as Fields<wire.FileEvent>);
                    } else if (name === "error") {
                        throw new ServerFailedError(data.text("message"), { code: "watch_failed" });
                    } else if (name === "end" && !isFirst) {
                        return undefined;
                    } else {
                        continue;
                    }
                    // Who reads waits from here on.
                    changed = performance.now();
                }
                if (left() <= 0) break;
            }
            throw new ConnectionLostError("the server ended the stream of a watch that has not ended");
        } catch (error) {
            if (!(error instanceof UnreachableError || error instanceof ConnectionLostError)) throw error;
            if (left() <= 0) throw new TimedOutError(`nothing changed at \`${path}\` for ${timeoutMs} ms`);
            await retry.wait(error, connection, signal);
        } finally {
            answer?.close();
        }
    }
}

function changeOf(told: Fields<wire.FileEvent>): FileChange {
    const kind = told.word("change", "created", "modified", "attributes", "removed", "overflow");
    return { kind, path: told.text("path"), isDirectory: told.flag("is_directory") };
}

/**
 * Changes of files as they come, until what is watched is gone.
 *
 * A loop over it that is left ends it; so do `close` and the end of an `await using` block.
 */
export class Watch implements AsyncIterableIterator<FileChange, undefined> {
    readonly #changes: AsyncGenerator<FileChange | undefined, undefined>;
    readonly #leaving: AbortController;
    readonly #signal: AbortSignal | undefined;
    #isOver = false;

    /** @internal */
    constructor(
        changes: AsyncGenerator<FileChange | undefined, undefined>,
        leaving: AbortController,
        signal: AbortSignal | undefined,
    ) {
        this.#changes = changes;
        this.#leaving = leaving;
        this.#signal = signal;
        signal?.addEventListener("abort", this.#leave, { once: true });
    }

    /** The watch itself. */
    [Symbol.asyncIterator](): this {
        return this;
    }

    /** The next change. */
    async next(): Promise<IteratorResult<FileChange, undefined>> {
        if (this.#isOver) return { done: true, value: undefined };
        try {
            this.#signal?.throwIfAborted();
            const { value } = await this.#changes.next();
            if (value !== undefined) return { done: false, value };
            this.#end();
            return { done: true, value: undefined };
        } catch (error) {
            // The one that closed it while this waited has ended it.
            if (this.#isOver) return { done: true, value: undefined };
            await this.close();
            throw error;
        }
    }

    /** Ends it: what a loop calls that is left. */
    async return(): Promise<IteratorResult<FileChange, undefined>> {
        await this.close();
        return { done: true, value: undefined };
    }

    /** Ends it. Twice is not an error. */
    async close(): Promise<void> {
        if (this.#isOver) return;
        this.#end();
        this.#leave();
        await this.#changes.return(undefined);
    }

    /** Closes it. */
    async [Symbol.asyncDispose](): Promise<void> {
        await this.close();
    }

    readonly #leave = (): void => this.#leaving.abort(this.#signal?.reason);

    #end(): void {
        this.#isOver = true;
        this.#signal?.removeEventListener("abort", this.#leave);
    }
}
