// The frames of WebSockets (RFC 6455), as a client reads and writes them.

import { randomBytes } from "node:crypto";

import { foreign } from "../fields.js";

/** What a frame is. */
export const OPCODE = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const;

/** A frame of the server. */
export interface Frame {
    readonly opcode: number;
    /** Whether the message ends with it. */
    readonly isLast: boolean;
    readonly payload: Uint8Array;
}

/** Bytes of a frame that tells something about the connection, at most. */
const CONTROL = 125;

/** Takes pieces of a connection, and gives the frames that they complete. */
export class FrameParser {
    readonly #most: number;
    #pieces: Buffer[] = [];
    #size = 0;
    /** Bytes without which there is no more to see. */
    #needed = 2;

    /** For frames of so many bytes at most. */
    constructor(most: number) {
        this.#most = most;
    }

    /** Throws `UnexpectedAnswerError` for what no server may send. */
    *feed(piece: Buffer): Generator<Frame> {
        this.#pieces.push(piece);
        this.#size += piece.length;
        // Joined once for each frame, however small the pieces are.
        if (this.#size < this.#needed) return;
        let rest = Buffer.concat(this.#pieces, this.#size);
        for (;;) {
            const { start, end } = this.#measured(rest);
            this.#needed = end;
            if (rest.length < end) break;
            const [first = 0] = rest;
            const frame = { opcode: first & 0x0f, isLast: (first & 0x80) !== 0, payload: rest.subarray(start, end) };
            rest = rest.subarray(end);
            yield frame;
        }
        [this.#pieces, this.#size] = [rest.length > 0 ? [rest] : [], rest.length];
    }

    /** Where the content of the next frame begins and ends, as far as its head is there. */
    #measured(bytes: Buffer): { start: number; end: number } {
        const [first, second] = bytes;
        if (first === undefined || second === undefined) return { start: 2, end: 2 };
        if ((first & 0x70) !== 0) throw foreign("a frame has an extension that nobody asked for");
        if (second >= 0x80) throw foreign("a frame of the server is masked");
        const isControl = (first & 0x08) !== 0;
        if (isControl && (second > CONTROL || (first & 0x80) === 0)) throw foreign("a frame of control is too large");
        const start = second === 126 ? 4 : second === 127 ? 10 : 2;
        if (bytes.length < start) return { start, end: start };
        const size = start === 4 ? bytes.readUInt16BE(2) : start === 10 ? Number(bytes.readBigUInt64BE(2)) : second;
        if (size > this.#most) throw foreign(`a message has more than ${this.#most} bytes`);
        return { start, end: start + size };
    }
}

/** A frame of a client, which is a whole message. Its content is masked, so that no proxy takes it for something. */
export function frameOf(opcode: number, payload: Uint8Array): Buffer {
    const size = payload.length;
    const head = Buffer.alloc(size < 126 ? 2 : size < 65536 ? 4 : 10);
    head[0] = 0x80 | opcode;
    if (head.length === 2) head[1] = 0x80 | size;
    else if (head.length === 4) {
        head[1] = 0x80 | 126;
        head.writeUInt16BE(size, 2);
    } else {
        head[1] = 0x80 | 127;
        head.writeBigUInt64BE(BigInt(size), 2);
    }
    const mask = randomBytes(4);
    const masked = Buffer.from(payload);
    for (let at = 0; at < size; at++) masked[at] = (masked[at] ?? 0) ^ (mask[at & 3] ?? 0);
    return Buffer.concat([head, mask, masked]);
}
