// One request and its answer, which comes piece by piece: what limits them, and what ends them.

import { ConnectionLostError, GloveportError, SandboxClosedError, UnreachableError } from "./errors.js";
import { foreign } from "./fields.js";
import { LIMITS } from "./limits.js";
import type { ServerKind } from "./refusals.js";

/** One request and its answer: whatever ends it ends what waits for it. */
export class Exchange {
    readonly #controller = new AbortController();
    /** The URL of the server. */
    readonly #where: string;
    readonly #kind: ServerKind;
    readonly #wanted: AbortSignal | undefined;
    readonly #abort = () => this.#controller.abort();
    readonly #onEnd: () => void;
    #isClosed = false;
    #isSilent = false;
    #pieces: AsyncIterator<Uint8Array> | undefined;
    /** What the body failed with. */
    #failed: { readonly error: unknown } | undefined;
    #timer: ReturnType<typeof setTimeout> | undefined;

    constructor(where: string, kind: ServerKind, wanted: AbortSignal | undefined, onEnd: () => void) {
        this.#where = where;
        this.#kind = kind;
        this.#wanted = wanted;
        this.#onEnd = onEnd;
        if (wanted?.aborted === true) this.#abort();
        wanted?.addEventListener("abort", this.#abort);
    }

    get signal(): AbortSignal {
        return this.#controller.signal;
    }

    /**
     * Waits for what `begin` starts, for so long. What fails is an error of ours, or the reason of the caller's signal.
     */
    async limited<T>(milliseconds: number, begin: () => Promise<T>): Promise<T> {
        this.#check();
        this.#restart(milliseconds);
        try {
            return await begin();
        } catch (error) {
            this.#check();
            throw this.#isSilent
                ? new ConnectionLostError(
                      `${this.#kind.what} at ${this.#where} was silent for ${milliseconds / 1000} s`,
                  )
                : failure(error, this.#where, this.#kind);
        } finally {
            this.#stop();
        }
    }

    async pause(milliseconds: number): Promise<void> {
        this.#check();
        await new Promise<void>((resolve) => {
            const timer = setTimeout(resolve, milliseconds);
            this.signal.addEventListener("abort", () => {
                clearTimeout(timer);
                resolve();
            });
        });
        this.#check();
    }

    /** The pieces of a body. Nobody waits for the server while it waits for the next one. */
    body(pieces: AsyncIterable<Uint8Array>): ReadableStream<Uint8Array> {
        const iterator = pieces[Symbol.asyncIterator]();
        this.#pieces = iterator;
        return new ReadableStream(
            {
                pull: async (controller) => {
                    this.#stop();
                    try {
                        const { done, value } = await iterator.next();
                        this.#restart(LIMITS.silence);
                        if (done === true) controller.close();
                        else controller.enqueue(value);
                    } catch (error) {
                        // Its own error, and not that of a connection.
                        this.#failed = { error };
                        this.#abort();
                        throw error;
                    }
                },
            },
            { highWaterMark: 0 },
        );
    }

    end(): void {
        this.#stop();
        this.#wanted?.removeEventListener("abort", this.#abort);
        // It ends the bodies, too, where they are still there.
        this.#abort();
        this.#pieces?.return?.().catch(() => {});
        this.#onEnd();
    }

    /** Ends it because its connection is closed. */
    close(): void {
        this.#isClosed = true;
        this.#abort();
    }

    #restart(milliseconds: number): void {
        this.#stop();
        this.#timer = setTimeout(() => {
            this.#isSilent = true;
            this.#abort();
        }, milliseconds);
    }

    #stop(): void {
        clearTimeout(this.#timer);
    }

    #check(): void {
        if (this.#isClosed) throw closed();
        this.#wanted?.throwIfAborted();
        if (this.#failed !== undefined) throw this.#failed.error;
    }
}

/** An answer whose body is read piece by piece. */
export class Answer {
    readonly status: number;
    readonly headers: Headers;
    readonly #exchange: Exchange;
    readonly #reader: ReadableStreamDefaultReader<Uint8Array> | undefined;

    constructor(exchange: Exchange, found: globalThis.Response) {
        this.status = found.status;
        this.headers = found.headers;
        this.#exchange = exchange;
        this.#reader = found.body?.getReader();
    }

    /** The next piece; nothing behind the last one. */
    async read(silence = LIMITS.silence): Promise<Uint8Array | undefined> {
        const reader = this.#reader;
        const piece = reader === undefined ? undefined : await this.#exchange.limited(silence, () => reader.read());
        if (piece?.value === undefined) this.close();
        return piece?.value;
    }

    /** All of it, as long as that is not more than anybody can want. */
    async whole(silence = LIMITS.silence): Promise<Uint8Array> {
        const pieces: Uint8Array[] = [];
        let size = 0;
        const end = performance.now() + Math.max(LIMITS.whole, silence);
        try {
            for (let piece = await this.read(silence); piece !== undefined; piece = await this.read(silence)) {
                size += piece.length;
                if (size > LIMITS.answer) throw foreign(`it has more than ${LIMITS.answer} bytes`);
                if (performance.now() > end) throw new ConnectionLostError("the server takes too long for an answer");
                pieces.push(piece);
            }
        } finally {
            this.close();
        }
        return joined(pieces, size);
    }

    /** Reads what is left behind the last event, so that the connection can be used again. */
    async rest(): Promise<void> {
        try {
            // What follows an end is the end of the stream.
            await this.read(LIMITS.lasting);
        } catch {
            // All that counts is there.
        }
        this.close();
    }

    /** Gives it up. */
    close(): void {
        this.#exchange.end();
    }
}

export function closed(): SandboxClosedError {
    return new SandboxClosedError("the sandbox is closed", { remedy: "start or connect to another one" });
}

/** What an error of `fetch`, or of a connection, means. */
function failure(error: unknown, where: string, kind: ServerKind): GloveportError {
    if (error instanceof GloveportError) return error;
    const cause: unknown = error instanceof Error && error.cause !== undefined ? error.cause : error;
    const why = cause instanceof Error && cause.message !== "" ? cause.message : codeOf(cause) || String(cause);
    if (wasSent(cause)) {
        // A browser does not tell why.
        const remedy =
            cause === error && error instanceof TypeError
                ? "check that the server runs, and that it lets pages of this origin ask (`--allow-origin`)"
                : "find out whether it was done before you ask again";
        return new ConnectionLostError(`the connection to ${kind.what} at ${where} broke: ${why}`, {
            remedy,
            cause: error,
        });
    }
    return new UnreachableError(`${kind.what} at ${where} cannot be reached: ${why}`, {
        remedy: kind.remedy,
        cause: error,
    });
}

/** What Node says of connections that were never made, beside the call that failed. */
const NEVER_MADE = new Set([
    "UND_ERR_CONNECT_TIMEOUT",
    "CERT_HAS_EXPIRED",
    "CERT_NOT_YET_VALID",
    "DEPTH_ZERO_SELF_SIGNED_CERT",
    "ERR_SSL_WRONG_VERSION_NUMBER",
    "ERR_TLS_CERT_ALTNAME_INVALID",
    "SELF_SIGNED_CERT_IN_CHAIN",
    "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
    "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
]);

/** Whether a request may have been sent. A browser does not tell, so there it may always have been. */
function wasSent(cause: unknown): boolean {
    // One error for each address of a name, and each is one of connecting.
    if (cause instanceof AggregateError) return false;
    if (NEVER_MADE.has(codeOf(cause))) return false;
    // A port that `fetch` asks nothing of.
    if (cause instanceof Error && cause.message === "bad port") return false;
    const call = typeof cause === "object" && cause !== null && "syscall" in cause ? cause.syscall : undefined;
    return call !== "connect" && call !== "getaddrinfo";
}

function codeOf(error: unknown): string {
    return typeof error === "object" && error !== null && "code" in error ? String(error.code) : "";
}

/** Pieces in one. */
export function joined(pieces: readonly Uint8Array[], size: number): Uint8Array<ArrayBuffer> {
    const whole = new Uint8Array(size);
    let at = 0;
    for (const piece of pieces) {
        whole.set(piece, at);
        at += piece.length;
    }
    return whole;
}
