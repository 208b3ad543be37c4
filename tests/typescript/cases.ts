// What a sandbox can do, by the names of tests/python/cases.py. Each case gets a sandbox and a directory of this
// machine.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import {
    chmodSync,
    linkSync,
    mkdirSync,
    readdirSync,
    readFileSync,
    readlinkSync,
    statSync,
    symlinkSync,
    writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import * as gloveport from "gloveport";
import { Sandbox } from "gloveport";

export type Case = (box: Sandbox, scratch: string) => Promise<void>;

type Kind<E> = abstract new (...given: never[]) => E;

/** The error of that kind that comes of it. */
export async function fails<E extends Error>(kind: Kind<E>, what: Promise<unknown> | (() => unknown)): Promise<E> {
    try {
        await (typeof what === "function" ? what() : what);
    } catch (error) {
        if (error instanceof kind) return error;
        throw error;
    }
    throw new assert.AssertionError({ message: `nothing of ${kind.name} was thrown` });
}

export const same = (found: unknown, expected: unknown): void => assert.deepEqual(found, expected);

export async function gathered<T>(items: AsyncIterable<T>): Promise<T[]> {
    const all: T[] = [];
    for await (const item of items) all.push(item);
    return all;
}

const NONE = { isolation: "none" } as const;
const text = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);
const numbers = (count: number): number[] => Array.from({ length: count }, (_, number) => number);

/** A server of MCP with one tool. */
const MCP_SERVER = `
import json, os, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    if asked["method"] == "initialize":
        version = asked["params"]["protocolVersion"]
        result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
    elif asked["method"] == "tools/list":
        result = {"tools": [{"name": "greet", "description": "Greets.", "inputSchema": {"type": "object"}}]}
    elif asked["method"] == "tools/call":
        words = [os.environ["GREETING"], *sys.argv[1:], asked["params"]["arguments"]["who"]]
        result = {"content": [{"type": "text", "text": " ".join(words)}]}
    else:
        result = {}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
`;

export const CASES: Record<string, Case> = {
    "a command has output and an exit code": async (box) => {
        const result = await box.run("echo hi; echo oops >&2; (exit 3)");
        same([result.output, result.exitCode, result.reason, result.ok], ["hi\noops\n", 3, "exited", false]);
        assert.ok(result.usage !== undefined && result.usage.wallMs > 0);
        same((await box.run("true")).check().exitCode, 0);
    },

    "the shell keeps its state": async (box) => {
        await box.run("mkdir -p state && cd state && export WORD=kept && f() { echo $WORD; }");
        const result = await box.run("f; basename $PWD");
        same(result.output, "kept\nstate\n");
        assert.match(result.cwd ?? "", /\/state$/);
        await box.run("cd ..");
    },

    "a command with a directory or variables has a shell of its own": async (box) => {
        same((await box.run("pwd; echo $WORD", { cwd: "/usr", env: { WORD: "ä b" } })).output, "/usr\nä b\n");
        same(
            await box
                .run("cd /usr", { env: { OTHER: "1" } })
                .then(() => box.run("pwd"))
                .then((it) => it.output === "/usr\n"),
            false,
        );
        await fails(gloveport.InvalidRequestError, box.run("pwd", { cwd: "/nowhere" }));
    },

    "check raises with the result": async (box) => {
        let result = await box.run("echo why; exit 0", { env: { A: "1" } });
        same([result.reason, result.check()], ["shell_ended", result]);
        result = await box.run("echo why; exit 4", { env: { A: "1" } });
        const error = await fails(gloveport.CommandFailedError, () => result.check());
        same([error.result.exitCode, error.code, error.message], [4, "command_failed", result.describe()]);
        same(result.describe(), "`echo why; exit 4` failed: exit code 4\nwhy");
    },

    "a time limit gives a command up": async (box) => {
        const begun = performance.now();
        const result = await box.run("sleep 30", { timeoutMs: 300 });
        same([result.reason, result.exitCode], ["timed_out", undefined]);
        assert.ok(performance.now() - begun < 10_000);
        same((await fails(gloveport.CommandTimedOutError, () => result.check())).code, "timed_out");
        same((await box.run("echo goes on")).output, "goes on\n");
    },

    "output comes while the command runs": async (box) => {
        const pieces: [time: number, text: string][] = [];
        const onOutput = (piece: string) => void pieces.push([performance.now(), piece]);
        const result = await box.run("echo one; sleep 0.4; echo two", { onOutput });
        same(pieces.map(([, piece]) => piece).join(""), result.output);
        assert.ok((pieces.at(-1)?.[0] ?? 0) - (pieces[0]?.[0] ?? 0) > 200);
    },

    "a stream has the output and then the result": async (box) => {
        const stream = box.stream("seq 1 2000; exit 2");
        same((await fails(gloveport.GloveportError, () => stream.result)).code, "not_ended");
        same(
            (await gathered(stream)).join(""),
            numbers(2000)
                .map((number) => `${number + 1}\n`)
                .join(""),
        );
        same([stream.result.exitCode, stream.result.id], [2, stream.id]);
        same(await stream.next(), { done: true, value: undefined });
    },

    "a stream that is left gives its command up": async (box) => {
        for await (const _ of box.stream("while :; do echo x; sleep 0.05; done")) break;
        same((await box.run("echo free", { timeoutMs: 20_000 })).output, "free\n");
        {
            await using stream = box.stream("while :; do echo x; sleep 0.05; done");
            await stream.next();
        }
        same((await box.run("echo free", { timeoutMs: 20_000 })).output, "free\n");
        const stream = box.stream("sleep 60");
        const waiting = stream.next();
        await sleep(300);
        await stream.close();
        same(await waiting, { done: true, value: undefined });
        await stream.close();
        same((await box.run("echo free", { timeoutMs: 20_000 })).output, "free\n");
        same((await fails(gloveport.GloveportError, () => stream.result)).code, "not_ended");
    },

    "a signal gives a command up": async (box) => {
        const reason = new Error("no longer wanted");
        for (const give of [AbortSignal.abort(reason), AbortSignal.timeout(300)]) {
            await fails(give.aborted ? Error : DOMException, box.run("sleep 59", { signal: give }));
        }
        same(await box.run("sleep 59", { signal: AbortSignal.abort(reason) }).catch((error: unknown) => error), reason);
        const begun = performance.now();
        same((await box.run("echo free")).output, "free\n");
        assert.ok(performance.now() - begun < 5000);
        same(
            (await box.commands()).filter((each) => each.command === "sleep 59").map((each) => each.reason),
            ["cancelled"],
        );
        const failing = box.run("echo x; sleep 59", {
            onOutput: () => {
                throw reason;
            },
        });
        same(await failing.catch((error: unknown) => error), reason);
        same((await box.run("echo free", { timeoutMs: 20_000 })).output, "free\n");
    },

    "draining a stream gives its result": async (box) => {
        const parts: string[] = [];
        const result = await box.stream("echo a; echo b").drain((part) => parts.push(part));
        same([result.output, parts.join("")], ["a\nb\n", "a\nb\n"]);
    },

    "output is exact whatever it is": async (box) => {
        const letters = "€uro 😀 ünï\n".repeat(20_000);
        await box.files.write("letters", letters);
        const pieces: string[] = [];
        const result = await box.run("cat letters", { onOutput: (piece) => pieces.push(piece) });
        assert.ok(result.output === letters && pieces.join("") === letters);
        same((await box.run("printf 'a\\377b\\303'")).output, "a�b�");
        same((await box.run("printf '\\303'; sleep 0.3; printf '\\244'")).output, "ä");
        same((await box.run("printf '\\357\\273\\277x'")).output, "\ufeffx");
    },

    "a result keeps the last of much output": async (box) => {
        const result = await box.run("head -c 3000000 /dev/zero | tr '\\0' x; echo end", { keep: 1000 });
        same(
            [result.output.length, result.output.slice(-5), result.dropped + result.missing],
            [1000, "xend\n", 2_999_004],
        );
    },

    "a command that was started is followed by offsets": async (box) => {
        const command = await box.start("echo one; read line; echo got $line", { cwd: "/" });
        let status = await command.status();
        for (; !status.waitingForInput; status = await command.status()) await sleep(10);
        same([status.state, status.id, status.hidesInput], ["running", command.id, false]);
        const first = await command.output();
        same([first.text, first.offset, first.ended], ["one\n", 0, false]);
        await command.sendInput("it");
        const result = await command.wait({ timeoutMs: 20_000 });
        same([result.exitCode, result.output.slice(0, 4)], [0, "one\n"]);
        const rest = await command.output({ from: first.next });
        same([text(rest.data.slice(-7)), rest.ended, rest.offset], ["got it\n", true, first.next]);
        same((await gathered(command.follow({ from: first.next }))).join(""), rest.text);
        const found = await box.command(command.id);
        same([found.id, found.command], [command.id, command.command]);
        same(
            (await box.commands()).filter((each) => each.id === command.id).map((each) => each.state),
            ["ended"],
        );
        await fails(gloveport.NotFoundError, box.command("nothing"));
        const error = await fails(gloveport.ConflictError, command.sendInput("late"));
        same([error.code, error.status], ["not_running", 409]);
    },

    "waiting has a limit and leaves the command": async (box) => {
        const command = await box.start("sleep 1.2; echo done", { cwd: "/" });
        const begun = performance.now();
        same((await fails(gloveport.StillRunningError, command.wait({ timeoutMs: 300 }))).code, "still_running");
        const waited = performance.now() - begun;
        assert.ok(waited > 250 && waited < 1100, `${waited}`);
        await fails(DOMException, command.wait({ signal: AbortSignal.timeout(50) }));
        await fails(DOMException, gathered(command.follow({ signal: AbortSignal.timeout(50) })));
        const parts: string[] = [];
        same((await command.wait({ timeoutMs: 20_000, onOutput: (part) => parts.push(part) })).output, "done\n");
        same(parts.join(""), "done\n");
    },

    "a command is interrupted and killed": async (box) => {
        let command = await box.start("sleep 60", { cwd: "/" });
        await sleep(300);
        await command.interrupt();
        same((await command.wait({ timeoutMs: 20_000 })).exitCode, 130);
        command = await box.start("sleep 60", { cwd: "/" });
        await sleep(200);
        await command.kill();
        same((await command.wait({ timeoutMs: 20_000 })).reason, "cancelled");
    },

    "processes have pipes": async (box) => {
        let done = await box.processes.run(["sh", "-c", "echo out; echo err >&2; exit 5"]);
        same(
            [text(done.stdout), text(done.stderr), done.exitCode, done.signal, done.lost],
            ["out\n", "err\n", 5, undefined, 0],
        );
        const data = randomBytes(3_000_000);
        done = await box.processes.run(["cat"], { input: data });
        assert.ok(data.equals(done.stdout));
        done = await box.processes.run(["cat"], { input: data, keep: 1000 });
        assert.ok(data.subarray(-1000).equals(done.stdout));
        same(done.dropped, 2_999_000);
        same((await box.processes.run(["true"], { input: data })).exitCode, 0);
        done = await box.processes.run(["sh", "-c", "echo $A $PWD"], { env: { A: "1" }, cwd: "/usr" });
        same(text(done.stdout), "1 /usr\n");
        same((await box.processes.run(["sleep", "60"], { timeoutMs: 200 })).timedOut, true);
        await fails(gloveport.InvalidRequestError, box.processes.run(["no-such-program"]));
        await fails(DOMException, box.processes.run(["sleep", "61"], { signal: AbortSignal.timeout(200) }));
        same(
            (await box.processes.list()).filter((each) => each.argv[1] === "61" && each.end === undefined),
            [],
        );
    },

    "a process is written to signalled and removed": async (box) => {
        let process = await box.processes.start(["cat"], { stdin: true, tag: "mine" });
        same(
            (await box.processes.list()).filter((each) => each.id === process.id).map((each) => each.tag),
            ["mine"],
        );
        same([process.info.argv, (await process.status()).end], [["cat"], undefined]);
        await process.write(Uint8Array.of(0, 255));
        await process.write("ü");
        await process.closeStdin();
        const parts = await gathered(process.output());
        same([...Buffer.concat(parts.map((part) => part.data))], [0, 255, 0xc3, 0xbc]);
        same(new Set(parts.map((part) => part.stream)), new Set(["stdout"]));
        same((await process.wait()).exitCode, 0);
        // What was read before comes again for who follows it anew.
        same(text((await process.wait()).stdout.subarray(2)), "ü");
        process = await box.processes.start(["sleep", "60"]);
        await process.signal("SIGTERM", { group: true });
        same((await process.wait()).signal, 15);
        await process.remove();
        await fails(gloveport.NotFoundError, process.status());
    },

    "a terminal takes keys and has a size": async (box) => {
        const settings = { cols: 91, rows: 17, env: { PS1: "ready> " }, cwd: "/usr", id: "mine" };
        const shell = await box.terminal(["sh"], settings);
        same([shell.id, shell.info.cols, shell.info.rows, shell.info.cwd], ["mine", 91, 17, "/usr"]);
        await shell.readUntil("ready> ");
        await shell.write("stty size; pwd\n");
        const told = (await shell.readUntil("ready> ")).replaceAll("\r", "");
        same(told, "stty size; pwd\n17 91\n/usr\nready> ");
        await shell.resize(40, 10);
        await shell.write(new TextEncoder().encode("stty size\n"));
        assert.match(await shell.readUntil("ready> "), /10 40\r\n/);
        same((await shell.status()).cols, 40);
        same(
            (await box.terminals()).filter((each) => each.id === "mine").map((each) => each.end),
            [undefined],
        );
        same((await fails(gloveport.TimedOutError, shell.read({ timeoutMs: 200 }))).code, "timed_out");
        same((await fails(gloveport.StillRunningError, shell.wait({ timeoutMs: 200 }))).code, "still_running");
        await fails(DOMException, shell.read({ signal: AbortSignal.timeout(50) }));
        await fails(DOMException, shell.write("no", { signal: AbortSignal.abort() }));
        const again = await box.terminal(["sh"], { env: { PS1: "ready> " }, cwd: "/usr", id: "mine" });
        assert.match(await again.readUntil("17 91"), /^ready> /);
        await fails(gloveport.ConflictError, box.terminal(["bash"], { id: "mine" }));
        await shell.write("exit 3\n");
        same(await shell.wait({ timeoutMs: 20_000 }), { exitCode: 3 });
        assert.match((await gathered(shell)).join(""), /exit 3/);
        same([await shell.read(), shell.missing], [undefined, 0]);
        same((await fails(gloveport.ConflictError, shell.write("late"))).code, "not_running");
        await fails(gloveport.ConflictError, shell.resize(1, 1));
        await shell.close();
        await fails(gloveport.NotFoundError, shell.status());
        await shell.close();
        await again.close();
        await fails(gloveport.SandboxClosedError, again.write("late"));
    },

    "a terminal is read while others write": async (box) => {
        {
            const script = "stty raw -echo; echo ready; head -c 300000 | md5sum; exec sleep 60";
            await using terminal = await box.terminal(script);
            same(await terminal.readUntil("ready"), "ready");
            const data = randomBytes(150_000).toString("hex");
            const reading = terminal.readUntil(Uint8Array.of(45), { timeoutMs: 40_000 });
            const parts = numbers(5).map((at) => data.slice(at * 60_000, (at + 1) * 60_000));
            await Promise.all(parts.map((part) => terminal.write(part)));
            // Each is typed whole, and in its turn.
            same((await reading).trim().split(/\s+/)[0], createHash("md5").update(data).digest("hex"));
        }
        {
            await using terminal = await box.terminal(["seq", "1", "400000"]);
            // More than is held here: what the program wrote before its end is still there afterwards.
            same(await terminal.wait({ timeoutMs: 30_000 }), { exitCode: 0 });
            const lines = numbers(400_000).map((number) => `${number + 1}\r\n`);
            assert.ok((await gathered(terminal)).join("") === lines.join(""));
        }
        {
            await using terminal = await box.terminal(["yes"]);
            same((await fails(gloveport.GloveportError, terminal.readUntil("no"))).code, "too_much_output");
            await fails(gloveport.InvalidRequestError, terminal.readUntil(""));
            same((await terminal.read({ most: 5 }))?.length, 5);
            // One who waits takes messages, and does not keep the other from what is asked for again.
            const waiting = fails(DOMException, terminal.wait({ signal: AbortSignal.timeout(500) }));
            let size = 0;
            while (size < 3_000_000) size += (await terminal.read())?.length ?? 0;
            await waiting;
            for await (const _ of terminal.follow()) break;
        }
        {
            await using terminal = await box.terminal("seq 1 400000; exec sleep 60");
            const waiting = fails(DOMException, terminal.wait({ signal: AbortSignal.timeout(2000) }));
            let size = 0;
            // By then more came than is held, and nothing more comes.
            await sleep(500);
            while (size < 3_088_895) size += (await terminal.read({ timeoutMs: 20_000 }))?.length ?? 0;
            await waiting;
        }
        await using terminal = await box.terminal("kill -9 $$");
        same(await terminal.wait({ timeoutMs: 20_000 }), { exitCode: 137, signal: 9 });
        await fails(gloveport.InvalidRequestError, box.terminal("true", { cols: 0 }));
    },

    "a terminal is reached by the WebSocket of browsers": async (box) => {
        await using other = await gloveport.RemoteSandbox.connect(box.url(), await keyOf(box));
        await using terminal = await other.terminal("stty -echo; echo ready; exec cat");
        if (typeof WebSocket === "undefined") {
            const error = await fails(gloveport.GloveportError, terminal.read());
            same(error.code, "no_web_socket");
            assert.match(error.remedy, /`Sandbox`/);
            return;
        }
        same(await terminal.readUntil("ready\r\n"), "ready\r\n");
        await terminal.write("typed\n");
        same(await terminal.readUntil("typed\r\n"), "typed\r\n");
        await using many = await other.terminal(["seq", "1", "400000"]);
        same(await many.wait({ timeoutMs: 30_000 }), { exitCode: 0 });
        same((await gathered(many)).join("").length, 3_088_895);
    },

    "files are read and written": async (box) => {
        const path = "files/a.txt";
        await fails(gloveport.RemoteFileNotFoundError, box.files.write(path, "x"));
        await box.files.write(path, "grüße\n", { parents: true, mode: 0o640 });
        same([await box.files.readText(path), text(await box.files.read(path))], ["grüße\n", "grüße\n"]);
        await fails(gloveport.RemoteFileExistsError, box.files.write(path, new Uint8Array(), { exclusive: true }));
        const status = await box.files.stat(path);
        same(
            [status.size, status.mode.toString(8), status.kind, status.path.endsWith(`/${path}`)],
            [8, "640", "file", true],
        );
        assert.ok(Math.abs(status.modified.getTime() - Date.now()) < 60_000);
        same(
            [await box.files.exists(path), await box.files.exists(`${path}/below`), await box.files.exists("files/b")],
            [true, false, false],
        );
        const error = await fails(gloveport.RemoteFileNotFoundError, box.files.read("files/none"));
        same([error.code, error.status], ["not_found", 404]);
        assert.ok(error.remedy !== "" && error.toString().includes(error.remedy));
        await fails(gloveport.RemoteIsADirectoryError, box.files.read("files"));
        await box.files.write("files/empty", "");
        same((await box.files.read("files/empty")).length, 0);
        await box.files.write("files/blob", new Blob(["of a ", "blob"]));
        same(await box.files.readText("files/blob"), "of a blob");
        same((await fails(gloveport.TooLargeError, box.files.read("files/blob", { most: 5 }))).code, "too_large");
    },

    "directories are listed made and removed": async (box) => {
        const { files } = box;
        await files.mkdir("tree/a/b", { recursive: true });
        await fails(gloveport.RemoteFileExistsError, files.mkdir("tree/a/b"));
        await files.mkdir("tree/a/b", { recursive: true });
        await files.mkdir("tree/private", { mode: 0o700 });
        same((await files.stat("tree/private")).mode, 0o700);
        await files.remove("tree/private");
        await fails(gloveport.RemoteFileNotFoundError, files.mkdir("tree/x/y"));
        for (const name of ["one.py", ".two.py", "a/three.py"]) await files.write(`tree/${name}`, "");
        await fails(gloveport.RemoteFileExistsError, files.mkdir("tree/one.py"));
        same(
            (await files.list("tree")).map((each) => [each.path, each.kind]),
            [
                [".two.py", "file"],
                ["a", "directory"],
                ["one.py", "file"],
            ],
        );
        same(
            (await files.glob("tree", "**/*.py")).map((each) => each.path),
            [".two.py", "a/three.py", "one.py"],
        );
        await fails(gloveport.RemoteNotADirectoryError, files.list("tree/one.py"));
        await files.rename("tree/one.py", "tree/a/four.py");
        same([await files.exists("tree/a/four.py"), await files.exists("tree/one.py")], [true, false]);
        await fails(gloveport.RemoteFileExistsError, files.rename("tree/a/four.py", "tree/a/three.py"));
        await files.rename("tree/a/four.py", "tree/a/three.py", { overwrite: true });
        await fails(gloveport.RemoteFileError, files.remove("tree"));
        await files.remove("tree/.two.py");
        await files.remove("tree/.two.py", { force: true });
        await files.remove("tree", { recursive: true });
        await fails(gloveport.RemoteFileNotFoundError, files.remove("tree", { recursive: true }));
        same(await files.exists("tree"), false);
    },

    "lines and names are searched for": async (box) => {
        const { files } = box;
        for (const [name, content] of [
            ["a.py", "import os\nOS = 1\nx = (\n"],
            ["sub/b.txt", "os\n"],
            [".git/c.py", "os\n"],
            ["sub/ignored.py", "os\n"],
            [".gitignore", "ignored.py\n"],
        ] as const) {
            await files.write(`searched/${name}`, content, { parents: true });
        }
        let found = await files.grep("searched", "os$", { respectIgnore: true });
        same(found, {
            lines: [
                { path: "a.py", line: 1, text: "import os", isMatch: true },
                { path: "sub/b.txt", line: 1, text: "os", isMatch: true },
            ],
            truncated: false,
            skipped: [],
        });
        found = await files.grep("searched", "OS", {
            ignoreCase: true,
            hidden: true,
            globs: ["*.py", "!a.py"],
            limit: 1,
        });
        same([found.lines.map((each) => each.path), found.truncated], [[".git/c.py"], true]);
        found = await files.grep("searched/a.py", "(", { literal: true, context: 1 });
        same(
            found.lines.map((each) => [each.line, each.isMatch]),
            [
                [2, false],
                [3, true],
            ],
        );
        await fails(gloveport.InvalidRequestError, files.grep("searched", "("));
        await fails(gloveport.RemoteFileNotFoundError, files.grep("searched/none", "x"));
        await fails(DOMException, files.grep("searched", "x", { signal: AbortSignal.abort() }));
        const names = await files.find("searched", ["**/*.py", "!a.py"], { respectIgnore: true });
        same(
            names.map((each) => [each.path, each.size]),
            [[".git/c.py", 3]],
        );
        same(
            (await files.find("searched", ["**/*.txt"], { hidden: false })).map((each) => each.path),
            ["sub/b.txt"],
        );
    },

    "changes of files are watched": async (box) => {
        const { files } = box;
        await files.mkdir("watched/sub", { recursive: true });
        const where = (await box.run("realpath watched")).output.trim();
        const seen: string[] = [];
        {
            await using watch = await files.watch("watched", { recursive: true, timeoutMs: 20_000 });
            await files.write("watched/sub/new", "x");
            await box.run("mkdir watched/more; rm -r watched/sub");
            for await (const change of watch) {
                assert.ok(change.path.startsWith(where), change.path);
                seen.push(`${change.kind} ${change.path.slice(where.length)} ${change.isDirectory}`);
                if (seen.at(-1) === "removed /sub true") break;
            }
            same(await watch.next(), { done: true, value: undefined });
        }
        assert.ok(seen.includes("created /sub/new false") && seen.includes("created /more true"), seen.join(", "));
        const begun = performance.now();
        let watch = await files.watch("watched", { timeoutMs: 300 });
        same((await fails(gloveport.TimedOutError, watch.next())).code, "timed_out");
        const took = performance.now() - begun;
        assert.ok(took > 200 && took < 5000, `${took}`);
        await watch.close();
        watch = await files.watch("watched", { signal: AbortSignal.timeout(100) });
        await fails(DOMException, watch.next());
        await fails(DOMException, files.watch("watched", { signal: AbortSignal.abort() }));
        watch = await files.watch("watched");
        const waiting = watch.next();
        await watch.close();
        same(await waiting, { done: true, value: undefined });
        watch = await files.watch("watched");
        await files.remove("watched", { recursive: true });
        same((await gathered(watch)).at(-1)?.kind, "removed");
        await fails(gloveport.RemoteFileNotFoundError, files.watch("watched"));
    },

    "links are followed or not": async (box) => {
        await box.run("mkdir -p links && ln -sf /etc/passwd links/l && ln -sf nowhere links/dangling");
        same((await box.files.stat("links/l")).kind, "file");
        same((await box.files.stat("links/l", { followLinks: false })).target, "/etc/passwd");
        same(await box.files.exists("links/dangling"), false);
    },

    "names may be anything": async (box) => {
        await box.run("mkdir -p names && cd names && touch 'a b&c#?%' $'\\xff' $'new\\nline' ü; cd ..");
        const names = (await box.files.list("names")).map((each) => each.path);
        same(names, ["a b&c#?%", "new\nline", "ü", "\udcff"]);
        for (const name of names) same((await box.files.read(`names/${name}`)).length, 0);
        await box.files.write("names/\udc80ü😀\udcfe", "bytes");
        same((await box.run("cat names/$'\\x80'ü😀$'\\xfe'")).output, "bytes");
        await fails(gloveport.InvalidRequestError, box.files.read("names/\ud800"));
    },

    "large files go through piece by piece": async (box) => {
        const data = Buffer.concat(Array<Buffer>(9).fill(randomBytes(1 << 20)));
        const pieces = async function* (count = 9): AsyncGenerator<Uint8Array> {
            for (const at of numbers(count)) yield data.subarray(at << 20, (at + 1) << 20);
        };
        await box.files.write("large", pieces());
        assert.ok(data.equals(Buffer.concat(await gathered(box.files.stream("large")))));
        for await (const piece of box.files.stream("large")) {
            assert.ok(data.subarray(0, piece.length).equals(piece));
            break;
        }
        await fails(DOMException, gathered(box.files.stream("large", { signal: AbortSignal.abort() })));
        const reason = new Error("it breaks off");
        const half = async function* () {
            yield* pieces(3);
            throw reason;
        };
        same(await box.files.write("large", half()).catch((error: unknown) => error), reason);
        same((await box.files.stat("large")).size, data.length);
        await box.files.write("web", new Blob(["a web ", "stream"]).stream());
        same(await box.files.readText("web"), "a web stream");
        const unused = pieces();
        await fails(gloveport.RemoteIsADirectoryError, box.files.write("/", unused));
        same((await unused.next()).done, true);
    },

    "files and trees are copied": async (box, scratch) => {
        const tree = join(scratch, "up");
        mkdirSync(join(tree, "sub"), { recursive: true });
        writeFileSync(join(tree, "sub/script"), "#!/bin/sh\n");
        chmodSync(join(tree, "sub/script"), 0o750);
        const long = `${"long".repeat(20)}/${"long".repeat(40)}`;
        mkdirSync(join(tree, "long".repeat(20)));
        writeFileSync(join(tree, long), "long");
        writeFileSync(join(tree, "big"), randomBytes(700_001));
        symlinkSync("sub/script", join(tree, "link"));
        symlinkSync("long/".repeat(40), join(tree, "far"));
        linkSync(join(tree, "big"), join(tree, "again"));
        const odd = Buffer.from([...Buffer.from(`${tree}/`), 0xff]);
        writeFileSync(odd, "odd");
        same(await box.upload(tree, "copied/deep"), { files: 7, bytes: 2 * 700_001 + 17 });
        same(
            (await box.run("cd copied/deep; stat -c %a sub/script; readlink link; cat $'\\xff'; cd ../..")).output,
            "750\nsub/script\nodd",
        );
        const back = join(scratch, "down");
        same((await box.download("copied/deep", back)).files, 7);
        for (const name of ["big", "again", "sub/script", long]) {
            assert.ok(readFileSync(join(back, name)).equals(readFileSync(join(tree, name))), name);
        }
        same(readFileSync(Buffer.from([...Buffer.from(`${back}/`), 0xff]), "utf8"), "odd");
        same([readlinkSync(join(back, "link")), readlinkSync(join(back, "far"))], ["sub/script", "long/".repeat(40)]);
        same(statSync(join(back, "sub/script")).mode & 0o777, 0o750);
        same(
            statSync(join(back, "big")).mtime.getTime(),
            Math.floor(statSync(join(tree, "big")).mtimeMs / 1000) * 1000,
        );
        same((await box.download("copied/deep", back)).files, 7);
        same(await box.upload(join(tree, "sub/script"), "one/script"), { files: 1, bytes: 10 });
        same(await box.download("one/script", join(scratch, "script")), { files: 1, bytes: 10 });
        same(statSync(join(scratch, "script")).mode & 0o777, 0o750);
        await fails(gloveport.RemoteFileNotFoundError, box.download("one/none", join(scratch, "none")));
        await fails(Error, box.upload(join(scratch, "none"), "none"));
        same(readdirSync(scratch).sort(), ["down", "script", "up"]);
    },

    "a hostile tree stays in its place": async (box, scratch) => {
        await box.run(
            "mkdir -p hostile && ln -sf /etc hostile/etc && mkfifo hostile/fifo && touch hostile/s && chmod 4755 hostile/s",
        );
        const target = join(scratch, "hostile");
        same((await fails(gloveport.GloveportError, box.download("hostile", target))).code, "unsafe_tree");
        same([readdirSync(scratch), readdirSync(target)], [["hostile"], []]);
        await box.run("rm hostile/etc");
        await box.download("hostile", target);
        same([readdirSync(target), statSync(join(target, "s")).mode & 0o7777], [["s"], 0o755]);
    },

    "a sandbox is paused and resumed": async (box) => {
        await box.pause();
        try {
            same((await box.state()).state, "paused");
            const error = await fails(gloveport.PausedError, box.run("echo no"));
            same([error.code, error.status], ["paused", 503]);
        } finally {
            await box.resume();
        }
        const state = await box.state();
        same([state.state, state.sinceMs < 60_000, state.idleMs < 60_000], ["running", true, true]);
        same((await box.run("echo yes")).output, "yes\n");
    },

    "many share one sandbox": async (box) => {
        const expected = numbers(24).map((number) => `${number}\n`);
        for (const options of [{ env: { N: "1" } }, {}]) {
            const results = await Promise.all(numbers(24).map((number) => box.run(`echo ${number}`, options)));
            same(
                results.map((result) => result.output),
                expected,
            );
        }
    },

    "a session is attached to and connected to": async (box) => {
        await box.run("export HERE=yes");
        const other = await Sandbox.attach(box.id, { runtime: "local" });
        same([other.id, other.workspace, (await other.run("echo $HERE")).output], [box.id, box.workspace, "yes\n"]);
        await other.close();
        await fails(gloveport.SandboxClosedError, other.run("echo"));
        await fails(gloveport.SandboxClosedError, other.files.read("letters"));
        const key = await keyOf(box);
        {
            await using third = await Sandbox.connect(box.url(), key);
            same([(await third.run("echo $HERE")).output, third.id, third.isolation], ["yes\n", "", ""]);
            await using fourth = await gloveport.RemoteSandbox.connect(new URL(box.url()), key);
            same((await fourth.run("echo $HERE")).output, "yes\n");
        }
        same((await box.run("echo $HERE")).output, "yes\n");
        await fails(gloveport.SessionError, Sandbox.attach("js-no-such-session", { runtime: "local" }));
    },

    "a sandbox has what it was started with": async (_, scratch) => {
        const mine = join(scratch, "mine");
        mkdirSync(mine);
        const hidden = new gloveport.Secret("hunter3");
        same([hidden.reveal(), hidden.hosts], ["hunter3", []]);
        {
            await using own = await Sandbox.start({
                ...NONE,
                workspace: mine,
                env: { PLAIN: "a b" },
                secrets: { HIDDEN: "hunter2", OTHER: hidden },
                ports: { web: 8123 },
                labels: { team: "infra" },
                flags: ["--ttl", "1h"],
            });
            same((await own.run('echo "$PLAIN $HIDDEN $OTHER"')).output, "a b hunter2 hunter3\n");
            same([own.labels["team"], own.runtime, own.isolation, own.workspace], ["infra", "local", "none", mine]);
            assert.match(own.url("web"), /^http/);
            same(own.ports["web"], own.url("web"));
            await own.run("echo there > file");
            const error = await fails(gloveport.GloveportError, () => own.url("none"));
            same(error.code, "no_such_port");
            assert.match(error.message, /web/);
        }
        same(readFileSync(join(mine, "file"), "utf8"), "there\n");
        const started = await Sandbox.start(NONE);
        await started.close();
        await started.close();
        await fails(gloveport.SandboxClosedError, started.run("echo"));
    },

    "the tools of a sandbox are called": async (box) => {
        const tools = new Map((await box.tools.list()).map((tool) => [tool.name, tool]));
        for (const name of ["shell", "read_file", "search_files"]) assert.ok(tools.has(name), [...tools.keys()].join());
        const shell = tools.get("shell");
        assert.ok("command" in (shell?.inputSchema["properties"] as object) && shell?.description !== "");
        let result = await box.tools.call("shell", { command: "echo from a tool" });
        assert.match(result.text, /from a tool/);
        same([result.isError, result.structured === undefined, result.check()], [false, false, result]);
        result = await box.tools.call("read_file", { path: "/nowhere" });
        same([result.isError, result.content.length > 0], [true, true]);
        const error = await fails(gloveport.ToolFailedError, () => result.check());
        same([error.message, error.code], [result.text, "tool_failed"]);
        await fails(gloveport.ToolFailedError, box.tools.call("no-such-tool"));
        const slow = { command: "sleep 20" };
        same(
            (await fails(gloveport.TimedOutError, box.tools.call("shell", slow, { timeoutMs: 500 }))).code,
            "timed_out",
        );
        await fails(DOMException, box.tools.call("shell", slow, { signal: AbortSignal.timeout(300) }));
        await fails(DOMException, box.tools.list({ signal: AbortSignal.abort() }));
    },

    "mcp servers run in a sandbox": async (box) => {
        const { mcp } = box;
        await box.files.write("server.py", MCP_SERVER);
        const [script = "", python = ""] = (await box.run("realpath server.py; command -v python3")).output.split("\n");
        const greeter = { name: "greeter", command: python, args: [script, "dear"], env: { GREETING: "hello" } };
        same(await mcp.setServers([greeter]), "");
        same(
            (await mcp.list()).map((tool) => [tool.name, tool.description, tool.inputSchema]),
            [["greet", "Greets.", { type: "object" }]],
        );
        const result = await mcp.call("greet", { who: "Ada" });
        same([result.text, result.isError, result.structured], ["hello dear Ada", false, undefined]);
        same(await mcp.servers(), [{ name: "greeter", state: "ready", reason: "" }]);
        assert.match(await mcp.setServers([{ name: "none", command: "no-such-program" }]), /none/);
        const wrong = mcp.setServers([{ name: "two words", command: "" }]);
        const error = await fails(gloveport.ServerFailedError, wrong);
        same([error.status, error.code], [500, "refused"]);
        await mcp.setServers([]);
        same((await fails(gloveport.NotFoundError, mcp.list())).code, "no_servers");
        same(await mcp.servers(), []);
    },

    "the history of a session is read": async (box) => {
        const words = ["session", "exec", box.id, "--", "echo", "noted; false"];
        const done = spawnSync(gloveport.findProgram(), words, { encoding: "utf8" });
        same([done.stdout, done.status], ["noted\n", 1]);
        const [action, observation] = await box.events({ kinds: ["run"] });
        assert.ok(action !== undefined && observation !== undefined);
        same([action.kind, action.isAction, action.source], ["run", true, "user"]);
        same([action.data["command"], action.message], ["echo noted; false", "Running command: echo noted; false"]);
        same([observation.isAction, observation.cause, observation.kind], [false, action.id, "run"]);
        assert.ok(observation.content.includes("noted") && observation.time !== "");
        same(
            (await box.events({ since: action.id, most: 1 })).map((each) => each.id),
            [action.id],
        );
        same(await box.events({ since: 10_000 }), []);
        await fails(DOMException, box.events({ signal: AbortSignal.abort() }));
    },

    "what a runtime cannot do is told": async (box) => {
        for (const call of [
            () => box.snapshot(),
            () => box.fork(),
            () => box.network.show(),
            () => box.network.log(),
            () => box.network.allow("a.test"),
            () => box.network.deny("a.test"),
            () => Sandbox.removeSnapshot("none", { runtime: "local" }),
            () => Sandbox.snapshots("local"),
        ]) {
            assert.notEqual((await fails(gloveport.SessionError, call)).message, "");
        }
        await fails(gloveport.InvalidRequestError, Sandbox.start({ image: "a", fromSnapshot: "b" }));
        const other = await Sandbox.connect(box.url(), await keyOf(box));
        assert.match((await fails(gloveport.SessionError, other.events())).remedy, /attach/);
        await fails(gloveport.SessionError, other.fork());
        await other.close();
        await fails(gloveport.SandboxClosedError, other.events());
        await fails(gloveport.SandboxClosedError, other.network.show());
    },

    "what cannot be started says why": async () => {
        for (const [options, word] of [
            [{ runtime: "no-such-runtime" }, "no-such-runtime"],
            [{ isolation: "much" as "none" }, "much"],
            [{ flags: ["--no-such"] }, "--no-such"],
            [{ labels: { team: "a\0b" } }, "option"],
        ] as const) {
            const error = await fails(gloveport.SessionError, Sandbox.start(options));
            assert.ok(error.message.includes(word), error.message);
        }
    },
};

/** The key of a session, as its own program prints it. */
export async function keyOf(box: Sandbox): Promise<string> {
    const { execFileSync } = await import("node:child_process");
    const printed = execFileSync(gloveport.findProgram(), ["session", "env", "--json", box.id], { encoding: "utf8" });
    return (JSON.parse(printed) as Record<string, string>)["GLOVEPORT_KEY"] ?? "";
}

/** With the plugin jupyter, and an interpreter that has IPython. */
export async function cellsRunInKernels(interpreter: string): Promise<void> {
    await using box = await Sandbox.start({ ...NONE, plugins: ["jupyter"], env: { GLOVEPORT_PYTHON: interpreter } });
    let cell = await box.runCode("x = 41\nprint('out')\nimport sys; print('err', file=sys.stderr)\nx + 1");
    same(
        [cell.stdout, cell.stderr, cell.text, cell.reason, cell.error],
        ["out\n", "err\n", "42", "completed", undefined],
    );
    same(cell.check(), cell);
    const parts: string[] = [];
    cell = await box.runCode("from IPython.display import HTML, display; display(HTML('<b>x</b>')); 1/0", {
        onOutput: (part) => parts.push(part),
    });
    same([cell.displays[0]?.["text/html"], cell.error?.name, cell.reason], ["<b>x</b>", "ZeroDivisionError", "raised"]);
    assert.match(parts.join(""), /ZeroDivisionError/);
    same((await fails(gloveport.CellFailedError, () => cell.check())).code, "raised");
    same((await box.runCode("'x' in globals()", { kernel: "other" })).text, "False");
    same((await box.runCode("import time; time.sleep(60)", { timeoutMs: 500 })).reason, "timed_out");
    const running = box.runCode("import time; time.sleep(60)");
    await sleep(700);
    await box.interruptKernel();
    same((await running).error?.name, "KeyboardInterrupt");
    await fails(DOMException, box.runCode("time.sleep(60)", { signal: AbortSignal.timeout(500) }));
    same((await box.runCode("print('x' * 5000, end='y')", { keep: 10 })).stdout, "xxxxxxxxxy");
    await box.restartKernel();
    same((await box.runCode("'x' in globals()")).text, "False");
    await fails(gloveport.NotFoundError, box.interruptKernel("unknown"));
}

/** A page with a field, a list and a link. */
const PAGE = `<!doctype html><title>Form</title><h1>Hello</h1><style>body {height: 4000px}</style>
<form action=done><label>Name <input name=who></label><select name=size aria-label=Size><option>small<option>large</select>
<input type=file aria-label=File><button>Send</button></form><a href="other.html">Elsewhere</a>
<script>console.warn("from the page"); localStorage.setItem("kept", "yes")</script>`;

/** With Chromium. */
export async function aBrowserIsUsed(): Promise<void> {
    await using box = await Sandbox.start(NONE);
    const { browser, files } = box;
    same((await browser.status()).state, "idle");
    const status = await browser.start();
    assert.ok(status.pid !== undefined && status.version !== undefined, JSON.stringify(status));
    await files.write("www/index.html", PAGE, { parents: true });
    await files.write("www/other.html", "<title>Other</title><p>It is elsewhere.");
    const cwd = (await box.run("realpath www")).output.trim();
    const server = await box.processes.start(["python3", "-um", "http.server", "0", "--bind", "127.0.0.1"], { cwd });
    const told = (await server.output().next()).value;
    const port = / port (\d+)/.exec(text(told?.data ?? new Uint8Array()))?.[1];
    const url = `http://127.0.0.1:${port}`;
    let page = (await browser.navigate(`${url}/`)).check();
    same([page.title, page.url, page.pages.length, page.error], ["Form", `${url}/`, 1, undefined]);
    assert.ok(page.tree.includes("Hello") && (await browser.markdown()).includes("Hello"));
    const name = { role: "textbox", name: "Name" };
    (await browser.fill(name, "Ada")).check();
    (await browser.click(name)).check();
    (await browser.press("End")).check();
    (await browser.type(" L")).check();
    (await browser.press("Shift", { element: name })).check();
    (await browser.select({ selector: "select" }, ["large"])).check();
    (await browser.hover("Send")).check();
    (await browser.scroll(0, 100)).check();
    await files.write("file.txt", "x");
    const file = (await box.run("realpath file.txt")).output.trim();
    (await browser.upload({ selector: "input[type=file]" }, [file])).check();
    same((await browser.page()).title, "Form");
    const missing = await browser.click("Nothing like it");
    const error = await fails(gloveport.BrowserFailedError, () => missing.check());
    assert.match(error.message, /Nothing like it/);
    await fails(gloveport.InvalidRequestError, browser.hover({} as { text: string }));
    await fails(DOMException, browser.navigate(`${url}/`, { signal: AbortSignal.abort() }));
    page = (await browser.click("Send")).check();
    assert.ok(page.url.includes("who=Ada+L") && page.url.includes("size=large"), page.url);
    page = (await browser.navigate("back", { wait: "parsed" })).check();
    page = (await browser.navigate(`${url}/other.html`, { newPage: true })).check();
    same([page.title, page.pages.map((each) => each.active)], ["Other", [false, true]]);
    const [first, second] = page.pages;
    same((await browser.activatePage(first?.id ?? "")).check().title, "Form");
    page = (await browser.closePage(second?.id ?? "")).check();
    same(page.pages.length, 1);
    const picture = await browser.screenshot({ fullPage: true });
    same(text(picture.subarray(1, 4)), "PNG");
    assert.ok((await browser.screenshot({ element: "Send" })).length < picture.length);
    same(text((await browser.pdf({ landscape: true, scale: 0.5 })).subarray(0, 4)), "%PDF");
    const lines = await browser.console();
    assert.ok(lines.entries.some((each) => each.text === "from the page"));
    same((await browser.console(lines.next)).entries, []);
    const { entries } = await browser.network();
    assert.ok(entries.some((each) => each.method === "GET" && each.url === `${url}/` && each.status === 200));
    assert.ok((await browser.har())["log"] !== undefined);
    const state = await browser.storage();
    assert.match(JSON.stringify(state), /kept/);
    await browser.setStorage(state);
}

/** With Docker. */
export async function filesOfAContainerAreKeptAndForked(): Promise<void> {
    await using box = await Sandbox.start({ runtime: "docker", image: "gloveport-test/debian:12" });
    await box.run("echo kept > ~/kept; export GONE=1");
    const home = (await box.run("echo $HOME")).output.trim();
    let fork = "";
    {
        await using other = await box.fork();
        same([other.id === box.id, other.runtime], [false, "docker"]);
        same((await other.run("cat ~/kept; echo [$GONE]")).output, "kept\n[]\n");
        await other.run("echo changed > ~/kept");
        fork = other.id;
    }
    same((await box.run("cat ~/kept")).output, "kept\n");
    const snapshot = await box.snapshot(`js-${randomBytes(4).toString("hex")}`);
    const kept = async () => (await Sandbox.snapshots("docker")).filter((each) => each.image === snapshot.image);
    try {
        same(
            (await kept()).map((each) => [each.name, each.sessionId, each.runtime]),
            [[snapshot.name, box.id, "docker"]],
        );
        await using again = await Sandbox.start({ fromSnapshot: snapshot });
        same([await again.files.readText(`${home}/kept`), again.runtime], ["kept\n", "docker"]);
    } finally {
        await Sandbox.removeSnapshot(snapshot);
    }
    same(await kept(), []);
    await fails(gloveport.SessionError, Sandbox.removeSnapshot(snapshot));
    await fails(gloveport.SessionError, Sandbox.attach(fork, { runtime: "docker" }));
}

/** With the isolation container, which has a gate. */
export async function theNetworkIsChangedWhileASandboxRuns(): Promise<void> {
    await using box = await Sandbox.start({ isolation: "container", network: ["a.test", "b.test:443"] });
    let state = await box.network.show();
    same([new Set(state.allowed), state.denied], [new Set(["a.test", "b.test:443"]), []]);
    const asking = 'import urllib.request as u; u.urlopen("http://c.test")';
    await box.run(`curl -sS -m 5 http://c.test/ || python3 -c '${asking}'`);
    const asked = (await box.network.log()).find((each) => each.target === "c.test:80");
    assert.ok(asked !== undefined && Math.abs(asked.last.getTime() - Date.now()) < 60_000);
    same([asked.allowed, asked.times > 0], [false, true]);
    state = await box.network.allow("c.test");
    assert.ok(state.allowed.includes("c.test"));
    same((await box.network.deny("a.test")).denied, ["a.test"]);
}
