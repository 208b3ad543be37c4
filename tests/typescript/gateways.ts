// Sandboxes that a gateway starts, without a program on the client's machine: what can be done, and what goes wrong.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { inspect } from "node:util";

import * as gloveport from "gloveport";
import { Gateway, type GatewayStartOptions, Sandbox, type SandboxInfo } from "gloveport";

import { fails, gathered, same } from "./cases.js";
import { startGateway } from "./gateway.js";
import { Proxy } from "./proxy.js";

export const ids = (every: readonly SandboxInfo[]): string[] => every.map((each) => each.id);

/** Does something with a gateway over this machine, or over something else. */
export async function withGateway(
    body: (there: Gateway, url: string, key: string, end: () => Promise<void>) => Promise<void>,
    ...words: string[]
): Promise<void> {
    const { url, key, end } = await startGateway([], ...words);
    try {
        await body(new Gateway(url, { key }), url, key, () => end("SIGKILL"));
    } finally {
        await end("SIGKILL");
    }
}

/** What there is at a gateway, as soon as that is nothing, or after a while. */
export async function untilEmpty(there: Gateway, seconds = 10): Promise<string[]> {
    for (const end = performance.now() + seconds * 1000; ; await sleep(50)) {
        const listed = ids(await there.list());
        if (listed.length === 0 || performance.now() > end) return listed;
    }
}

export async function aGatewayStartsFindsAndEndsSandboxes(): Promise<void> {
    await withGateway(async (there, url, key) => {
        same([there.url, inspect(there, { depth: 5 }).includes(key)], [url, false]);
        same(new Gateway(`${url}/`, { key }).url, url);
        const can = await there.capabilities();
        same(
            [can.runtime, can.tenant, can.can.has("pause"), can.can.has("snapshots")],
            ["local", "default", true, false],
        );
        assert.ok(can.version !== "" && can.isolation !== "");
        const told: string[] = [];
        const box = await there.start({
            env: { A: "ä b" },
            secrets: { B: new gloveport.Secret("hidden") },
            labels: { team: "x" },
            sessionId: "build",
            memory: "2g",
            ttlMs: 600_000,
            onProgress: ({ state }) => told.push(state),
        });
        {
            await using _ = box;
            same((await box.run('echo "$A $B"')).output, "ä b hidden\n");
            same(told.at(-1), "running");
            const info = await there.info(box);
            same([info.sessionId, info.labels["team"], info.isKept, info.id], ["build", "x", false, box.id]);
            assert.ok(info.key !== undefined && !inspect(info).includes(info.key), inspect(info));
            const life = Number(info.expires) - Number(info.created);
            assert.ok(life > 590_000 && life <= 601_000, inspect(info));
            same([box.runtime, box.workspace, box.url(), box.ports], ["gateway", info.workspace, info.url, info.ports]);
            const other = await there.start({ kept: true });
            const kept = await there.info(other);
            same(ids(await there.list()), [box.id, kept.id]);
            same(ids(await there.list({ labels: { team: "x" } })), [box.id]);
            same(ids(await there.list({ most: 1, states: ["running"], includeEnded: true })), [box.id]);
            await other.close();
            // It is kept, and what was only found stays, too.
            for (const name of [kept.id, kept]) {
                await using found = await there.get(name);
                same((await found.run("echo found")).output, "found\n");
            }
            same(
                (await there.list({ sessionId: kept.id })).map((each) => each.isKept),
                [true],
            );
            await there.delete(kept.id);
            for (const name of [kept.id, "no/such one"]) {
                const error = await fails(gloveport.SandboxGoneError, there.get(name));
                assert.ok(error.message.includes(url) && error.remedy.includes("list"), inspect(error));
            }
            {
                // It is called by its session, too.
                await using found = await there.get("build");
                same((await there.pause("build")).state, "paused");
                const error = await fails(gloveport.PausedError, found.run("true"));
                assert.ok(error.message.includes(box.url()) && error.remedy !== "", inspect(error));
                same((await there.resume(found)).state, "running");
                same((await found.run("echo on")).output, "on\n");
            }
            const error = await fails(gloveport.ConflictError, there.start({ sessionId: "build" }));
            assert.ok(
                error.code === "session_exists" && error.message.includes(url) && error.remedy !== "",
                inspect(error),
            );
            {
                // One that is in the way stays, also with a key that both have been given.
                const fixed = { sessionId: "fixed", more: { session_api_key: "f".repeat(32) } };
                await using first = await there.start(fixed);
                same((await there.info(first)).key, "f".repeat(32));
                await fails(gloveport.ConflictError, there.start(fixed));
                same((await first.run("echo stays")).output, "stays\n");
            }
            // What this runtime cannot do.
            const calls = [
                () => there.fork(box),
                () => box.fork(),
                () => there.snapshot(box),
                () => box.snapshot(),
                () => there.snapshots(),
                () => there.removeSnapshot("none"),
                () => there.start({ image: "debian:13" }),
                () => box.events(),
                () => box.network.show(),
            ];
            for (const call of calls) {
                const refused = await fails<gloveport.GloveportError>(gloveport.SessionError, call);
                assert.ok(refused.code === "unsupported" && refused.remedy !== "", inspect(refused));
            }
        }
        same(await untilEmpty(there, 0), []);
        await fails(gloveport.SandboxClosedError, () => box.run("true"));
        await box.close();
    });
}

/** With Docker. */
export async function aGatewayKeepsAndForksTheFilesOfAContainer(): Promise<void> {
    await withGateway(
        async (there) => {
            const made: string[] = [];
            {
                await using box = await there.start({ image: "gloveport-test/debian:12", ttlMs: 600_000 });
                await box.run("echo kept > ~/kept; export GONE=1");
                {
                    await using other = await box.fork();
                    same((await other.run("cat ~/kept; echo [$GONE]")).output, "kept\n[]\n");
                    await other.run("echo changed > ~/kept");
                    made.push(box.id, other.id);
                    same(new Set(made).size, 2);
                }
                const snapshot = await box.snapshot();
                try {
                    const found = (await there.snapshots()).filter(({ image }) => image === snapshot.image);
                    same(
                        found.map(({ name }) => name),
                        [snapshot.name],
                    );
                    await using again = await there.start({ fromSnapshot: snapshot, ttlMs: 600_000 });
                    same((await again.run("cat ~/kept")).output, "kept\n");
                    made.push(again.id);
                } finally {
                    await there.removeSnapshot(snapshot);
                }
                same(
                    (await there.snapshots()).filter(({ image }) => image === snapshot.image),
                    [],
                );
                await fails(gloveport.NotFoundError, there.removeSnapshot(snapshot));
            }
            same(
                ids(await there.list()).filter((id) => made.includes(id)),
                [],
            );
        },
        "--runtime",
        "docker",
    );
}

/** Milliseconds after which a start is given up; one takes about 50. */
const MOMENTS = [0, 1, 3, 6, 10, 15, 20, 25, 30, 35, 40, 45, 50, 60, 80, 120];

export const GATEWAY_ATTACKS: Record<string, () => Promise<void>> = {
    "what cannot be asked of a gateway is told": async () => {
        for (const url of ["", "ftp://x", "nothing", "http://"]) {
            await fails(gloveport.InvalidRequestError, () => new Gateway(url, { key: "k" }));
        }
        const wrong = await fails(gloveport.InvalidRequestError, () => new Gateway("http://x", { key: "hunter2\n" }));
        same([wrong.code, String(wrong).includes("hunter2")], ["invalid_key", false]);
        await withGateway(async (there, url) => {
            const refused = await fails(gloveport.ForbiddenError, new Gateway(url, { key: "w".repeat(32) }).start());
            same([refused.status, refused.code, refused.message.includes(url)], [401, "unauthorized", true]);
            assert.ok(refused.remedy !== "" && !String(refused).includes("wwww"), inspect(refused));
            for (const options of [
                { secrets: { TOKEN: new gloveport.Secret("hunter2", { hosts: ["example.org"] }) } },
                { memory: "many" },
                { image: "a", fromSnapshot: "b" },
                { sessionId: "no/id" },
                { more: { unknown: 1 } },
                { labels: { "gloveport-tenant": "x" } },
                { timeoutMs: -1 },
            ]) {
                const error = await fails(gloveport.InvalidRequestError, there.start(options));
                assert.ok(!inspect(error).includes("hunter2"), inspect(error));
            }
            // The reason is that of the server that did not start.
            const failed = await fails(gloveport.SessionError, there.start({ plugins: ["none"] }));
            assert.ok(failed.code === "start_failed" && failed.message.includes("none"), inspect(failed));
            {
                await using box = await there.start();
                await using found = await Sandbox.connect(box.url(), (await there.info(box)).key);
                const none = await fails(gloveport.InvalidRequestError, there.delete(found));
                assert.match(none.message, /gateway/);
                const other = new Gateway(box.url(), { key: "w".repeat(32) });
                assert.ok((await fails(gloveport.ForbiddenError, other.list())).message.includes(box.url()));
            }
            same(await untilEmpty(there), []);
        });
    },

    "a start at a gateway that is given up leaves nothing": () =>
        withGateway(async (there) => {
            await (await there.start()).close();
            for (const moment of MOMENTS) {
                const controller = new AbortController();
                const reason = new Error(`after ${moment} ms`);
                const timer = setTimeout(() => controller.abort(reason), moment);
                try {
                    await (await there.start({ signal: controller.signal })).close();
                } catch (error) {
                    same(error, reason);
                }
                clearTimeout(timer);
                same([moment, await untilEmpty(there)], [moment, []]);
            }
        }),

    "a start that takes too long, or is left by its progress, leaves nothing": () =>
        withGateway(async (there) => {
            const late = await fails(gloveport.TimedOutError, there.start({ timeoutMs: 1 }));
            assert.ok(late.message.includes("0.001 s") && late.remedy !== "", inspect(late));
            const refuse = () => {
                throw new RangeError();
            };
            await fails(RangeError, there.start({ onProgress: refuse }));
            same(await untilEmpty(there), []);
        }),

    "a sandbox is started once where the connection breaks": () =>
        withGateway(async (there, url, key) => {
            const started = async (limit: number | undefined, options: GatewayStartOptions) => {
                const proxy = await Proxy.to(url);
                if (limit === undefined) proxy.swallow = 1;
                else proxy.limits = [limit];
                try {
                    await using box = await new Gateway(proxy.url, { key }).start(options);
                    same(ids(await there.list()), [box.id]);
                } finally {
                    proxy.close();
                }
                same([limit, options, await untilEmpty(there, 0)], [limit, options, []]);
            };
            // Where the request did not arrive, and after so many bytes of the answer: the first one is the sandbox, or
            // tells what the gateway can do.
            for (const limit of [undefined, 0, 1, 100, 300, 500]) {
                for (const sessionId of [undefined, "named"]) {
                    await started(limit, { sessionId, abandonedAfterMs: null });
                    await started(limit, { sessionId });
                }
            }
        }),

    "a sandbox that is deleted at its gateway is gone for all that follow it": () =>
        withGateway(async (there) => {
            const calls: Record<string, (box: Sandbox) => Promise<unknown>> = {
                run: (box) => box.run("sleep 60"),
                stream: (box) => gathered(box.stream("while :; do echo on; sleep 0.01; done")),
                wait: async (box) => (await box.start("sleep 60")).wait({ timeoutMs: 60_000 }),
                process: async (box) => gathered((await box.processes.start(["sleep", "60"])).output()),
                watch: async (box) => gathered(await box.files.watch(".")),
                terminal: async (box) => (await box.terminal("sleep 60")).readUntil("never", { timeoutMs: 60_000 }),
                files: async (box) => {
                    for (;;) await box.files.exists("x");
                },
            };
            const ended = async (name: string, moment: number, call: (box: Sandbox) => Promise<unknown>) => {
                await using box = await there.start();
                const ending = sleep(moment).then(() => there.delete(box.id));
                const [error] = await Promise.all([fails(gloveport.SandboxGoneError, call(box)), ending]);
                assert.ok(error.message.includes(box.url()) && error.remedy !== "", `${name} ${inspect(error)}`);
            };
            for (const moment of [200, 400]) {
                await Promise.all(Object.entries(calls).map(([name, call]) => ended(name, moment, call)));
            }
        }),

    "a gateway that has lost a sandbox for a moment is asked again": async () => {
        // At first it knows only that nobody answers.
        const detail = "the server of the sandbox does not answer; it may be starting anew, so try again";
        let left = 0;
        const server = createServer((request, response) => {
            const tell = (status: number, told: object) => response.writeHead(status).end(JSON.stringify(told));
            if (request.url === "/v1/sandbox") {
                tell(200, { state: "running", since_seconds: 1, idle_seconds: 0 });
            } else if (--left >= 0) {
                tell(502, { detail });
            } else {
                tell(404, { detail: "there is no such sandbox" });
            }
        });
        await once(server.listen(0, "127.0.0.1"), "listening");
        try {
            await using box = await Sandbox.connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
            for (const call of [
                () => box.run("true"),
                () => box.files.readText("x"),
                () => box.commands(),
                async () => gathered(await box.files.watch(".")),
            ]) {
                left = 3;
                const error = await fails(gloveport.SandboxGoneError, call);
                assert.ok(left < 0 && error.message.includes(box.url()), inspect(error));
            }
            // Where nobody can tell whether it was done, nothing is asked a second time.
            left = 3;
            const error = await fails(gloveport.ConnectionLostError, box.processes.start(["true"]));
            assert.ok(error.message.includes(box.url()) && error.remedy !== "", inspect(error));
            same(left, 2);
        } finally {
            server.closeAllConnections();
            server.close();
        }
    },

    "a program that ends leaves no sandbox at a gateway": () =>
        withGateway(async (there, url, key) => {
            const child = fileURLToPath(new URL("gateway-child.js", import.meta.url));
            for (const way of ["ends", "throws", "exits", "drops it", "is killed"]) {
                const flags = way === "drops it" ? ["--expose-gc"] : [];
                const program = spawn(process.execPath, [...flags, child, url, way], {
                    stdio: ["ignore", "pipe", "ignore"],
                    env: { ...process.env, TEST_KEY: key },
                });
                const ended = once(program, "exit");
                const [id] = (await once(program.stdout.setEncoding("utf8"), "data")) as [string];
                assert.match(id, /^js-/);
                if (way === "drops it") same(await untilEmpty(there), []);
                if (way === "drops it" || way === "is killed") program.kill("SIGKILL");
                await ended;
                // One that is killed leaves it to its time.
                same([way, await untilEmpty(there, way === "is killed" ? 15 : 0)], [way, []]);
            }
        }),

    "what a gateway cannot end is told": () =>
        withGateway(async (there, url, _, end) => {
            const box = await there.start({ ttlMs: 2000 });
            const gone = await there.start();
            await there.delete(gone);
            // Somebody else has ended it, which is no error.
            await gone.close();
            await end();
            const error = await fails(gloveport.SessionError, box.close());
            assert.ok(error.code === "not_ended" && error.message.includes(url) && error.remedy !== "", inspect(error));
            const unreachable = await fails(gloveport.UnreachableError, there.list());
            assert.ok(unreachable.message.includes(`the gateway at ${url}`), inspect(unreachable));
            await fails(gloveport.UnreachableError, there.start());
        }),
};
