// Connections to terminals, as Node makes them: by an upgrade of HTTP. They can set headers, hold the server back when
// nobody reads, and tell what the server answers, and they are there in every version of Node.

import { createHash, randomBytes } from "node:crypto";
import { type IncomingMessage, request as ask } from "node:http";
import { request as askSecurely } from "node:https";
import type { Socket } from "node:net";

import { UnexpectedAnswerError } from "../errors.js";
import { foreign } from "../fields.js";
import { LIMITS } from "../limits.js";
import { type Dial, Inbox, type Line, type Message } from "../line.js";
import { ofAnswer } from "../refusals.js";
import { FrameParser, frameOf, OPCODE } from "./frames.js";

/** What RFC 6455 has a server put behind the key of a handshake. */
const GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/** Bytes of messages that wait for their reader, above which the server is held back. */
const PLENTY = 256 * 1024;
/** Bytes that wait to be sent, above which pings are not answered. */
const UNSENT = 256 * 1024;
/** Bytes that are read of an answer that refuses, and milliseconds for the last words. */
const [REFUSAL, FAREWELL] = [64 * 1024, 1000];
const [NORMAL, NO_STATUS] = [1000, 1005];

/** The URL of the server that has this terminal. */
const serverOf = (url: string): string => url.slice(0, Math.max(0, url.lastIndexOf("/v1/terminals/"))) || url;

/** By an upgrade. */
export const dialUpgrade: Dial = (url, key, signal) =>
    new Promise((resolve, reject) => {
        const nonce = randomBytes(16).toString("base64");
        const headers: Record<string, string> = {
            Connection: "Upgrade",
            Upgrade: "websocket",
            "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": nonce,
        };
        if (key !== undefined) headers["X-Session-API-Key"] = key;
        // A connection of its own, which is not used again.
        const settings = { headers, signal, agent: false } as const;
        const asked = url.startsWith("https:") ? askSecurely(url, settings) : ask(url, settings);
        asked.on("error", reject);
        asked.on("response", (answer) => {
            bodyOf(answer).then((body) => reject(ofAnswer(answer.statusCode ?? 0, body, serverOf(url))), reject);
        });
        asked.on("upgrade", (answer: IncomingMessage, socket: Socket, head: Buffer) => {
            const expected = createHash("sha1")
                .update(nonce + GUID)
                .digest("base64");
            const { upgrade, ...told } = answer.headers;
            const isAsked =
                told["sec-websocket-protocol"] === undefined && told["sec-websocket-extensions"] === undefined;
            const isOurs = upgrade?.toLowerCase() === "websocket" && told["sec-websocket-accept"] === expected;
            if (isOurs && isAsked) {
                const line = new UpgradedLine(socket, head);
                signal.addEventListener("abort", () => line.close(), { once: true });
                resolve(line);
            } else {
                socket.destroy();
                reject(foreign("the connection is upgraded to something else than the WebSocket that was asked for"));
            }
        });
        asked.end();
    });

/** The beginning of an answer that refuses. */
async function bodyOf(answer: IncomingMessage): Promise<Uint8Array> {
    const pieces: Buffer[] = [];
    let size = 0;
    for await (const piece of answer as AsyncIterable<Buffer>) {
        pieces.push(piece);
        size += piece.length;
        if (size > REFUSAL) break;
    }
    answer.destroy();
    return Buffer.concat(pieces);
}

class UpgradedLine implements Line {
    readonly #socket: Socket;
    readonly #parser = new FrameParser(LIMITS.message);
    readonly #inbox = new Inbox();
    /** The frames of a message that has not ended. */
    #parts: Uint8Array[] = [];
    #size = 0;
    #isText = false;
    /** Whether a message has begun and not ended. */
    #isOpen = false;
    #isOver = false;

    constructor(socket: Socket, head: Buffer) {
        this.#socket = socket;
        socket.setNoDelay(true);
        // The server sends a ping every 15 s.
        socket.setTimeout(LIMITS.silence, () => this.#end(0, "the server was silent"));
        socket.on("error", (error) => this.#end(0, error.message));
        socket.on("close", () => this.#end(0, "the connection broke"));
        socket.on("end", () => this.#end(0, "the connection broke"));
        this.#feed(head);
        socket.on("data", (piece: Buffer) => this.#feed(piece));
    }

    async receive(): Promise<Message> {
        const message = await this.#inbox.take();
        if (this.#inbox.size < PLENTY && this.#socket.isPaused()) this.#socket.resume();
        return message;
    }

    send(data: Uint8Array): void {
        this.#write(OPCODE.binary, data);
    }

    hold(isHeld: boolean): void {
        if (this.#isOver) return;
        if (isHeld) this.#socket.ref();
        else this.#socket.unref();
    }

    close(): void {
        this.#end(0, "it was given up");
    }

    #feed(piece: Buffer): void {
        if (this.#isOver) return;
        try {
            for (const { opcode, isLast, payload } of this.#parser.feed(piece)) {
                if (opcode >= OPCODE.close) this.#obey(opcode, payload);
                else this.#add(opcode, isLast, payload);
                if (this.#isOver) return;
            }
        } catch (error) {
            this.#inbox.end(foreignOf(error));
            this.#end(0, "");
        }
        if (this.#inbox.size >= PLENTY) this.#socket.pause();
    }

    /** Takes a frame of control. */
    #obey(opcode: number, payload: Uint8Array): void {
        if (opcode === OPCODE.close) {
            const status = payload.length < 2 ? NO_STATUS : ((payload[0] ?? 0) << 8) | (payload[1] ?? 0);
            this.#end(status, new TextDecoder().decode(payload.subarray(2)));
        } else if (opcode === OPCODE.ping) {
            // Who does not read gets no more answers than it has room for.
            if (this.#socket.writableLength < UNSENT) this.#write(OPCODE.pong, payload);
        } else if (opcode !== OPCODE.pong) {
            throw foreign("a frame is of no kind that there is");
        }
    }

    /** Takes a frame of a message. */
    #add(opcode: number, isLast: boolean, payload: Uint8Array): void {
        const isFirst = opcode !== OPCODE.continuation;
        if (opcode > OPCODE.binary || isFirst === this.#isOpen) throw foreign("a frame is out of place");
        if (isFirst) this.#isText = opcode === OPCODE.text;
        this.#isOpen = !isLast;
        this.#size += payload.length;
        if (this.#size > LIMITS.message) throw foreign(`a message has more than ${LIMITS.message} bytes`);
        // Copied, so that it does not keep the piece that it came in.
        if (payload.length > 0) this.#parts.push(Uint8Array.from(payload));
        if (!isLast) return;
        const whole = this.#parts.length === 1 ? (this.#parts[0] ?? payload) : Buffer.concat(this.#parts);
        [this.#parts, this.#size] = [[], 0];
        this.#inbox.put(this.#isText ? new TextDecoder("utf-8", { fatal: true }).decode(whole) : whole);
    }

    #write(opcode: number, payload: Uint8Array): void {
        if (!this.#isOver) this.#socket.write(frameOf(opcode, payload));
    }

    /** Ends it, with a farewell where somebody may still hear it. */
    #end(status: number, reason: string): void {
        if (this.#isOver) return;
        this.#write(OPCODE.close, Uint8Array.of(NORMAL >> 8, NORMAL & 0xff));
        this.#isOver = true;
        this.#inbox.end({ status, reason });
        if (this.#socket.destroyed) return;
        this.#socket.end();
        this.#socket.resume();
        this.#socket.unref();
        setTimeout(() => this.#socket.destroy(), FAREWELL).unref();
    }
}

function foreignOf(error: unknown): UnexpectedAnswerError {
    return error instanceof UnexpectedAnswerError ? error : foreign("a text is no UTF-8");
}
