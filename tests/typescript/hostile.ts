// Servers that answer what no server of gloveport does.

import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";

const STATE = '{"state": "running", "since_seconds": 1, "idle_seconds": 0}';

/** A server that says that it is a sandbox, and answers everything else as it is told. */
export async function served(
    answer: (request: IncomingMessage, response: ServerResponse) => void,
    body: (url: string) => Promise<void>,
    upgraded?: (request: IncomingMessage, socket: Duplex) => void,
): Promise<void> {
    const sockets = new Set<Duplex>();
    const server = createServer((request, response) => {
        request.on("error", () => {});
        response.on("error", () => {});
        request.resume();
        request.on("end", () => {
            if (request.url === "/v1/sandbox" && request.method === "GET") response.end(STATE);
            else answer(request, response);
        });
    });
    if (upgraded !== undefined) {
        server.on("upgrade", (request, socket) => {
            sockets.add(socket);
            socket.on("error", () => socket.destroy());
            upgraded(request, socket);
        });
    }
    await once(server.listen(0, "127.0.0.1"), "listening");
    try {
        await body(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    } finally {
        for (const socket of sockets) socket.destroy();
        server.closeAllConnections();
        server.close();
    }
}

/** Accepts a WebSocket. */
export function accept(request: IncomingMessage, socket: Duplex): void {
    const key = `${request.headers["sec-websocket-key"]}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`;
    const sum = createHash("sha1").update(key).digest("base64");
    const head = ["HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade"];
    socket.write([...head, `Sec-WebSocket-Accept: ${sum}`, "", ""].join("\r\n"));
}

/** A frame of a server, of a kind such as 0x81, a text that is whole. */
export function frame(kind: number, content: string | Uint8Array): Buffer {
    const payload = Buffer.from(content);
    const head =
        payload.length < 126 ? Buffer.of(kind, payload.length) : Buffer.of(kind, 127, ...Array<number>(8).fill(0));
    if (payload.length >= 126) head.writeBigUInt64BE(BigInt(payload.length), 2);
    return Buffer.concat([head, payload]);
}

/** What a terminal's server sends first. */
export const START = frame(0x81, '{"type": "start", "id": "x", "offset": 0, "end": 0, "input": 0}');

/** What comes over a WebSocket that is none of a terminal's. */
export function hostileFrames(): [what: string, frames: Buffer][] {
    const told = (json: string): Buffer => Buffer.concat([START, frame(0x81, json)]);
    return [
        ["a message of much more than a MiB", Buffer.of(0x82, 127, 0, 0, 1, 0, 0, 0, 0, 0)],
        ["a message of more than there is", Buffer.of(0x82, 127, ...Array<number>(8).fill(255))],
        [
            "a message of more than a MiB in parts",
            Buffer.concat(Array<Buffer>(20).fill(frame(0x02, "x".repeat(99_999)))),
        ],
        ["parts that are none", Buffer.concat([0x02, 0x00, 0x02].map((kind) => frame(kind, "x")))],
        ["a part without a beginning", frame(0x80, "x")],
        ["a masked frame", Buffer.of(0x81, 0x81, 1, 2, 3, 4, 5)],
        ["an extension", frame(0xc1, "x")],
        ["a kind that is none", frame(0x83, "x")],
        ["a kind of control that is none", frame(0x8b, "x")],
        ["a ping in parts", frame(0x09, "x")],
        ["a large ping", frame(0x89, "x".repeat(126))],
        ["a text that is none", frame(0x81, Buffer.of(0xff))],
        ["no JSON", frame(0x81, "x")],
        ["much JSON", frame(0x81, "[".repeat(200_000))],
        ["no object", frame(0x81, "[]")],
        ["no type", frame(0x81, "{}")],
        ["a start without input", frame(0x81, '{"type": "start"}')],
        ["input that nobody typed", told('{"type": "input", "offset": 5}')],
        ["input below zero", told('{"type": "input", "offset": -1}')],
        ["a gap to nowhere", told('{"type": "gap", "from": 0, "to": 1e300}')],
        ["an end without a code", told('{"type": "exit"}')],
        ["an error without a text", told('{"type": "error", "message": 5}')],
        ["an error", told('{"type": "error", "message": "not today"}')],
        ["a close that is final", frame(0x88, Buffer.of(0x03, 0xf0, 0xff))],
        ["a close of one byte", frame(0x88, "x")],
    ];
}

/** Answers that are not what they must be. */
export function strangeAnswers(): string[] {
    const answers = [
        "",
        "null",
        "[]",
        "{}",
        '"x"',
        "7",
        "[".repeat(200_000),
        '{"execs": 5, "entries": 7, "processes": {}}',
    ];
    answers.push('{"entries": [{"path": 1}], "truncated": false, "execs": [{}], "processes": [null]}');
    answers.push('{"__proto__": {"id": "x"}, "constructor": 1, "entries": [[]], "truncated": "x", "execs": ["x"]}');
    answers.push(
        '{"lines": [{}], "terminals": [1], "pages": 5, "parts": 1, "mcp_servers": [0], "result": [], "id": 0}',
    );
    answers.push(
        '{"id": 0, "result": {"tools": [{}], "content": 5}, "truncated": 0, "state": 1, "argv": 2, "next": []}',
    );
    const events = [
        "ready",
        "change",
        "message",
        "output",
        "gap",
        "exit",
        "error",
        "end",
        "failed",
        "display",
        "stream",
        "raised",
        "lost",
        "start",
    ];
    const data = [
        "{}",
        "[]",
        '{"offset": "x", "text": 1, "to": null}',
        '{"base64": "*", "offset": 0, "data": []}',
        "{".repeat(100_000),
    ];
    data.push('{"offset": 1e300, "text": "x", "to": -1, "bytes": 1.5, "stream": "stdin", "message": {}}');
    for (const name of events) for (const each of data) answers.push(`event: ${name}\ndata: ${each}\n\n`);
    return answers;
}

const BLOCK = 512;

/** One file of a tar stream, in the form that GNU tar gives it. */
export function entry(
    name: string,
    flag: string,
    more: { target?: string; content?: string; size?: string } = {},
): Buffer {
    const header = Buffer.alloc(BLOCK);
    const content = Buffer.from(more.content ?? "");
    header.write(name, 0);
    header.write("0000644\0", 100);
    header.write(more.size ?? `${content.length.toString(8).padStart(11, "0")}\0`, 124, "latin1");
    header.write("00000000000\0", 136);
    header.write("        ", 148);
    header.write(flag, 156);
    header.write(more.target ?? "", 157);
    header.write("ustar\x0000", 257, "latin1");
    const sum = header.reduce((total, byte) => total + byte, 0);
    header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
    return Buffer.concat([header, content, Buffer.alloc((BLOCK - (content.length % BLOCK)) % BLOCK)]);
}

/** Archives that want to get out, or to be more than they are. */
export function hostileArchives(outside: string): [what: string, archive: Buffer][] {
    const all: [string, Buffer[]][] = [
        ["a step up", [entry("../out", "0", { content: "x" })]],
        ["a step up behind a directory", [entry("a/../../out", "0", { content: "x" })]],
        ["an absolute path", [entry(`${outside}/out`, "0", { content: "x" })]],
        ["a link to an absolute path", [entry("l", "2", { target: outside })]],
        ["a link that steps up", [entry("a/l", "2", { target: "../.." })]],
        [
            "links behind each other",
            [entry("a/b/l", "2", { target: "../.." }), entry("m", "2", { target: "a/b/l/.." })],
        ],
        [
            "a file behind a link",
            [entry("d/", "5"), entry("l", "2", { target: "d" }), entry("l/out", "0", { content: "x" })],
        ],
        ["a directory in the place of a link", [entry("d/", "5"), entry("l", "2", { target: "d" }), entry("l/", "5")]],
        ["a file in the place of a directory", [entry("d/", "5"), entry("d", "0")]],
        ["a hard link that steps up", [entry("h", "1", { target: "../secret" })]],
        ["a hard link to a link", [entry("l", "2", { target: "x" }), entry("h", "1", { target: "l" })]],
        ["a hard link to nothing", [entry("h", "1", { target: "nothing" })]],
        ["a device", [entry("null", "3")]],
        ["a FIFO", [entry("fifo", "6")]],
        ["no name", [entry("", "0", { content: "x" })]],
        ["an unknown kind", [entry("s", "S")]],
        [
            "a name in a description",
            [entry("x", "x", { content: "15 path=../out\n" }), entry("a", "0", { content: "x" })],
        ],
        ["a long name of GNU", [entry("x", "L", { content: "../out\0" }), entry("a", "0", { content: "x" })]],
        ["a description without an end", [entry("x", "x", { content: "99 path=x\n" })]],
        ["a description of no length", [entry("x", "x", { content: "0 path=x\n" })]],
        ["a huge description", [entry("x", "x", { size: "77777777777\0" })]],
        ["a size that is none", [entry("a", "0", { size: "abc\0" })]],
        ["a huge size", [entry("a", "0", { size: "\x80\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff" })]],
        ["a size below zero", [entry("a", "0", { size: "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff" })]],
        ["more size than content", [entry("a", "0", { size: "00000100000\0" })]],
        ["a block without a sum", [Buffer.alloc(BLOCK, "x")]],
        ["half a block", [Buffer.alloc(100, "x")]],
        ["nothing", []],
    ];
    return all.map(([what, parts]) => {
        const isCut = what === "half a block" || what === "nothing";
        return [what, Buffer.concat(isCut ? parts : [...parts, Buffer.alloc(2 * BLOCK)])];
    });
}
