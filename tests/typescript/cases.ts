// What a sandbox can do, by the names of tests/python/cases.py. Each case gets a sandbox and a directory of this
// machine.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
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
        process = await box.processes.start(["sleep", "60"]);
        await process.signal("SIGTERM", { group: true });
        same((await process.wait()).signal, 15);
        await process.remove();
        await fails(gloveport.NotFoundError, process.status());
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
