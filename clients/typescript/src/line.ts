// Connections to terminals, message by message. This is how a browser makes them; Node has `node/line.ts`.

import { GloveportError, type UnexpectedAnswerError, UnreachableError } from "./errors.js";
import { foreign } from "./fields.js";
import { LIMITS } from "./limits.js";

/** How a connection ended: by the status of a WebSocket, or 0 where it broke. */
export interface Closed {
    readonly status: number;
    readonly reason: string;
}

/** A text, bytes, or the end. */
export type Message = string | Uint8Array | Closed;

/** A connection that is open. */
export interface Line {
    /** The next message. Throws `UnexpectedAnswerError` for one that nobody of ours sends. */
    receive(): Promise<Message>;
    /** Sends a message, if there is still somebody who gets it. */
    send(data: Uint8Array<ArrayBuffer>): void;
    /** Whether this program waits for it before it ends by itself. */
    hold(isHeld: boolean): void;
    close(): void;
}

/** Makes a connection to an `http` or `https` URL, or throws what the server or the network said. */
export type Dial = (url: string, key: string | undefined, signal: AbortSignal) => Promise<Line>;

/** Messages that wait for their reader, who is one. */
export class Inbox {
    /** About as many bytes as they take. */
    size = 0;
    readonly #messages: (string | Uint8Array)[] = [];
    #failed: UnexpectedAnswerError | undefined;
    #end: Closed | undefined;
    #wake: (() => void) | undefined;

    put(message: string | Uint8Array): void {
        this.#messages.push(message);
        this.size += sizeOf(message);
        this.#wake?.();
    }

    /** Nothing comes behind this. The first end is the one that counts. */
    end(how: Closed | UnexpectedAnswerError): void {
        if (this.#end !== undefined || this.#failed !== undefined) return;
        if (how instanceof GloveportError) this.#failed = how;
        else this.#end = how;
        this.#wake?.();
    }

    async take(): Promise<Message> {
        for (;;) {
            const message = this.#messages.shift();
            if (message !== undefined) {
                this.size -= sizeOf(message);
                return message;
            }
            if (this.#failed !== undefined) throw this.#failed;
            if (this.#end !== undefined) return this.#end;
            await new Promise<void>((resolve) => {
                this.#wake = resolve;
            });
        }
    }
}

const sizeOf = (message: string | Uint8Array): number => message.length + 64;

/** The protocol that the server chooses. One that carries a key is never chosen. */
const PROTOCOL = "gloveport.terminal.v1";
const KEY_PROTOCOL = "gloveport.key.";

/** By the `WebSocket` that browsers have, and Node from 22 on. It cannot set headers, so the key is a protocol. */
export const dialWebSocket: Dial = async (url, key, signal) => {
    if (typeof WebSocket === "undefined") {
        throw new GloveportError("terminals need WebSockets, which this program does not have", {
            code: "no_web_socket",
            remedy: "use Node from 22 on, or the class `Sandbox`, which needs none",
        });
    }
    const offered = key === undefined ? [] : [KEY_PROTOCOL + inBase64(key)];
    const socket = new WebSocket(url.replace(/^http/, "ws"), [PROTOCOL, ...offered]);
    const line = new WebSocketLine(socket);
    signal.addEventListener("abort", () => line.close(), { once: true });
    if (signal.aborted) line.close();
    await line.opened();
    return line;
};

/** Base64 for URLs, without padding. */
const inBase64 = (key: string): string => btoa(key).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");

class WebSocketLine implements Line {
    readonly #socket: WebSocket;
    readonly #inbox = new Inbox();
    readonly #opened: Promise<boolean>;
    #timer: ReturnType<typeof setTimeout> | undefined;

    constructor(socket: WebSocket) {
        this.#socket = socket;
        socket.binaryType = "arraybuffer";
        this.#opened = new Promise((resolve) => {
            socket.addEventListener("open", () => resolve(true));
            socket.addEventListener("close", ({ code, reason }) => {
                clearTimeout(this.#timer);
                this.#inbox.end({ status: code, reason });
                resolve(false);
            });
        });
        socket.addEventListener("error", () => this.#fail("the connection broke"));
        socket.addEventListener("message", ({ data }) => this.#take(data));
    }

    /** Waits until it can be used. A browser tells nothing of why it cannot. */
    async opened(): Promise<void> {
        if (await this.#opened) return this.#listen();
        throw new UnreachableError("the sandbox's server cannot be reached by a WebSocket");
    }

    receive(): Promise<Message> {
        return this.#inbox.take();
    }

    send(data: Uint8Array<ArrayBuffer>): void {
        if (this.#socket.readyState === WebSocket.OPEN) this.#socket.send(data);
    }

    hold(): void {}

    close(): void {
        this.#fail("it was given up");
    }

    #fail(reason: string): void {
        clearTimeout(this.#timer);
        this.#inbox.end({ status: 0, reason });
        this.#socket.close();
    }

    #take(data: unknown): void {
        const message = data instanceof ArrayBuffer ? new Uint8Array(data) : data;
        if ((typeof message !== "string" && !(message instanceof Uint8Array)) || message.length > LIMITS.message) {
            this.#inbox.end(foreign(`a message has more than ${LIMITS.message} bytes`));
            return this.#fail("");
        }
        // Nothing holds a server back here. What is not kept is asked for again.
        if (this.#inbox.size > LIMITS.inbox) return this.#fail("more came than is read");
        this.#inbox.put(message);
        this.#listen();
    }

    /**
     * Ends it when nothing has come for long. The pings of the server are not seen here, so this may be one that is
     * only quiet; making it again loses nothing.
     */
    #listen(): void {
        clearTimeout(this.#timer);
        this.#timer = setTimeout(() => this.#fail("the server was silent"), LIMITS.silence);
        // Node waits for it before it ends.
        const timer = this.#timer as { unref?: () => void };
        if (typeof timer === "object") timer.unref?.();
    }
}
