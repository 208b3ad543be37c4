/// <reference lib="esnext.disposable" preserve="true" />
// Terminals of a sandbox.

import { countOf, Deadline, freshId, orLeft } from "./checks.js";
import type { Connection } from "./connection.js";
import { Conversation, HELD, pathOf, PIECE, type TerminalEnd } from "./conversation.js";
import { GloveportError, InvalidRequestError, NotFoundError, StillRunningError, TimedOutError } from "./errors.js";
import { Fields, parsed } from "./fields.js";
import type * as wire from "./wire.js";

/** Milliseconds within which a terminal has to take what is typed, and in which a marker has to come by default. */
const TAKING = 30_000;

/** How a terminal is started. */
export interface TerminalOptions {
    /** Its width in characters: 80 by default. */
    cols?: number | undefined;
    /** Its height in characters: 24 by default. */
    rows?: number | undefined;
    /** Directory to start in; that of the sandbox's shell by default. */
    cwd?: string | undefined;
    /** Variables beside those of the sandbox, such as `TERM`. */
    env?: Readonly<Record<string, string>> | undefined;
    /** A name that finds it again: letters, digits, `-`, `_` and `.`. */
    id?: string | undefined;
}

/** How something of a terminal is waited for. */
export interface TerminalWaitOptions {
    /** Milliseconds after which the waiting is given up. */
    timeoutMs?: number | undefined;
    /** Gives the waiting up, and throws its reason. */
    signal?: AbortSignal | undefined;
}

/** A terminal as the sandbox lists it. */
export interface TerminalInfo {
    /** Its id. */
    readonly id: string;
    /** The program and its arguments. */
    readonly argv: readonly string[];
    /** The directory that it was started in. */
    readonly cwd: string;
    /** Its width in characters. */
    readonly cols: number;
    /** Its height in characters. */
    readonly rows: number;
    /** The number of its program in the sandbox, while that runs. */
    readonly pid?: number;
    /** How its program ended, if it has. */
    readonly end?: TerminalEnd;
}

/** Starts a terminal. Its id is chosen here, and the server starts only one of each. */
export async function start(
    connection: Connection,
    command: string | readonly string[] | undefined,
    options: TerminalOptions,
): Promise<Terminal> {
    const json: wire.TerminalRequest = {
        id: options.id ?? freshId(12),
        columns: countOf("cols", options.cols ?? 80),
        rows: countOf("rows", options.rows ?? 24),
    };
    if (command !== undefined) json.argv = typeof command === "string" ? ["/bin/sh", "-c", command] : [...command];
    if (options.cwd !== undefined) json.cwd = options.cwd;
    if (options.env !== undefined) json.env = options.env;
    const { body } = await connection.perform({ method: "POST", path: "/v1/terminals", json, repeatable: true });
    return new Terminal(connection, infoOf(parsed(body)));
}

/** The terminals that run, and the latest that ended. */
export async function list(connection: Connection): Promise<TerminalInfo[]> {
    const { body } = await connection.perform({ method: "GET", path: "/v1/terminals", repeatable: true });
    return new Fields<wire.TerminalList>(parsed(body), "the list of terminals").list("terminals").map(infoOf);
}

function infoOf(value: unknown): TerminalInfo {
    const told = new Fields<wire.TerminalStatus>(value, "a terminal");
    const state = told.word("state", "starting", "running", "ended");
    const [pid, exitCode, signal] = [told.maybeCount("pid"), told.maybeNumber("exit_code"), told.maybeCount("signal")];
    const end = { exitCode: exitCode ?? -1, ...(signal === undefined ? {} : { signal }) };
    return {
        id: told.text("id"),
        argv: told.texts("argv"),
        cwd: told.text("cwd"),
        cols: told.count("columns"),
        rows: told.count("rows"),
        ...(pid === undefined ? {} : { pid }),
        ...(state === "ended" ? { end } : {}),
    };
}

/**
 * A program on a terminal of its own, as for a person: it has a size, and takes keys.
 *
 * It ends with `close`, the end of an `await using` block, or the sandbox. A connection that breaks is made again, and
 * neither output nor input is lost or doubled. Calls may be made side by side; what one has read, others do not get.
 */
export class Terminal {
    /** What was known of it when it was started. */
    readonly info: TerminalInfo;
    readonly #connection: Connection;
    readonly #conversation: Conversation;
    /** Ends when what was typed before is on its way. */
    #typing: Promise<void> = Promise.resolve();

    /** @internal */
    constructor(connection: Connection, info: TerminalInfo) {
        this.#connection = connection;
        this.info = info;
        this.#conversation = new Conversation(connection, info.id);
    }

    /** Its id. */
    get id(): string {
        return this.info.id;
    }

    /** Bytes of output that were gone before they were read, because the sandbox keeps the last 64 MiB. */
    get missing(): number {
        return this.#conversation.missing;
    }

    /**
     * How it stands.
     *
     * @throws {@link NotFoundError} when the sandbox has forgotten it, which keeps the last 32 that ended.
     */
    async status(): Promise<TerminalInfo> {
        const { body } = await this.#connection.perform({ method: "GET", path: pathOf(this.id), repeatable: true });
        return infoOf(parsed(body));
    }

    /**
     * The next output, as soon as there is some: up to `most` bytes, 64 KiB by default. Nothing behind the end of the
     * program.
     *
     * @throws {@link TimedOutError} after `timeoutMs`.
     */
    async read(options: TerminalWaitOptions & { most?: number | undefined } = {}): Promise<Uint8Array | undefined> {
        const most = Math.max(1, countOf("most", options.most ?? 65_536));
        const talk = this.#conversation;
        const hasOutput = () => talk.hasOutput();
        return this.#limited(options, "wrote nothing", async (signal) => {
            for (;;) {
                await talk.until(hasOutput, signal);
                const data = talk.held.take(most);
                if (data.length > 0) return data;
                // Another one may have taken it.
                if (talk.isOver()) return undefined;
            }
        });
    }

    /**
     * The output up to the end of a marker, such as a prompt, as text; without the marker if the program ends.
     *
     * @param options - `timeoutMs` is 30 seconds by default.
     * @throws {@link TimedOutError} after `timeoutMs`, and {@link GloveportError} with the code `too_much_output` when
     * it is not in the next MiB. The output is still there to be read then.
     */
    async readUntil(marker: string | Uint8Array, options: TerminalWaitOptions = {}): Promise<string> {
        const bytes = typeof marker === "string" ? new TextEncoder().encode(marker) : marker;
        if (bytes.length === 0) throw new InvalidRequestError("an empty marker is everywhere");
        const talk = this.#conversation;
        let [searched, end, size] = [0, 0, 0];
        const isThere = (): boolean => {
            // Somebody else has read.
            if (talk.held.size < size) searched = 0;
            size = talk.held.size;
            const at = talk.held.find(bytes, searched);
            searched = Math.max(0, size - bytes.length + 1);
            end = at < 0 ? 0 : at + bytes.length;
            return at >= 0 || talk.isOver() || size >= HELD;
        };
        const waiting = { ...options, timeoutMs: options.timeoutMs ?? TAKING };
        return this.#limited(waiting, `wrote no ${JSON.stringify(marker)}`, async (signal) => {
            await talk.until(isThere, signal);
            if (end === 0 && !talk.isOver()) {
                throw new GloveportError(`the terminal \`${this.id}\` wrote ${HELD} bytes without the marker in them`, {
                    code: "too_much_output",
                    remedy: "read what there is, and wait for something else",
                });
            }
            return new TextDecoder("utf-8", { ignoreBOM: true }).decode(talk.held.take(end || talk.held.size));
        });
    }

    /**
     * The output as it comes, as text, until the program ends. Leaving it does not end the program.
     *
     * @param options - `signal` gives it up, and throws its reason.
     */
    async *follow(options: { signal?: AbortSignal | undefined } = {}): AsyncGenerator<string, void> {
        const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
        for (let data = await this.read(options); data !== undefined; data = await this.read(options)) {
            const text = decoder.decode(data, { stream: true });
            if (text !== "") yield text;
        }
        const text = decoder.decode();
        if (text !== "") yield text;
    }

    /** The same as `follow`. */
    [Symbol.asyncIterator](): AsyncGenerator<string, void> {
        return this.follow();
    }

    /**
     * Types something: `"ls\n"` with Enter, `"\x03"` is C-c. What others type comes before or behind it.
     *
     * @throws {@link ConflictError} if the program has ended, and {@link TimedOutError} if nothing is taken for half a
     * minute; a part may have been typed then.
     */
    async write(data: string | Uint8Array, options: { signal?: AbortSignal | undefined } = {}): Promise<void> {
        const bytes = typeof data === "string" ? new TextEncoder().encode(data) : Uint8Array.from(data);
        const before = this.#typing;
        const typing = before.then(() => this.#type(bytes, options.signal));
        this.#typing = typing.catch(() => {});
        return orLeft(typing, options.signal);
    }

    async #type(bytes: Uint8Array<ArrayBuffer>, signal: AbortSignal | undefined): Promise<void> {
        const talk = this.#conversation;
        const options = { timeoutMs: TAKING, signal };
        for (let at = 0; at < bytes.length; at += PIECE) {
            const piece = bytes.slice(at, at + PIECE);
            await this.#limited(options, "took nothing", (limit) =>
                talk.until(() => talk.hasRoom(piece.length), limit),
            );
            talk.type(piece);
        }
        await this.#limited(options, "took nothing", (limit) => talk.until(() => talk.hasSent(), limit));
    }

    /**
     * Gives it another size in characters, which its programs are told.
     *
     * @throws {@link ConflictError} if its program has ended.
     */
    async resize(cols: number, rows: number): Promise<void> {
        const json: wire.TerminalSize = { columns: countOf("cols", cols), rows: countOf("rows", rows) };
        await this.#connection.perform({ method: "POST", path: pathOf(this.id, "/resize"), json, repeatable: true });
    }

    /**
     * Waits until its program ends. Output can still be read afterwards.
     *
     * @throws {@link StillRunningError} after `timeoutMs`; the program goes on.
     */
    async wait(options: TerminalWaitOptions = {}): Promise<TerminalEnd> {
        const late = () =>
            new StillRunningError(`the program on the terminal \`${this.id}\` has not ended in time, and goes on`);
        const deadline = new Deadline(options.signal, "timeoutMs", options.timeoutMs, late);
        const talk = this.#conversation;
        try {
            await talk.until(() => talk.hasEnded(), deadline.signal);
            return talk.end ?? { exitCode: -1 };
        } finally {
            deadline.end();
        }
    }

    /** Ends its program and everything that this started. Twice is not an error. */
    async close(): Promise<void> {
        try {
            await this.#connection.perform({ method: "DELETE", path: pathOf(this.id), repeatable: true });
        } catch (error) {
            if (!(error instanceof NotFoundError)) throw error;
        } finally {
            this.#conversation.close();
        }
    }

    /** Closes it. */
    async [Symbol.asyncDispose](): Promise<void> {
        await this.close();
    }

    async #limited<T>(
        { timeoutMs, signal }: TerminalWaitOptions,
        what: string,
        body: (signal: AbortSignal) => Promise<T>,
    ): Promise<T> {
        const late = () => new TimedOutError(`the terminal \`${this.id}\` ${what} in ${timeoutMs} ms`);
        const deadline = new Deadline(signal, "timeoutMs", timeoutMs, late);
        try {
            return await body(deadline.signal);
        } finally {
            deadline.end();
        }
    }
}
