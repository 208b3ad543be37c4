// The package in a browser: what it loads, and a page that uses a sandbox below its own origin, as a server of pages
// passes it on. A sandbox's own server and a gateway let a page of another origin ask if that was named when they were started.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { extname, join, normalize } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

import { Gateway, Sandbox } from "gloveport";

import { keyOf, same } from "./cases.js";
import { startGateway } from "./gateway.js";
import { untilEmpty } from "./gateways.js";
import { passOn, passUpgrade } from "./proxy.js";
import { attempt, tell } from "./report.js";

const DIST = fileURLToPath(new URL(".", import.meta.resolve("gloveport")));

/** Follows the imports of what a browser loads. */
function imported(path: string, seen: Set<string>): void {
    if (seen.has(path)) return;
    seen.add(path);
    const text = readFileSync(path, "utf8");
    assert.ok(!/\bimport\s*\(/.test(text), path);
    for (const [, name] of text.matchAll(/^(?:import|export)\b(?:[^;"']*?\bfrom)?\s*["']([^"']+)["']/gm)) {
        assert.ok(name?.startsWith("./") === true, `${path} imports ${name}`);
        imported(join(path, "..", name), seen);
    }
}

/** What the page does. It is told where the sandbox is by its URL. */
const PAGE = `<!doctype html><script type="module">
import { Sandbox } from "/dist/browser.js";
const told = [];
try {
    const url = new URL("/box/", location.href);
    const key = decodeURIComponent(location.hash.slice(1));
    const box = await Sandbox.connect(url, key);
    const pieces = [];
    const result = await box.run("echo page; exit 3", { env: { A: "ü" }, onOutput: (piece) => pieces.push(piece) });
    told.push(result.output, result.exitCode, pieces.join(""));
    for await (const piece of box.stream("while :; do echo on; sleep 0.1; done")) { told.push(piece.startsWith("on")); break; }
    await box.files.write("from-page", new Blob(["of a ", "page"]));
    told.push(await box.files.readText("from-page"), (await box.files.list(".")).some((each) => each.path === "from-page"));
    told.push(new TextDecoder().decode((await box.processes.run(["cat"], { input: "piped" })).stdout));
    const command = await box.start("echo later", { cwd: "/" });
    await command.wait();
    const output = await command.output();
    told.push(output.text, output.ended, output.next);
    const terminal = await box.terminal("read -p name? name; echo hello $name");
    told.push(await terminal.readUntil("name?"));
    await terminal.write("Ada\\n");
    told.push((await terminal.wait()).exitCode, await terminal.readUntil("hello Ada"));
    const many = await box.terminal(["seq", "1", "400000"]);
    await many.wait();
    let size = 0;
    for await (const piece of many) size += piece.length;
    told.push(size);
    await many.close();
    told.push(await many.read({ timeoutMs: 5000 }), await (await box.terminal("sleep 60")).read({ timeoutMs: 300 }).catch((error) => error.code));
    told.push(await box.files.stat("none").catch((error) => error.code));
    told.push(await Sandbox.connect(url, "wrong").catch((error) => error.constructor.name));
    told.push(await Sandbox.start().catch((error) => error.code), await Sandbox.attach("x").catch((error) => error.code));
    await box.close();
    told.push(await box.run("x").catch((error) => error.code));
} catch (error) {
    told.push(String(error.stack ?? error));
}
await fetch("/told", { method: "POST", body: JSON.stringify(told) });
</script>`;

/** What a page does with the sandbox `box`, and what it tells of it. */
const USE = `
    const pieces = [];
    const result = await box.run("echo elsewhere; exit 4", { onOutput: (piece) => pieces.push(piece) });
    told.push(result.output, result.exitCode, pieces.join(""));
    for await (const piece of box.stream("while :; do echo on; sleep 0.1; done")) { told.push(piece.startsWith("on")); break; }
    await box.files.write("from-elsewhere", "read again");
    told.push(await box.files.readText("from-elsewhere"));
    const command = await box.start("echo later");
    await command.wait();
    // Of where the output begins and ends, the heads of answers tell.
    const output = await command.output();
    told.push(output.text, output.ended, output.next);
    const terminal = await box.terminal(["echo", "typed"]);
    told.push(await terminal.readUntil("typed"));
    await box.files.remove("from-elsewhere");
    told.push(await box.files.stat("from-elsewhere").catch((error) => error.code));`;

/** What a page of another origin does with the sandbox's own server, which it is told by its URL. */
const ELSEWHERE = `<!doctype html><script type="module">
import { Sandbox } from "/dist/browser.js";
const told = [];
try {
    const [url, key] = location.hash.slice(1).split("%20").map(decodeURIComponent);
    told.push(await Sandbox.connect(url, "wrong").catch((error) => error.code ?? error.constructor.name));
    const box = await Sandbox.connect(url, key);
${USE}
    await box.close();
} catch (error) {
    told.push(error.code ?? String(error.stack ?? error));
}
await fetch("/told", { method: "POST", body: JSON.stringify(told) });
</script>`;

/** What a page of another origin does with a gateway, which it is told by its URL. */
const AT_GATEWAY = `<!doctype html><script type="module">
import { Gateway, Sandbox } from "/dist/browser.js";
const told = [];
try {
    const [url, key] = location.hash.slice(1).split("%20").map(decodeURIComponent);
    const refused = await new Gateway(url, { key: "wrong" }).start().catch((error) => error);
    if (refused.code === "connection_lost") throw refused;
    told.push(refused.status, refused.code, refused.message.includes("request "));
    const gateway = new Gateway(url, { key });
    const box = await gateway.start({ ttlMs: 600_000, labels: { page: "yes" } });
    const info = await gateway.info(box);
    told.push((await gateway.list({ labels: { page: "yes" } })).length, (await gateway.capabilities()).runtime);
    told.push(await Sandbox.connect(info.url, "wrong").catch((error) => error.code ?? error.constructor.name));
${USE}
    const found = await gateway.get(box.id);
    told.push((await gateway.pause(found)).state, await found.run("true").catch((error) => error.code));
    told.push((await gateway.resume(found)).state, (await found.run("echo on")).output);
    await found.close();
    const controller = new AbortController();
    setTimeout(() => controller.abort("left"), 10);
    told.push(await gateway.start({ signal: controller.signal }).catch((error) => error));
    told.push(await gateway.snapshot(box).catch((error) => error.code));
    await box.close();
    told.push(await Sandbox.connect(info.url, info.key).catch((error) => error.code));
    // The gateway ends what was given up while it was made when it has been made.
    let left = 1;
    for (const end = Date.now() + 5000; left > 0 && Date.now() < end; ) left = (await gateway.list()).length;
    told.push(left);
    // It does nothing with this one, and leaves it.
    const open = await gateway.start({ abandonedAfterMs: 2000 });
    await new Promise((resolve) => setTimeout(resolve, 5000));
    told.push((await gateway.list()).length, (await open.state()).idleLimitMs);
} catch (error) {
    told.push(error.code ?? String(error.stack ?? error));
}
await fetch("/told", { method: "POST", body: JSON.stringify(told) });
</script>`;

const USED = ["elsewhere\n", 4, "elsewhere\n", true, "read again", "later\n", true, 6, "typed", "not_found"];

const EXPECTED_AT_GATEWAY = [
    ...[401, "unauthorized", true, 1, "local", "forbidden", ...USED, "paused", "paused", "running", "on\n", "left"],
    ...["unsupported", "no_such_sandbox", 0, 1, 2000],
];
/** A browser does not tell a page why. */
const NOT_ALLOWED = ["connection_lost"];

const EXPECTED_ELSEWHERE = ["forbidden", ...USED];

const EXPECTED = [
    ...["page\n", 3, "page\n", true, "of a page", true, "piped", "later\n", true, 6],
    ...["name?", 0, "Ada\r\nhello Ada", 3_088_895, null, "timed_out"],
    ...["not_found", "ForbiddenError", "session_failed", "session_failed", "closed"],
];

/** A port that nothing has. */
async function freePort(): Promise<number> {
    const server = createServer();
    await once(server.listen(0, "127.0.0.1"), "listening");
    const { port } = server.address() as AddressInfo;
    await new Promise((resolve) => server.close(resolve));
    return port;
}

/** Serves the page, the package and the sandbox, and gets what the page tells. */
async function pages(box: Sandbox | undefined, onTold: (told: unknown) => void, port = 0): Promise<Server> {
    const server = createServer((request, response) => {
        const path = new URL(request.url ?? "/", "http://x").pathname;
        if (path === "/told") {
            let body = "";
            request.on("data", (data: Buffer) => void (body += data));
            request.on("end", () => {
                response.end();
                onTold(JSON.parse(body));
            });
        } else if (box !== undefined && path.startsWith("/box/")) {
            passOn(`${box.url()}${request.url?.slice("/box".length)}`, request, response);
        } else if (path.startsWith("/dist/") && extname(path) === ".js") {
            response.setHeader("Content-Type", "text/javascript");
            response.end(readFileSync(join(DIST, normalize(path.slice("/dist/".length)))));
        } else {
            response.setHeader("Content-Type", "text/html; charset=utf-8");
            response.end({ "/elsewhere": ELSEWHERE, "/at-gateway": AT_GATEWAY }[path] ?? PAGE);
        }
    });
    server.on("upgrade", (request, socket) => {
        if (box === undefined) socket.destroy();
        else passUpgrade(`${box.url()}${request.url?.slice("/box".length)}`, request, socket);
    });
    await once(server.listen(port, "127.0.0.1"), "listening");
    return server;
}

/** What a page tells that is opened with this path and fragment, at this port. */
async function visited(box: Sandbox | undefined, chromium: string, words: string, port = 0): Promise<unknown> {
    let told: (value: unknown) => void = () => {};
    const answer = new Promise((resolve) => {
        told = resolve;
    });
    const server = await pages(box, told, port);
    const profile = mkdtempSync(join(tmpdir(), "profile-"));
    const flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"];
    const page = `http://localhost:${(server.address() as AddressInfo).port}/${words}`;
    const browser = spawn(chromium, [...flags, `--user-data-dir=${profile}`, page], {
        stdio: "ignore",
        detached: true,
    });
    try {
        return await Promise.race([answer, sleep(40_000, "the page has told nothing", { ref: false })]);
    } finally {
        if (browser.pid !== undefined) process.kill(-browser.pid, "SIGKILL");
        server.closeAllConnections();
        server.close();
    }
}

/** The Chromium of this machine, if it has one. */
export function chromiumProgram(): string | undefined {
    const named = (process.env["PATH"] ?? "").split(":").map((directory) => join(directory, "chromium"));
    return [process.env["TEST_CHROMIUM"] ?? "", ...named].find((path) => {
        try {
            execFileSync(path, ["--version"], { stdio: "ignore" });
            return true;
        } catch {
            return false;
        }
    });
}

export async function browse(): Promise<void> {
    await attempt("what a browser loads imports nothing of Node", async () => {
        const seen = new Set<string>();
        imported(join(DIST, "browser.js"), seen);
        assert.ok(seen.size > 10 && ![...seen].some((path) => path.includes("/node/")), [...seen].join(" "));
        const script =
            'import("gloveport").then(async ({ Sandbox }) => console.log(await Sandbox.start().catch((it) => it.code)))';
        const words = ["--conditions=browser", "--input-type=module", "--eval", script];
        same(execFileSync(process.execPath, words, { encoding: "utf8" }).trim(), "session_failed");
    });
    const what = "a page uses a sandbox";
    const found = chromiumProgram();
    if (found === undefined) {
        tell("skipped", `${what}: there is no chromium in PATH`);
        return;
    }
    await attempt(what, async () => {
        await using box = await Sandbox.start({ isolation: "none" });
        same(await visited(box, found, `#${encodeURIComponent(await keyOf(box))}`), EXPECTED);
    });
    await attempt("a page of another origin uses a sandbox that names it, and no other one", async () => {
        const port = await freePort();
        const named = `http://localhost:${port}`;
        for (const [origins, expected] of [
            [named, EXPECTED_ELSEWHERE],
            ["*", EXPECTED_ELSEWHERE],
            // A browser does not tell a page why.
            ["https://app.example", ["connection_lost", "connection_lost"]],
            [undefined, ["connection_lost", "connection_lost"]],
        ] as const) {
            const env = origins === undefined ? {} : { GLOVEPORT_ALLOW_ORIGINS: origins };
            await using box = await Sandbox.start({ isolation: "none", env });
            const words = [box.url(), await keyOf(box)].map(encodeURIComponent).join("%20");
            same(await visited(box, found, `elsewhere#${words}`, port), expected);
        }
    });
    await attempt(
        "a page of another origin starts and uses a sandbox at a gateway that names it, and no other one",
        async () => {
            const port = await freePort();
            for (const [origins, expected] of [
                [["https://app.example", `http://localhost:${port}`], EXPECTED_AT_GATEWAY],
                [["https://app.example"], NOT_ALLOWED],
                [[], NOT_ALLOWED],
            ] as const) {
                const gateway = await startGateway(origins);
                try {
                    const words = [gateway.url, gateway.key].map(encodeURIComponent).join("%20");
                    same(await visited(undefined, found, `at-gateway#${words}`, port), expected);
                    same(await untilEmpty(new Gateway(gateway.url, { key: gateway.key })), []);
                } finally {
                    await gateway.end();
                }
            }
        },
    );
}
