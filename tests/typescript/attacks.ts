// What goes wrong: connections that break, servers that go away or are hostile, programs that are killed, and others.

import assert from "node:assert/strict";
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { randomBytes, randomInt } from "node:crypto";
import { once } from "node:events";
import {
    chmodSync,
    existsSync,
    mkdirSync,
    readdirSync,
    readFileSync,
    readlinkSync,
    rmSync,
    writeFileSync,
} from "node:fs";
import { createServer, type IncomingMessage } from "node:http";
import { type AddressInfo, createServer as createSocketServer } from "node:net";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { inspect } from "node:util";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

import * as gloveport from "gloveport";
import { Sandbox } from "gloveport";

import { fails, gathered, keyOf, same } from "./cases.js";
import { startGateway } from "./gateway.js";
import { GATEWAY_ATTACKS } from "./gateways.js";
import { accept, frame, hostileArchives, hostileFrames, served, START, strangeAnswers } from "./hostile.js";
import { PRESENCE_ATTACKS } from "./presence.js";
import { passing, proxied } from "./proxy.js";
import { attempt, check, measured } from "./report.js";

const HOME = process.env["HOME"] ?? "";
const PROGRAM = gloveport.findProgram();
/** The limits of the package, which are no part of its interface. */
const { LIMITS } = (await import(new URL("limits.js", import.meta.resolve("gloveport")).href)) as {
    LIMITS: Record<"patience" | "silence" | "answer" | "event" | "lasting", number>;
};

export function sessions(): Set<string> {
    const listed = execFileSync(PROGRAM, ["session", "ls", "-q"], { encoding: "utf8" });
    return new Set(listed.split(/\s+/).filter((id) => id !== ""));
}

export async function until(isSo: () => boolean, seconds = 20): Promise<boolean> {
    for (const end = performance.now() + seconds * 1000; performance.now() < end; await sleep(20)) {
        if (isSo()) return true;
    }
    return false;
}

/** With other limits, so that nobody waits for as long as a person would. */
async function limited(limits: Partial<typeof LIMITS>, body: () => Promise<void>): Promise<void> {
    const before = { ...LIMITS };
    Object.assign(LIMITS, limits);
    try {
        await body();
    } finally {
        Object.assign(LIMITS, before);
    }
}

const start = () => Sandbox.start({ isolation: "none" });

/** Frees what nobody has any more. */
function collect(): void {
    setFlagsFromString("--expose-gc");
    runInNewContext("gc")();
}

class Child {
    readonly process: ChildProcess;
    readonly pid: number;
    stdout = "";
    stderr = "";
    readonly ended: Promise<unknown>;

    constructor(way: string, ...flags: string[]) {
        const script = fileURLToPath(new URL("child.js", import.meta.url));
        this.process = spawn(process.execPath, [...flags, script, way], {
            detached: true,
            stdio: ["ignore", "pipe", "pipe"],
        });
        this.pid = this.process.pid ?? 0;
        this.process.stdout?.on("data", (data: Buffer) => void (this.stdout += data));
        this.process.stderr?.on("data", (data: Buffer) => void (this.stderr += data));
        this.ended = once(this.process, "close");
    }

    /** The id of its session, when that is there. */
    async id(): Promise<string> {
        assert.ok(await until(() => this.stdout.split("\n").length > 2 || this.process.exitCode !== null), this.stderr);
        return this.stdout.split("\n")[1] ?? "";
    }
}

/** A session that is attached to by a program, which is then another one. What is to be removed is always gone. */
async function stranger(id: string): Promise<{ program: string; box: Sandbox; set: (script: string) => void }> {
    const program = join(HOME, "stranger");
    const set = (script: string): void => {
        // Somebody may still be starting it.
        rmSync(program, { force: true });
        writeFileSync(program, `#!/bin/sh\n[ "$4" != rm ] || exit 0\n${script}\n`, { mode: 0o755 });
    };
    set(`exec ${PROGRAM} "$@"`);
    return { program, box: await Sandbox.attach(id, { program }), set };
}

/** The process that listens at a URL of this machine. */
function listener(url: string): number {
    const port = `:${Number(new URL(url).port).toString(16).toUpperCase().padStart(4, "0")}`;
    const lines = readFileSync("/proc/net/tcp", "utf8").split("\n");
    const listening = lines
        .map((line) => line.trim().split(/\s+/))
        .filter((it) => it[1]?.endsWith(port) && it[3] === "0A");
    const sockets = new Set(listening.map((it) => `socket:[${it[9]}]`));
    for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
        try {
            const files = `/proc/${pid}/fd`;
            if (readdirSync(files).some((file) => sockets.has(linkedTo(join(files, file))))) return Number(pid);
        } catch {
            // It has ended.
        }
    }
    throw new Error(`nobody listens at ${url}`);
}

function linkedTo(path: string): string {
    try {
        return readlinkSync(path);
    } catch {
        return "";
    }
}

const ATTACKS: Record<string, () => Promise<void>> = {
    "output goes on where a connection broke": () =>
        proxied(async (direct, through, proxy) => {
            const lines = Array.from({ length: 30_000 }, (_, number) => `line ${number} ü\n`).join("");
            const script = 'echo ran >> count; i=0; while [ $i -lt 30000 ]; do echo "line $i ü"; i=$((i+1)); done';
            proxy.limits = Array.from({ length: 12 }, () => randomInt(60_000));
            const pieces: string[] = [];
            const result = await through.run(script, { onOutput: (piece) => pieces.push(piece) });
            assert.ok(
                result.output === lines && pieces.join("") === lines,
                `${result.output.length} of ${lines.length}`,
            );
            assert.ok(proxy.count >= 3, `${proxy.count}`);
            same(await direct.files.readText("count"), "ran\n");
        }),

    "a command never runs twice": () =>
        proxied(async (direct, through, proxy) => {
            for (let number = 0; number < 40; number++) {
                await proxy.drop();
                // It breaks before, in and behind the answer's head, and in its events.
                proxy.limits = [number * 12];
                same((await through.run(`echo ${number} >> ran; echo ${number}`)).output, `${number}\n`);
            }
            const expected = (count: number) => Array.from({ length: count }, (_, number) => `${number}\n`).join("");
            same(await direct.files.readText("ran"), expected(40));
            for (let number = 0; number < 10; number++) {
                await proxy.drop();
                proxy.limits = [number * 20];
                await (await through.start(`echo ${number} >> started`)).wait({ timeoutMs: 20_000 });
            }
            same(await direct.files.readText("started"), expected(10));
        }),

    "a terminal loses and doubles nothing where a connection breaks": () =>
        proxied(async (direct, through, proxy) => {
            const data = Array.from({ length: 40_000 }, (_, at) => `${String(at).padStart(7, "0")}\n`).join("");
            const script = "stty raw -echo; echo ready; head -c 320000 >typed; stty sane; seq 1 60000; exit 5";
            await direct.files.write("typed", "");
            await using terminal = await through.terminal(script);
            same(await terminal.readUntil("ready\n"), "ready\n");
            for (let at = 0; at < data.length; at += 8000) {
                await terminal.write(data.slice(at, at + 8000));
                if (randomInt(10) < 3) await proxy.drop();
            }
            proxy.limits = Array.from({ length: 6 }, () => randomInt(200, 200_000));
            await proxy.drop();
            const output = (await gathered(terminal)).join("");
            const expected = Array.from({ length: 60_000 }, (_, at) => `${at + 1}\r\n`).join("");
            assert.ok(output === expected, `${output.length} of ${expected.length}`);
            assert.ok((await direct.files.readText("typed")) === data);
            same([await terminal.wait({ timeoutMs: 5000 }), terminal.missing], [{ exitCode: 5 }, 0]);
            assert.ok(proxy.count >= 8, `${proxy.count}`);
        }),

    "a reader of a terminal that leaves it leaves it usable": async () => {
        await using box = await start();
        await using terminal = await box.terminal("stty -echo; echo ready; exec cat");
        await terminal.readUntil("ready\r\n");
        for (let turn = 0; turn < 3; turn++) {
            await fails(DOMException, terminal.read({ signal: AbortSignal.timeout(100) }));
        }
        const left = new AbortController();
        const first = fails(DOMException, terminal.read({ signal: left.signal }));
        const second = terminal.wait();
        await sleep(50);
        left.abort();
        await first;
        await terminal.write("still\n");
        same(await terminal.readUntil("still\r\n"), "still\r\n");
        await terminal.write("\x04");
        same(await second, { exitCode: 0 });
        same(await terminal.read(), undefined);
    },

    "a hostile WebSocket raises our errors alone": () =>
        limited({ patience: 0 }, async () => {
            let frames: Buffer = Buffer.alloc(0);
            let isAccepted = true;
            const status = '{"id": "x", "argv": [], "cwd": "/", "columns": 1, "rows": 1, "state": "running"}';
            await served(
                (_, response) => response.end(status),
                async (url) => {
                    await using box = await Sandbox.connect(url);
                    for (const [what, content] of hostileFrames()) {
                        frames = content;
                        await using terminal = await box.terminal("x");
                        const error = await terminal.read({ timeoutMs: 5000 }).catch((thrown: unknown) => thrown);
                        const isOurs =
                            error instanceof gloveport.UnexpectedAnswerError ||
                            error instanceof gloveport.ConnectionLostError ||
                            error instanceof gloveport.ServerFailedError;
                        assert.ok(isOurs, `${what}: ${inspect(error)}`);
                        // It may be on its way before the connection breaks.
                        await terminal.write("x").catch((thrown: unknown) => {
                            assert.ok(thrown instanceof gloveport.GloveportError, `${what}: ${inspect(thrown)}`);
                        });
                    }
                    isAccepted = false;
                    for (const head of [
                        "Upgrade: websocket",
                        "Upgrade: websocket\r\nSec-WebSocket-Accept: x",
                        "X: y",
                    ]) {
                        frames = Buffer.from(`HTTP/1.1 101 Yes\r\nConnection: Upgrade\r\n${head}\r\n\r\n`);
                        await using terminal = await box.terminal("x");
                        await fails(gloveport.GloveportError, terminal.read({ timeoutMs: 5000 }));
                    }
                    frames = Buffer.from(`HTTP/1.1 404 No\r\n\r\n${"x".repeat(1_000_000)}`);
                    await using terminal = await box.terminal("x");
                    const error = await fails(gloveport.UnexpectedAnswerError, terminal.read({ timeoutMs: 5000 }));
                    same(error.code, "no_such_path");
                },
                (request, socket) => {
                    if (isAccepted) accept(request, socket);
                    socket.write(frames);
                },
            );
        }),

    "a WebSocket without an end takes no more memory": async () => {
        const status = '{"id": "x", "argv": [], "cwd": "/", "columns": 1, "rows": 1, "state": "running"}';
        let content: Buffer = Buffer.alloc(0);
        let passed = 0;
        const flood = (request: IncomingMessage, socket: Duplex) => {
            accept(request, socket);
            socket.write(START);
            const more = () => {
                for (let isRoom = true; isRoom && !socket.destroyed;) {
                    isRoom = socket.write(content);
                    passed += content.length;
                }
                if (!socket.destroyed) socket.once("drain", more);
            };
            more();
        };
        await served(
            (_, response) => response.end(status),
            async (url) => {
                await using box = await Sandbox.connect(url);
                for (const [what, frames] of [
                    ["output", frame(0x82, "y".repeat(30_000))],
                    ["small messages", Buffer.concat(Array<Buffer>(5000).fill(frame(0x82, "y")))],
                    ["pings", Buffer.concat(Array<Buffer>(500).fill(frame(0x89, "y".repeat(100))))],
                    ["parts", Buffer.concat([frame(0x02, ""), ...Array<Buffer>(5000).fill(frame(0x00, ""))])],
                ] as const) {
                    [content, passed] = [frames, 0];
                    await using terminal = await box.terminal("x");
                    collect();
                    const before = process.memoryUsage();
                    await fails(gloveport.GloveportError, terminal.wait({ timeoutMs: 700 }));
                    // Nobody reads any more.
                    await sleep(200);
                    const now = process.memoryUsage();
                    const grown = now.arrayBuffers - before.arrayBuffers + now.heapUsed - before.heapUsed;
                    assert.ok(passed > 500_000 && grown < 60_000_000, `${what}: ${passed} passed, ${grown} more`);
                }
            },
            flood,
        );
    },

    "a command that did not arrive is not said to have run": () =>
        proxied(async (direct, through, proxy) => {
            for (const call of [() => through.run("touch ran"), () => through.start("touch ran")]) {
                await proxy.drop();
                proxy.swallow = 1;
                assert.notEqual((await fails(gloveport.ConnectionLostError, call)).remedy, "");
            }
            same(await direct.files.exists("ran"), false);
        }),

    "output of a process goes on where a connection broke": () =>
        proxied(async (direct, through, proxy) => {
            const count = 20_000;
            const script = `echo ran >>ran; i=0; while [ $i -lt ${count} ]; do echo line $i; echo err $i >&2; i=$((i+1)); done; exit 3`;
            const lines = (word: string) => Array.from({ length: count }, (_, at) => `${word} ${at}\n`).join("");
            const process = await through.processes.start(["sh", "-c", script]);
            await proxy.drop();
            proxy.limits = Array.from({ length: 8 }, () => randomInt(200_000));
            const done = await process.wait();
            same([done.exitCode, done.lost], [3, 0]);
            assert.ok(Buffer.from(lines("line")).equals(done.stdout) && Buffer.from(lines("err")).equals(done.stderr));
            assert.ok(proxy.count >= 5, `${proxy.count}`);
            same(await direct.files.readText("ran"), "ran\n");
        }),

    "output of a process that cannot go on is told": () =>
        proxied(async (direct, through, proxy) => {
            const script =
                "head -c 1500000 /dev/zero | tr '\\0' x; until test -e go; do sleep 0.02; done; " +
                "head -c 3000000 /dev/zero | tr '\\0' y; touch written; sleep 60";
            const process = await through.processes.start(["sh", "-c", script]);
            const parts = process.output();
            for (let size = 0; size < 1_500_000;) {
                const part = await parts.next();
                assert.ok(part.done !== true);
                size += part.value.data.length;
            }
            // Nobody is there while more is written than is kept.
            await proxy.drop();
            await direct.files.write("go", "");
            while (!(await direct.files.exists("written"))) await sleep(20);
            proxy.limits = [0, 0, 0, 0];
            const error = await fails(gloveport.OutputGoneError, gathered(parts));
            same(error.code, "output_gone");
            assert.notEqual(error.remedy, "");
            same((await process.status()).end, undefined);
        }),

    "changes while a connection was broken are an overflow": () =>
        proxied(async (direct, through, proxy) => {
            await using watch = await through.files.watch(".");
            await direct.files.write("one", "");
            for await (const change of { [Symbol.asyncIterator]: () => ({ next: () => watch.next() }) }) {
                if (change.path.endsWith("/one")) break;
            }
            await proxy.drop();
            const seen: string[] = [];
            for await (const change of watch) {
                seen.push(change.kind);
                if (change.kind === "overflow") await direct.files.write("two", "");
                if (change.path.endsWith("/two")) break;
            }
            assert.ok(seen.includes("overflow"), seen.join(" "));
        }),

    "reading a file goes on where a connection broke": () =>
        proxied(async (direct, through, proxy) => {
            const data = randomBytes(2_000_000);
            await direct.files.write("file", data);
            proxy.limits = [0, 100, 300_000, 700_000, 5000];
            assert.ok(data.equals(await through.files.read("file")));
            assert.ok(proxy.count >= 5, `${proxy.count}`);
        }),

    "a file that changes while it is read is no whole": () =>
        proxied(async (direct, through, proxy) => {
            await direct.files.write("file", "a".repeat(3_000_000));
            await proxy.drop();
            proxy.limits = [1_000_000];
            const pieces = through.files.stream("file");
            await pieces.next();
            await direct.files.write("file", "b".repeat(3_000_000));
            same((await fails(gloveport.FileChangedError, gathered(pieces))).code, "changed");
        }),

    "a server that goes away is told": () =>
        limited({ patience: 2000 }, () =>
            proxied(async (_, through, proxy) => {
                setTimeout(() => proxy.close(), 500);
                const begun = performance.now();
                const error = await fails(gloveport.UnreachableError, through.run("sleep 30"));
                const took = performance.now() - begun;
                assert.ok(took > 2000 && took < 8000 && error.remedy !== "", `${took}`);
                await fails(gloveport.UnreachableError, through.files.exists("x"));
            }),
        ),

    "a server that is silent is told": () =>
        limited({ patience: 0, silence: 300, lasting: 300 }, () =>
            served(
                (request, response) => {
                    if (request.url?.includes("stat") !== true) response.writeHead(200).write(": \n\n");
                },
                async (url) => {
                    await using box = await Sandbox.connect(url);
                    const error = await fails(gloveport.ConnectionLostError, box.files.stat("x"));
                    assert.match(error.message, /silent for 0.3 s/);
                    await fails(gloveport.ConnectionLostError, box.run("x"));
                    await fails(gloveport.ConnectionLostError, box.processes.list());
                },
            ),
        ),

    "headers that are not seen are done without": async () => {
        await using direct = await start();
        const stopped = await passing(direct.url(), ["etag", "x-output-offset", "x-output-next", "x-output-state"]);
        try {
            await using through = await Sandbox.connect(stopped.url, await keyOf(direct));
            const command = await through.start("echo one; read line; echo two", { cwd: "/" });
            while (!(await command.status()).waitingForInput) await sleep(10);
            const first = await command.output();
            same([first.text, first.offset, first.next, first.ended], ["one\n", 0, 4, false]);
            await command.sendInput("x");
            await command.wait();
            const rest = await command.output({ from: first.next });
            same([rest.text.slice(-4), rest.ended], ["two\n", true]);
            await direct.files.write("file", "a".repeat(3_000_000));
            const pieces = through.files.stream("file");
            await pieces.next();
            stopped.server.closeAllConnections();
            await fails(gloveport.ConnectionLostError, gathered(pieces));
        } finally {
            stopped.server.closeAllConnections();
            stopped.server.close();
        }
    },

    "a wrong key and a wrong URL are told": async () => {
        await using box = await start();
        same((await fails(gloveport.ForbiddenError, Sandbox.connect(box.url(), "wrong"))).status, 403);
        await fails(gloveport.ForbiddenError, Sandbox.connect(box.url()));
        const key = await keyOf(box);
        await fails(gloveport.GloveportError, Sandbox.connect(`${box.url()}/elsewhere`, key));
        for (const url of [
            "",
            "nonsense",
            "ftp://x",
            "http://",
            "http://[",
            "http://x:y",
            "http://user:word@x",
            "http://x?y",
        ]) {
            same((await fails(gloveport.InvalidRequestError, Sandbox.connect(url))).code, "invalid_url");
        }
        for (const bad of ["", "hunter2\n", "hunter2 ü"]) {
            const error = await fails(gloveport.InvalidRequestError, Sandbox.connect(box.url(), bad));
            same([error.code, inspect(error).includes("hunter2")], ["invalid_key", false]);
        }
        await fails(gloveport.UnreachableError, Sandbox.connect("http://no-such-host.invalid"));
        // The first port is one that no program may ask, and nobody listens on the other.
        await fails(gloveport.UnreachableError, Sandbox.connect("http://127.0.0.1:9"));
        await fails(gloveport.UnreachableError, Sandbox.connect("http://127.0.0.1:34567"));
        const files = createServer((_, response) => response.end("<html>")).listen(0, "127.0.0.1");
        await once(files, "listening");
        const other = `http://127.0.0.1:${(files.address() as AddressInfo).port}`;
        await fails(gloveport.UnexpectedAnswerError, Sandbox.connect(other, key));
        // Versions of Node differ in what they say of it.
        const plain = await fails(gloveport.GloveportError, Sandbox.connect(other.replace("http:", "https:"), key));
        assert.match(plain.code, /^(unreachable|connection_lost)$/);
        files.closeAllConnections();
        files.close();
        const mute = createSocketServer((socket) => socket.destroy()).listen(0, "127.0.0.1");
        await once(mute, "listening");
        await fails(
            gloveport.ConnectionLostError,
            Sandbox.connect(`http://127.0.0.1:${(mute.address() as AddressInfo).port}`),
        );
        mute.close();
        await fails(DOMException, Sandbox.connect(box.url(), key, { signal: AbortSignal.abort() }));
    },

    "a redirect takes the key nowhere": async () => {
        const seen: unknown[] = [];
        const thief = createServer((request, response) => {
            seen.push(request.headers);
            response.end("{}");
        }).listen(0, "127.0.0.1");
        await once(thief, "listening");
        const location = `http://127.0.0.1:${(thief.address() as AddressInfo).port}/`;
        await served(
            (_, response) => response.writeHead(307, { location }).end(),
            async (url) => {
                await using box = await Sandbox.connect(url, "hunter2");
                await fails(gloveport.UnexpectedAnswerError, box.files.stat("x"));
                await fails(gloveport.UnexpectedAnswerError, box.run("x"));
            },
        );
        thief.close();
        same(seen, []);
    },

    "a hostile server raises our errors alone": () =>
        limited({ patience: 0 }, async () => {
            let answer = "";
            await served(
                (_, response) => response.writeHead(200, { "Content-Type": "text/event-stream" }).end(answer),
                async (url) => {
                    await using one = await Sandbox.connect(url);
                    const calls: (() => Promise<unknown>)[] = [
                        () => one.run("x"),
                        async () => (await one.start("x")).status(),
                        async () => (await one.start("x")).output(),
                        () => one.commands(),
                        () => one.runCode("x"),
                        () => one.processes.run(["x"]),
                        () => one.processes.list(),
                        () => one.files.stat("x"),
                        () => one.files.list("x"),
                        () => one.files.glob("x", "*"),
                        () => one.files.grep("x", "x"),
                        async () => gathered(await one.files.watch("x")),
                        async () => (await one.terminal("x", { id: "x" })).read({ timeoutMs: 5000 }),
                        () => one.terminals(),
                        () => one.browser.status(),
                        async () => (await one.browser.navigate("x")).check(),
                        () => one.browser.console(),
                        () => one.browser.network(),
                        () => one.browser.har(),
                        () => one.browser.storage(),
                        () => one.tools.list(),
                        () => one.tools.call("x"),
                        () => one.mcp.servers(),
                        () => one.mcp.setServers([{ name: "x", command: "x" }]),
                        () => one.download("x", join(HOME, "strange")),
                        () => one.upload(fileURLToPath(new URL(".", import.meta.url)), "x"),
                    ];
                    for (answer of strangeAnswers()) {
                        const failures = calls.map((call, number) =>
                            call().catch((error: unknown) => {
                                const about = `${number}, ${answer.slice(0, 80)}, ${inspect(error)}`;
                                assert.ok(error instanceof gloveport.GloveportError, about);
                            }),
                        );
                        await Promise.all(failures);
                    }
                    for (const bad of ["no JSON", "[]", '{"error": {"code": 1}}', "{}"]) {
                        answer = bad;
                        await fails(gloveport.UnexpectedAnswerError, one.files.stat("x"));
                    }
                },
            );
        }),

    "a list of tools without an end is not kept": () => {
        const asked: string[] = [];
        return served(
            (request, response) => {
                response.setHeader("Mcp-Session-Id", "x");
                asked.push(request.method ?? "");
                // The second one is a notification, which has no id.
                const id = asked.length === 1 ? 0 : asked.length - 2;
                response.end(JSON.stringify({ id, result: { tools: [], nextCursor: "x" } }));
            },
            async (url) => {
                await using box = await Sandbox.connect(url);
                const error = await fails(gloveport.UnexpectedAnswerError, box.tools.list());
                assert.match(error.message, /more than 100 pages/);
                same([asked.length < 110, asked.at(-1)], [true, "DELETE"]);
            },
        );
    },

    "an answer without an end is not kept": () =>
        limited({ answer: 3_000_000, event: 3_000_000, patience: 0 }, () =>
            served(
                (request, response) => {
                    const isStream = !/files|list|\/v1\/processes$/.test(request.url ?? "");
                    response.writeHead(200, isStream ? { "Content-Type": "text/event-stream" } : {});
                    const piece = "x".repeat(1 << 20);
                    const more = () => {
                        while (!response.destroyed && response.write(piece));
                        if (!response.destroyed) response.once("drain", more);
                    };
                    more();
                },
                async (url) => {
                    await using box = await Sandbox.connect(url);
                    for (const call of [
                        () => box.files.stat("x"),
                        () => box.files.list("x"),
                        () => box.processes.list(),
                    ]) {
                        assert.match((await fails(gloveport.UnexpectedAnswerError, call)).message, /more than 3000000/);
                    }
                    await fails(gloveport.TooLargeError, box.files.read("x"));
                    // An event that does not end.
                    for (const call of [() => box.run("x"), () => box.files.watch("x"), () => box.tools.list()]) {
                        assert.match((await fails(gloveport.UnexpectedAnswerError, call)).message, /more than 3000000/);
                    }
                },
            ),
        ),

    "output without an end takes no more memory": async () => {
        const event = `event: output\ndata: ${JSON.stringify({ offset: 0, text: "y".repeat(1000) })}\n\n`;
        await served(
            (_, response) => {
                response.writeHead(200, { "Content-Type": "text/event-stream" });
                const more = () => {
                    while (!response.destroyed && response.write(event));
                    if (!response.destroyed) response.once("drain", more);
                };
                more();
            },
            async (url) => {
                await using box = await Sandbox.connect(url);
                let size = 0;
                const enough = new AbortController();
                const onOutput = (text: string) => {
                    size += text.length;
                    if (size > 50_000_000) enough.abort();
                };
                collect();
                const before = process.memoryUsage().arrayBuffers;
                await fails(DOMException, box.run("x", { keep: 1000, onOutput, signal: enough.signal }));
                // The memory itself is freed beside the program.
                const grown = () => {
                    collect();
                    return process.memoryUsage().arrayBuffers - before;
                };
                assert.ok(await until(() => grown() < 20_000_000, 10), `${grown()}`);
            },
        );
    },

    "a hostile archive stays in its place": async () => {
        const outside = join(HOME, "outside");
        mkdirSync(outside);
        writeFileSync(join(outside, "secret"), "mine");
        let archive: Buffer = Buffer.alloc(0);
        const stat = '{"path": "x", "kind": "directory", "size": 0, "mode": "0755", "uid": 0, "gid": 0, "modified": 0}';
        await served(
            (request, response) => response.end(request.url?.includes("archive") === true ? archive : stat),
            async (url) => {
                await using box = await Sandbox.connect(url);
                for (const [what, content] of hostileArchives(outside)) {
                    archive = content;
                    const error = await box.download("x", join(outside, "tree")).catch((it: unknown) => it);
                    const code = error instanceof gloveport.GloveportError ? error.code : inspect(error);
                    assert.match(code, /^(unsafe_tree|not_unpacked)$/, `${what}: ${code}`);
                    same([what, readdirSync(outside).sort()], [what, ["secret", "tree"]]);
                    rmSync(join(outside, "tree"), { recursive: true });
                }
            },
        );
        same(readFileSync(join(outside, "secret"), "utf8"), "mine");
    },

    "what cannot be sent is told": async () => {
        await using one = await start();
        const strange: unknown[] = [Number.NaN, -1, 0, Number.POSITIVE_INFINITY, "1s"];
        const calls: (() => Promise<unknown>)[] = [
            () => one.run("\ud800"),
            ...strange.map((value) => () => one.run("x", { timeoutMs: value as number })),
            () => one.run("x", { keep: -1 }),
            () => one.run(""),
            () => one.run("x", { env: { A: 1n as unknown as string } }),
            () => one.run("x", { env: { A: {} as string } }),
            () => one.run("x", { env: { "A=": "b" } }),
            () => one.run("x", { cwd: "\0" }),
            () => one.command(".."),
            () => one.command("\ud800"),
            () => one.files.remove("\udcff"),
            () => one.files.write("x", "", { mode: 0o10000 }),
            () => one.files.grep("x", "x", { limit: -1 }),
            () => one.files.watch(".", { timeoutMs: 0 }),
            () => one.tools.call("shell", {}, { timeoutMs: -1 }),
            () => one.tools.call("shell", { command: 1n }),
            () => one.browser.console(-1),
            () => one.events({ most: 0.5 }),
            () => one.terminal("x", { cols: 1.5 }),
            () => one.terminal("x", { id: "a b" }),
            () => one.interruptKernel(""),
        ];
        for (const [number, call] of calls.entries()) {
            const error = await call().then(
                () => "nothing",
                (thrown: unknown) => thrown,
            );
            assert.ok(error instanceof gloveport.InvalidRequestError, `${number}: ${inspect(error)}`);
        }
        same((await one.run("echo well")).output, "well\n");
    },

    "a program that is missing is told": async () => {
        const error = await fails(gloveport.ProgramMissingError, Sandbox.start({ program: "/nowhere/g" }));
        assert.match(error.remedy, /option `program`/);
        const { PATH, GLOVEPORT_PROGRAM } = process.env;
        try {
            process.env["GLOVEPORT_PROGRAM"] = HOME;
            assert.match((await fails(gloveport.ProgramMissingError, start)).remedy, /correct the variable/);
            delete process.env["GLOVEPORT_PROGRAM"];
            process.env["PATH"] = "/nowhere";
            const missing = await fails(gloveport.ProgramMissingError, start);
            same(missing.code, "program_missing");
            assert.match(missing.remedy, /PATH.*GLOVEPORT_PROGRAM/);
        } finally {
            Object.assign(process.env, { PATH, GLOVEPORT_PROGRAM });
        }
        await using found = await Sandbox.start({ program: PROGRAM, isolation: "none" });
        same((await found.run("echo yes")).output, "yes\n");
    },

    "a program that is none is told": async () => {
        const { GLOVEPORT_PROGRAM } = process.env;
        for (const [name, text, kind] of [
            ["binary", "\x7fELF\x01\x02", gloveport.GloveportError],
            ["uninterpreted", "#!/no/such/interpreter\n", gloveport.ProgramMissingError],
            ["silent", "#!/bin/sh\n", gloveport.SessionError],
            ["failing", "#!/bin/sh\nexit 3\n", gloveport.SessionError],
            ["chatty", "#!/bin/sh\necho hello\n", gloveport.SessionError],
        ] as const) {
            const program = join(HOME, name);
            writeFileSync(program, text, { mode: 0o755 });
            process.env["GLOVEPORT_PROGRAM"] = program;
            try {
                for (const call of [start, () => Sandbox.attach("x"), () => Sandbox.snapshots()]) {
                    const error = await fails<gloveport.GloveportError>(kind, call);
                    // A shell is what runs a file that is no program, where the system does not.
                    assert.ok(error.message !== "" && (error.remedy !== "" || name === "binary"), inspect(error));
                }
            } finally {
                Object.assign(process.env, { GLOVEPORT_PROGRAM });
            }
        }
    },

    "what is wrong with a gateway is told": () =>
        limited({ patience: 2000 }, async () => {
            const gateway = await startGateway([]);
            const atGateway = () => Sandbox.start({ runtime: "" });
            const variables = { GLOVEPORT_GATEWAY: gateway.url, GLOVEPORT_GATEWAY_KEY: "w".repeat(32) };
            Object.assign(process.env, variables);
            try {
                const refused = await fails(gloveport.SessionError, atGateway);
                assert.match(refused.message, /X-API-Key.*GLOVEPORT_GATEWAY_KEY/);
                assert.ok(refused.message.includes(gateway.url) && !refused.message.includes("WARN"), refused.message);
                process.env["GLOVEPORT_GATEWAY_KEY"] = gateway.key;
                const itself = await fails(gloveport.UnexpectedAnswerError, Sandbox.connect(gateway.url, "x"));
                same([itself.code, itself.message.includes(gateway.url)], ["is_gateway", true]);
                assert.match(itself.remedy, /`url`/);
                const gone = `${gateway.url}/gone`;
                const missing = await fails(gloveport.SandboxGoneError, Sandbox.connect(gone, "x"));
                same([missing.code, missing.message.includes(gone)], ["no_such_sandbox", true]);
                {
                    await using one = await atGateway();
                    const wrong = await fails(gloveport.ForbiddenError, Sandbox.connect(one.url(), "wrong"));
                    assert.ok(wrong.message.includes(one.url()) && /session env/.test(wrong.remedy), inspect(wrong));
                    const removing = sleep(500).then(() => execFileSync(PROGRAM, ["session", "rm", "-f", one.id]));
                    await fails(gloveport.SandboxGoneError, gathered(one.stream("sleep 60")));
                    await removing;
                    for (const call of [() => one.run("x"), () => one.files.readText("x")]) {
                        const error = await fails(gloveport.SandboxGoneError, call);
                        assert.ok(error.message.includes(one.url()) && error.remedy !== "", inspect(error));
                    }
                }
                const last = await atGateway();
                const killing = sleep(500).then(() => gateway.end("SIGKILL"));
                const error = await fails(gloveport.UnreachableError, last.run("sleep 60"));
                assert.ok(error.message.includes(last.url()) && error.remedy !== "", inspect(error));
                await killing;
                const left = await fails(gloveport.SessionError, last.close());
                assert.ok(left.message.includes("could not be ended") && left.remedy !== "", inspect(left));
                const { message } = await fails(gloveport.SessionError, atGateway);
                assert.ok(
                    message.includes(gateway.url) && /cannot be reached.*GLOVEPORT_GATEWAY/.test(message),
                    message,
                );
            } finally {
                for (const name of Object.keys(variables)) delete process.env[name];
                await gateway.end();
            }
            for (const id of sessions()) execFileSync(PROGRAM, ["session", "rm", "-f", id]);
        }),

    "a server that is killed is told to all that wait for it": () =>
        limited({ patience: 2000 }, async () => {
            const killed = async (call: (one: Sandbox) => unknown): Promise<void> => {
                await using one = await start();
                const server = listener(one.url());
                const killing = sleep(700).then(() => process.kill(server, "SIGKILL"));
                const error = await fails(gloveport.UnreachableError, () => call(one));
                assert.ok(error.message.includes(one.url()) && /session ls/.test(error.remedy), inspect(error));
                await killing;
            };
            await Promise.all([
                killed((one) => one.run("sleep 60")),
                killed((one) => gathered(one.stream("while :; do echo on; sleep 0.05; done"))),
                killed(async (one) => (await one.start("sleep 60")).wait({ timeoutMs: 60_000 })),
                killed((one) => one.processes.run(["sleep", "60"])),
                killed(async (one) => (await one.terminal("sleep 60")).read({ timeoutMs: 60_000 })),
                killed(async (one) => (await one.terminal("sleep 60")).wait({ timeoutMs: 60_000 })),
                killed(async (one) => gathered(await one.files.watch(".", { timeoutMs: 60_000 }))),
            ]);
        }),

    "options are flags, but for the values of secrets": async () => {
        const program = join(HOME, "program");
        const words = join(HOME, "words");
        const script = `#!/bin/sh\n[ "$4" = rm ] || printf "%s\\n" "$@" "$TOKEN" >${words}\necho "gloveport: that is why" >&2\nexit 1\n`;
        writeFileSync(program, script);
        chmodSync(program, 0o755);
        const error = await fails(
            gloveport.SessionError,
            Sandbox.start({
                program,
                runtime: "docker",
                image: "debian:13",
                workspace: HOME,
                env: { A: "b c" },
                isolation: "files",
                network: ["a.org", "10.0.0.0/8"],
                secrets: { TOKEN: new gloveport.Secret("hunter2", { hosts: ["a.org", "b.org:8443"] }), PLAIN: "x" },
                memory: "2g",
                ports: { web: 80 },
                plugins: ["jupyter"],
                labels: { team: "x" },
                flags: ["--cpus", "2"],
            }),
        );
        same([error.message, error.code], ["that is why", "session_failed"]);
        const found = readFileSync(words, "utf8").split("\n");
        found[7] = "ID";
        same(found, [
            ...["session", "--runtime", "docker", "start", "--quiet", "--json", "--id", "ID", "--image=debian:13"],
            ...[`--workspace=${HOME}`, "--isolation=files", "--network=a.org,10.0.0.0/8", "--memory=2g", "--env=A=b c"],
            ...["--secret=TOKEN@a.org,b.org:8443", "--secret=PLAIN", "--port=web:80", "--plugin=jupyter"],
            ...["--label=team=x", "--cpus", "2", "hunter2", ""],
        ]);
        // Somebody may still be starting it.
        rmSync(program);
        writeFileSync(program, "#!/bin/sh\necho '[1]'; echo nonsense\n", { mode: 0o755 });
        assert.match(
            (await fails(gloveport.SessionError, Sandbox.start({ program }))).message,
            /something else than JSON/,
        );
        rmSync(program);
        writeFileSync(program, '#!/bin/sh\n[ "$4" = rm ] || yes\n', { mode: 0o755 });
        assert.match((await fails(gloveport.SessionError, Sandbox.start({ program }))).message, /more than anybody/);
    },

    "a program that is none of ours is told": async () => {
        await using one = await start();
        const { program, box, set } = await stranger(one.id);
        const strange = ["nonsense", "{}", "[]", "[1]", '[{"image": 1}]', "null", '{"allowed": [1]}', '{"action": 5}'];
        for (const printed of strange) {
            set(`echo '${printed}'`);
            for (const [number, call] of [
                () => box.events(),
                () => box.snapshot(),
                () => box.network.show(),
                () => Sandbox.snapshots("x", { program }),
                () => box.fork(),
            ].entries()) {
                // A list that is empty is one.
                if (printed === "[]" && number === 3) continue;
                const error = await call().then(
                    () => "nothing",
                    (thrown: unknown) => thrown,
                );
                assert.ok(error instanceof gloveport.SessionError, `${number}, ${printed}: ${inspect(error)}`);
            }
        }
        set('while echo \'{"action": "run"}\'; do :; done');
        same((await box.events({ most: 20 })).length, 20);
        await fails(DOMException, box.events({ most: 1e9, signal: AbortSignal.timeout(300) }));
        // It goes on with the pipes of the one that is ended.
        set("sleep 15; exit 1");
        const begun = performance.now();
        await fails(DOMException, box.events({ signal: AbortSignal.timeout(300) }));
        assert.ok(performance.now() - begun < 10_000);
        await limited({ answer: 3_000_000 }, async () => {
            set("yes x | tr -d '\\n'");
            await fails(gloveport.TooLargeError, box.events());
            await fails(gloveport.SessionError, box.snapshot());
        });
    },

    "a fork and a snapshot are commands of the program": async () => {
        await using one = await start();
        const { program, box, set } = await stranger(one.id);
        const words = join(HOME, "forked");
        set(`printf '%s ' "$@" >${words}; echo "gloveport: not today" >&2; exit 1`);
        for (const [call, expected] of [
            [() => box.fork(), `session --runtime local fork --quiet --json --id ID -- ${one.id} `],
            [() => box.snapshot("kept"), `session --runtime local snapshot --json -- ${one.id} kept `],
            [
                () => Sandbox.start({ program, fromSnapshot: { image: "kept:1", name: "kept", runtime: "docker" } }),
                "session --runtime docker start --quiet --json --id ID --image=kept:1 ",
            ],
            [
                () => Sandbox.removeSnapshot({ image: "-x", name: "x", runtime: "docker" }, { program }),
                "session --runtime docker snapshots rm -- -x ",
            ],
            [() => box.network.deny("-x"), `session --runtime local network deny --json -- ${one.id} -x `],
        ] as const) {
            same((await fails(gloveport.SessionError, call)).message, "not today");
            same(readFileSync(words, "utf8").replace(/--id js-[0-9a-f]+/, "--id ID"), expected);
        }
    },

    "secrets are not shown": async () => {
        await using one = await Sandbox.start({
            isolation: "none",
            secrets: { HIDDEN: new gloveport.Secret("hunter2") },
        });
        const key = await keyOf(one);
        const terminal = await one.terminal("sleep 60");
        await fails(gloveport.TimedOutError, terminal.read({ timeoutMs: 100 }));
        const shown = [
            one,
            one.files,
            one.processes,
            new gloveport.Secret("hunter2"),
            await one.start("true"),
            terminal,
        ];
        const printed = shown
            .map((each) => inspect(each, { depth: 9, showHidden: true }) + JSON.stringify(each))
            .join("");
        same([key.length > 10, printed.includes(key), printed.includes("hunter2")], [true, false, false]);
        same((await one.run("echo $HIDDEN")).output, "hunter2\n");
    },

    "much output needs little memory": async () => {
        const script = fileURLToPath(new URL("memory.js", import.meta.url));
        const told = execFileSync(process.execPath, [script, HOME], { encoding: "utf8", timeout: 60_000 });
        const [grown, missing] = told.split(" ").map(Number);
        measured(`100 MB of output, a file of 100 MB in all ways: ${grown} MiB more memory, ${missing} bytes missing`);
        // It is less than everything, and what the collector of garbage takes its time with.
        assert.ok(grown !== undefined && grown < 250, told);
    },

    "output that is not kept any more is told": async () => {
        await using one = await start();
        const command = await one.start("head -c 275000000 /dev/zero | tr '\\0' x; echo end", { cwd: "/" });
        while ((await command.status()).state !== "ended") await sleep(50);
        const error = await fails(gloveport.OutputGoneError, command.output());
        same([error.code, error.status], ["output_gone", 410]);
        const result = await command.wait({ timeoutMs: 30_000, keep: 1000 });
        assert.ok(result.missing > 0);
        same([result.missing + result.dropped + 1000, result.output.slice(-5)], [275_000_004, "xend\n"]);
    },

    "closing while something runs ends its work": async () => {
        const one = await start();
        const work = fails(gloveport.SandboxClosedError, one.run("sleep 60"));
        const follower = fails(
            gloveport.SandboxClosedError,
            gathered((await one.start("sleep 60", { cwd: "/" })).follow()),
        );
        const process = await one.processes.start(["sleep", "60"]);
        const waiting = fails(gloveport.SandboxClosedError, process.wait());
        const watching = fails(gloveport.SandboxClosedError, gathered(await one.files.watch(".")));
        const terminal = await one.terminal("sleep 60");
        const reading = fails(gloveport.SandboxClosedError, terminal.read());
        await sleep(300);
        await one.close();
        await Promise.all([work, follower, waiting, watching, reading]);
        same(sessions().has(one.id), false);
    },

    "a start that is given up leaves nothing": async () => {
        const before = sessions();
        for (const delay of [0, 5, 20, 50, 80]) {
            const signal = AbortSignal.timeout(delay);
            await Sandbox.start({ isolation: "none", signal }).then(
                (box) => box.close(),
                (error: unknown) => {
                    assert.ok(error instanceof DOMException, inspect(error));
                },
            );
        }
        assert.ok(await until(() => [...sessions()].every((id) => before.has(id))));
    },

    "a program that ends leaves nothing": async () => {
        for (const signal of ["SIGKILL", "SIGTERM", "SIGINT"] as const) {
            const child = new Child("has children");
            const id = await child.id();
            assert.ok(sessions().has(id), child.stderr);
            // As at a terminal: all that belongs to it gets the signal.
            process.kill(signal === "SIGINT" ? -child.pid : child.pid, signal);
            await child.ended;
            assert.ok(await until(() => !sessions().has(id)), signal);
        }
        for (const [way, code] of [
            ["exits", 0],
            ["throws", 1],
            ["reads on", 0],
        ] as const) {
            const child = new Child(way);
            const id = await child.id();
            await child.ended;
            same([way, child.process.exitCode], [way, code]);
            assert.ok(id.startsWith("js-") && (await until(() => !sessions().has(id))), way);
        }
    },

    "a program that just ends is quiet": async () => {
        const child = new Child("just ends");
        const id = await child.id();
        await child.ended;
        same([child.process.exitCode, child.stderr], [0, ""]);
        assert.ok(await until(() => !sessions().has(id)));
    },

    "a program that is killed while it starts one leaves nothing": async () => {
        const before = sessions();
        for (const delay of [0, 2, 5, 10, 20, 30, 50, 80]) {
            const child = new Child("runs");
            assert.ok(await until(() => child.stdout !== ""));
            await sleep(delay);
            process.kill(child.pid, "SIGKILL");
            await child.ended;
        }
        await sleep(1000);
        assert.ok(await until(() => [...sessions()].every((id) => before.has(id))));
    },

    "one that is dropped ends": async () => {
        const child = new Child("drops it", "--expose-gc");
        const id = await child.id();
        const isGone = await until(() => !sessions().has(id));
        process.kill(child.pid, "SIGKILL");
        await child.ended;
        assert.ok(isGone && id.startsWith("js-"), child.stderr);
    },

    "one that is left by an exception ends": async () => {
        let id = "";
        const failing = async () => {
            await using one = await start();
            id = one.id;
            throw new RangeError();
        };
        await fails(RangeError, failing);
        same([id.startsWith("js-"), sessions().has(id)], [true, false]);
    },

    "a guard that is killed is replaced": async () => {
        const one = await start();
        const guards = readdirSync("/proc").filter((pid) => {
            if (!/^\d+$/.test(pid)) return false;
            const words = existsSync(`/proc/${pid}/cmdline`)
                ? readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0")
                : [];
            return words.includes("gloveport-guard") && words.includes(one.id);
        });
        same(guards.length, 1);
        process.kill(Number(guards[0]), "SIGKILL");
        same((await one.run("echo still")).output, "still\n");
        await one.close();
        same(sessions().has(one.id), false);
    },
};

export async function attack(): Promise<void> {
    for (const [what, body] of Object.entries(ATTACKS)) await attempt(what, body, 75);
    for (const [what, body] of Object.entries({ ...GATEWAY_ATTACKS, ...PRESENCE_ATTACKS })) {
        await attempt(what, () => limited({ patience: 2000 }, body), 75);
    }
    check("nothing is left of all these sandboxes", await until(() => sessions().size === 0), [...sessions()]);
}
