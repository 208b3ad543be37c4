// Sandboxes of gateways whose clients are gone without a word, and those whose clients are there and do nothing.

import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { inspect } from "node:util";

import * as gloveport from "gloveport";
import { Gateway } from "gloveport";

import { fails, same } from "./cases.js";
import { ids, untilEmpty, withGateway } from "./gateways.js";
import { Proxy } from "./proxy.js";

/** Milliseconds after which an abandoned sandbox ends here, and a multiple of that. */
const [SHORT, LONG] = [2000, 5000];
const CHILD = fileURLToPath(new URL("gateway-child.js", import.meta.url));

/** A program that uses a sandbox in some way, and the id of that. */
async function started(url: string, key: string, way: string): Promise<{ program: ChildProcess; id: string }> {
    const program = spawn(process.execPath, [CHILD, url, way], {
        stdio: ["ignore", "pipe", "ignore"],
        env: { ...process.env, TEST_KEY: key },
    });
    const [id] = (await once(program.stdout.setEncoding("utf8"), "data")) as [string];
    return { program, id };
}

/** With Docker. */
export async function aContainerHasAllOfItsIdleTimeWhenItGoesOn(): Promise<void> {
    await withGateway(
        async (there) => {
            const options = { image: "gloveport-test/debian:12", ttlMs: 600_000 };
            await using box = await there.start({ ...options, idleMs: SHORT });
            await using ours = await there.start(options);
            await box.run("true");
            await there.pause(box);
            await sleep(LONG);
            same((await there.info(box)).state, "paused");
            await there.resume(box);
            await sleep(SHORT / 2);
            const { idleMs } = await box.state();
            assert.ok(idleMs < SHORT && idleMs > 100, String(idleMs));
            const left = async () => ids(await there.list()).filter((id) => id === box.id || id === ours.id);
            for (const end = performance.now() + 10 * SHORT; performance.now() < end; await sleep(100)) {
                if (!(await left()).includes(box.id)) break;
            }
            same(await left(), [ours.id]);
            // A fork has the times of its source, which is ours and has to be told that we are there.
            await using other = await ours.fork();
            same((await other.state()).idleLimitMs, 300_000);
        },
        "--runtime",
        "docker",
    );
}

export const PRESENCE_ATTACKS: Record<string, () => Promise<void>> = {
    "an open sandbox outlives the time after which an abandoned one ends": () =>
        // The gateway would wake what is paused for who uses it.
        withGateway(async (there) => {
            const start = async () => there.start({ abandonedAfterMs: SHORT });
            const [open, atGateway, inside] = [await start(), await start(), await start()];
            const endless = await there.start({ abandonedAfterMs: null });
            await there.pause(atGateway);
            await inside.pause();
            // What its caller gives a time to is not kept, and neither is what was only found and is looked at.
            const idle = await there.start({ idleMs: 1000 });
            await there.start({ kept: true, idleMs: 1000, sessionId: "kept" });
            const found = await there.get("kept");
            same((await found.state()).idleLimitMs, 1000);
            let isOver = false;
            for (const end = performance.now() + LONG; performance.now() < end; await sleep(200)) {
                isOver ||= await found.state().then(
                    () => false,
                    () => true,
                );
            }
            same(isOver, true);
            const stays = [open, atGateway, inside, endless].map(({ id }) => id).sort();
            same(ids(await there.list()).sort(), stays);
            await fails(gloveport.SandboxGoneError, idle.run("true"));
            const { idleMs, idleLimitMs } = await open.state();
            same([idleMs < SHORT, idleLimitMs, (await endless.state()).idleLimitMs], [true, SHORT, undefined]);
            // Nobody has woken it, and they go on for as long as before.
            same([(await there.info(atGateway)).state, (await there.info(inside)).state], ["paused", "paused"]);
            await there.resume(atGateway);
            await inside.resume();
            await sleep(LONG);
            for (const box of [open, atGateway, inside]) same((await box.run("echo on")).output, "on\n");
            same(ids(await there.list()).sort(), stays);
            const refused = await fails(gloveport.InvalidRequestError, there.fork(open, { kept: true }));
            assert.ok(refused.remedy.includes("abandonedAfterMs: null"), inspect(refused));
            for (const box of [open, atGateway, inside, endless, idle, found]) await box.close();
            same(await untilEmpty(there, 0), []);
        }, "--wake"),

    "limits of a gateway that are shorter hold, and a client that is there keeps to them": () =>
        withGateway(
            async (there) => {
                await using box = await there.start();
                await using other = await there.start({ abandonedAfterMs: null });
                same([(await box.state()).idleLimitMs, (await other.state()).idleLimitMs], [SHORT, SHORT]);
                await sleep(LONG);
                same(ids(await there.list()), [box.id]);
                same((await box.run("echo on")).output, "on\n");
            },
            "--idle-stop",
            `${SHORT}ms`,
        ),

    "a program that is killed leaves no sandbox at a gateway, and one that waits for nothing ends": () =>
        withGateway(async (there, url, key) => {
            const { program, id } = await started(url, key, "is abandoned");
            const ended = once(program, "exit");
            await sleep(LONG);
            same(ids(await there.list()), [id]);
            program.kill("SIGKILL");
            await ended;
            same(await untilEmpty(there, (3 * SHORT) / 1000), []);
            // What says that it is there keeps nothing running.
            const quiet = await started(url, key, "ends");
            if (quiet.program.exitCode === null)
                await once(quiet.program, "exit", { signal: AbortSignal.timeout(10_000) });
            same([quiet.program.exitCode, await untilEmpty(there, 0)], [0, []]);
        }),

    "what fails in saying that a client is there is tried again, and told to nobody": () =>
        withGateway(async (there, url, key) => {
            const proxy = await Proxy.to(url);
            const told: unknown[] = [];
            const tell = (error: unknown) => void told.push(error);
            process.on("unhandledRejection", tell);
            try {
                await using box = await new Gateway(proxy.url, { key }).start({ abandonedAfterMs: SHORT });
                await proxy.drop();
                proxy.limits = [0, 100, 0, 100];
                await sleep(LONG);
                same([ids(await there.list()), proxy.limits], [[box.id], []]);
                // Somebody else has ended it.
                await there.delete(box.id);
                await sleep(SHORT);
            } finally {
                process.off("unhandledRejection", tell);
                proxy.close();
            }
            same(told, []);
        }),

    "a sandbox that is closed where nobody can be asked ends all the same": () =>
        withGateway(async (there, url, key) => {
            const proxy = await Proxy.to(url);
            const box = await new Gateway(proxy.url, { key }).start({ abandonedAfterMs: SHORT });
            proxy.close();
            same((await fails(gloveport.SessionError, box.close())).code, "not_ended");
            same(await untilEmpty(there, (3 * SHORT) / 1000), []);
        }),
};
