// Requests to a sandbox's server, and when they are sent again.

import { ConnectionLostError, InvalidRequestError, UnreachableError } from "./errors.js";
import { Answer, Exchange } from "./exchange.js";
import { LIMITS } from "./limits.js";
import { type Dial, dialWebSocket, type Line } from "./line.js";
import { SANDBOX, type ServerKind } from "./refusals.js";

/** Bytes a millisecond that a body is sent with at least, where nobody sees how far it is. */
const SLOWEST = 16;

/** What stands behind the `?`. What may be there more than once is a list of pairs. */
type Query = Readonly<Record<string, string>> | readonly (readonly [string, string])[];

/** A request to a server. */
export interface Request {
    readonly method: "GET" | "POST" | "PUT" | "DELETE";
    readonly path: string;
    readonly query?: Query;
    readonly headers?: Readonly<Record<string, string>>;
    readonly json?: object;
    /** A body, or what makes it, piece by piece, each time that it is sent. */
    readonly content?: Uint8Array<ArrayBuffer> | Blob | (() => AsyncIterable<Uint8Array>);
    /** Statuses that are answers beside those of success. */
    readonly accepts?: readonly number[];
    /** Milliseconds in which its answer has to begin, where that is not as usual. */
    readonly silence?: number;
    /** Whether it has the same effect when it arrives twice. */
    readonly repeatable?: boolean;
    readonly signal?: AbortSignal | undefined;
}

/** A whole answer. */
export interface Response {
    readonly status: number;
    readonly headers: Headers;
    readonly body: Uint8Array;
}

/** The connections to a server. */
export class Connection {
    readonly url: string;
    readonly #headers: Headers;
    readonly #key: string | undefined;
    readonly #dial: Dial;
    readonly #kind: ServerKind;
    /** What is under way. */
    readonly #exchanges = new Set<Exchange>();
    #isClosed = false;

    /** Throws `InvalidRequestError` if the URL or the key cannot be one. */
    constructor(url: string, key: string | undefined, dial: Dial = dialWebSocket, kind: ServerKind = SANDBOX) {
        this.#kind = kind;
        this.url = checkedUrl(url);
        this.#key = key;
        this.#dial = dial;
        // A browser sets the first one itself.
        this.#headers = new Headers({ "Accept-Encoding": "identity" });
        if (key !== undefined) {
            // Checked here, because the error of `Headers` would show it.
            if (!/^[\x21-\x7e]+$/.test(key)) {
                throw new InvalidRequestError("the key is none of a server: it is empty, or has other characters", {
                    code: "invalid_key",
                });
            }
            this.#headers.set(kind.header, key);
        }
    }

    get isClosed(): boolean {
        return this.#isClosed;
    }

    /** Ends all that is under way. */
    close(): void {
        this.#isClosed = true;
        for (const exchange of this.#exchanges) exchange.close();
    }

    /** Sends a request once. An answer that is an error is thrown. */
    async once(request: Request): Promise<Response> {
        const answer = await this.open(request);
        return { status: answer.status, headers: answer.headers, body: await answer.whole() };
    }

    /** Sends a request, and again if that is harmless: where it was not sent, or may be repeated. */
    async perform(request: Request): Promise<Response> {
        const retry = new Retry();
        for (;;) {
            try {
                return await this.once(request);
            } catch (error) {
                const isHarmless =
                    error instanceof UnreachableError || (error instanceof ConnectionLostError && request.repeatable);
                if (!isHarmless) throw error;
                await retry.wait(error, this, request.signal);
            }
        }
    }

    /** Sends a request once, and returns its answer when that begins. One that is an error is thrown. */
    async open(request: Request): Promise<Answer> {
        const exchange = this.#exchange(request.signal);
        const url = `${this.url}${request.path}${search(request.query)}`;
        try {
            const init = prepared(request, this.#headers, exchange);
            const found = await exchange.limited(allowed(request), () => fetch(url, init));
            const answer = new Answer(exchange, found);
            const isAnswer = found.status >= 200 && found.status < 300;
            if (isAnswer || request.accepts?.includes(found.status) === true) return answer;
            throw this.#kind.refusal(found.status, await answer.whole(), this.url);
        } catch (error) {
            exchange.end();
            throw error;
        }
    }

    /** The same, and again where it was not sent. */
    async openPatiently(request: Request): Promise<Answer> {
        const retry = new Retry();
        for (;;) {
            try {
                return await this.open(request);
            } catch (error) {
                if (!(error instanceof UnreachableError)) throw error;
                await retry.wait(error, this, request.signal);
            }
        }
    }

    /** Makes a connection for messages, which ends with this one. */
    async dial(path: string, query: Readonly<Record<string, string>>): Promise<Line> {
        const exchange = this.#exchange(undefined);
        const url = `${this.url}${path}${search(query)}`;
        try {
            const line = await exchange.limited(LIMITS.dialing, () => this.#dial(url, this.#key, exchange.signal));
            return {
                receive: () => line.receive(),
                send: (data) => line.send(data),
                hold: (isHeld) => line.hold(isHeld),
                close: () => exchange.end(),
            };
        } catch (error) {
            exchange.end();
            throw error;
        }
    }

    /** Waits so many milliseconds, or fails when the connection is closed or the signal fires. */
    async sleep(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
        const exchange = this.#exchange(signal);
        try {
            await exchange.pause(milliseconds);
        } finally {
            exchange.end();
        }
    }

    #exchange(signal: AbortSignal | undefined): Exchange {
        const exchange = new Exchange(this.url, this.#kind, signal, () => this.#exchanges.delete(exchange));
        this.#exchanges.add(exchange);
        if (this.#isClosed) exchange.close();
        return exchange;
    }
}

/** How long a connection that broke is tried again, and at which intervals. */
export class Retry {
    #until: number | undefined;
    #delay = 0;
    #opened: number | undefined;

    /** The connection is there again. If it lasts, it has not failed before. */
    opened(): void {
        this.#opened = performance.now();
    }

    /** What was asked for has come a step further. */
    progressed(): void {
        this.#until = undefined;
        this.#delay = 0;
    }

    /** Waits for the next attempt, or throws the error when there has been no progress for too long. */
    async wait(error: unknown, connection: Connection, signal: AbortSignal | undefined): Promise<void> {
        const now = performance.now();
        if (this.#opened !== undefined && now - this.#opened >= LIMITS.lasting) this.progressed();
        this.#opened = undefined;
        this.#until ??= now + LIMITS.patience;
        if (now >= this.#until) throw error;
        if (this.#delay > 0) await connection.sleep(this.#delay, signal);
        this.#delay = Math.min(Math.max(50, this.#delay * 2), 1000);
    }
}

/** What a URL looks like. */
const SUCH_AS = "give one such as http://127.0.0.1:8000";

function checkedUrl(url: string): string {
    const shown = JSON.stringify(url.slice(0, 200));
    let parts: URL;
    try {
        parts = new URL(url);
    } catch {
        throw new InvalidRequestError(`${shown} is no URL`, { code: "invalid_url", remedy: SUCH_AS });
    }
    const isPlain = parts.username === "" && parts.password === "" && parts.search === "" && parts.hash === "";
    if (!["http:", "https:"].includes(parts.protocol) || !isPlain) {
        throw new InvalidRequestError(`${shown} is no URL of a server`, {
            code: "invalid_url",
            remedy: SUCH_AS,
        });
    }
    return parts.origin + parts.pathname.replace(/\/+$/, "");
}

function search(query: Query | undefined): string {
    if (query === undefined) return "";
    const pairs = (Array.isArray(query) ? query : Object.entries(query)) as readonly (readonly [string, string])[];
    return `?${new URLSearchParams(pairs.map((pair) => [...pair]))}`;
}

/** How long a server may take until its answer begins. */
function allowed(request: Request): number {
    const { content, silence } = request;
    if (silence !== undefined) return silence;
    if (content === undefined || typeof content === "function") return LIMITS.silence;
    return LIMITS.silence + (content instanceof Blob ? content.size : content.length) / SLOWEST;
}

function prepared(request: Request, common: Headers, exchange: Exchange): RequestInit {
    const headers = new Headers(common);
    for (const [name, value] of Object.entries(request.headers ?? {})) headers.set(name, value);
    const init: RequestInit & { duplex?: "half" } = {
        method: request.method,
        headers,
        signal: exchange.signal,
        // A redirect would take the key elsewhere.
        redirect: "manual",
        credentials: "omit",
        cache: "no-store",
        referrerPolicy: "no-referrer",
    };
    if (request.json !== undefined) {
        headers.set("Content-Type", "application/json");
        try {
            init.body = JSON.stringify(request.json);
        } catch (error) {
            throw new InvalidRequestError(`this cannot be sent: ${String(error)}`, { cause: error });
        }
    } else if (typeof request.content === "function") {
        init.body = exchange.body(request.content());
        init.duplex = "half";
    } else if (request.content !== undefined) {
        init.body = request.content;
    }
    return init;
}
