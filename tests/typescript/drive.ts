// The checks of the package that need the program, with the package that is installed beside this file:
// what it does (drive.js EXAMPLES), or what goes wrong (drive.js).

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import * as gloveport from "gloveport";
import { Sandbox } from "gloveport";

import { attack, sessions } from "./attacks.js";
import { browse, chromiumProgram } from "./browser.js";
import {
    aBrowserIsUsed,
    CASES,
    cellsRunInKernels,
    filesOfAContainerAreKeptAndForked,
    keyOf,
    theNetworkIsChangedWhileASandboxRuns,
} from "./cases.js";
import { aGatewayKeepsAndForksTheFilesOfAContainer, aGatewayStartsFindsAndEndsSandboxes } from "./gateways.js";
import { Inventory } from "./inventory.js";
import { aContainerHasAllOfItsIdleTimeWhenItGoesOn } from "./presence.js";
import { attempt, check, finish, measured, tell } from "./report.js";

const EXAMPLES = process.argv[2];
const INTERPRETER = process.env["TEST_IPYTHON"] ?? "";

async function cases(): Promise<void> {
    await using box = await Sandbox.start({ isolation: "none" });
    for (const [what, body] of Object.entries(CASES)) {
        const scratch = mkdtempSync(join(tmpdir(), "case-"));
        await attempt(what, () => body(box, scratch));
        rmSync(scratch, { recursive: true, force: true });
    }
}

/** A case that needs something which not every machine has. */
interface Special {
    readonly what: string;
    /** What the machine lacks; empty if it lacks nothing. */
    readonly lack: string;
    /** How the public functions begin that only this case uses. */
    readonly functions: readonly string[];
    readonly body: () => Promise<void>;
}

/** Runs the cases that need something of the machine, and returns how the functions begin that are not used then. */
async function special(): Promise<string[]> {
    const noDocker =
        process.env["DOCKER_HOST"] === undefined
            ? "GLOVEPORT_TEST_DOCKER names no daemon; `scripts/docker up` starts one, and `scripts/docker env` names it"
            : "";
    const cases: Special[] = [
        {
            what: "a gateway starts, finds and ends sandboxes",
            lack: "",
            functions: [],
            body: aGatewayStartsFindsAndEndsSandboxes,
        },
        {
            what: "a gateway keeps and forks the files of a container",
            lack: noDocker,
            functions: [],
            body: aGatewayKeepsAndForksTheFilesOfAContainer,
        },
        {
            what: "a container has all of its idle time when it goes on",
            lack: noDocker,
            functions: [],
            body: aContainerHasAllOfItsIdleTimeWhenItGoesOn,
        },
        {
            what: "cells run in kernels",
            lack: existsSync(INTERPRETER) ? "" : "there is no Python with IPython; scripts/setup installs it",
            functions: ["Cell.", "RemoteSandbox.prototype.interruptKernel", "RemoteSandbox.prototype.restartKernel"],
            body: () => cellsRunInKernels(INTERPRETER),
        },
        {
            what: "a browser is used",
            lack: chromiumProgram() === undefined ? "there is no Chromium; scripts/setup installs it" : "",
            functions: ["Browser.", "Page."],
            body: aBrowserIsUsed,
        },
        {
            what: "files of a container are kept and forked",
            lack: noDocker,
            functions: [],
            body: filesOfAContainerAreKeptAndForked,
        },
        {
            what: "the network is changed while a sandbox runs",
            lack: await noGate(),
            functions: [],
            body: theNetworkIsChangedWhileASandboxRuns,
        },
    ];
    const unused: string[] = [];
    for (const { what, lack, functions, body } of cases) {
        if (lack === "") {
            // Kernels, browsers and containers start.
            await attempt(what, body, 180);
        } else {
            tell("skipped", `${what}: ${lack}`);
            unused.push(...functions);
        }
    }
    return unused;
}

/** Why no sandbox of this machine has a gate; empty if it has. */
async function noGate(): Promise<string> {
    try {
        await using box = await Sandbox.start({ isolation: "container", network: ["a.test"] });
        await box.network.show();
        return "";
    } catch (error) {
        if (error instanceof gloveport.SessionError) return error.message;
        throw error;
    }
}

/** A sandbox is kept apart, or says that it is not. */
async function defaultIsolation(): Promise<void> {
    const names: string[] = [];
    const listen = (warning: Error) => names.push(warning.name);
    process.on("warning", listen);
    const box = await Sandbox.start();
    const level = box.isolation;
    await box.close();
    await new Promise((resolve) => setImmediate(resolve));
    process.off("warning", listen);
    const isWarned = names.includes("NotIsolatedWarning");
    check(
        `a sandbox with the default isolation, ${level}, warns if that is none`,
        isWarned === (level === "none"),
        names,
    );
}

/** What a sandbox that is kept apart sees, and that it ends as the others. */
async function isolated(level: "files" | "container"): Promise<void> {
    const secret = join(process.env["HOME"] ?? "", "secret");
    writeFileSync(secret, "mine");
    const what = `a sandbox with the isolation ${level}`;
    let box: Sandbox;
    try {
        box = await Sandbox.start({ isolation: level });
    } catch (error) {
        if (!(error instanceof gloveport.SessionError)) throw error;
        tell("skipped", `${what}: ${error.message}`);
        return;
    }
    await attempt(`${what} works, does not see files of this machine's user, and ends`, async () => {
        assert.equal(box.isolation, level);
        (await box.run("echo works > file")).check();
        assert.equal(await box.files.readText("file"), "works\n");
        const seen = await box.run(`cat ${secret}`);
        assert.ok(!seen.ok && !seen.output.includes("mine"), seen.output);
        await box.close();
        assert.ok(!sessions().has(box.id));
    });
}

function examples(): void {
    const directory = EXAMPLES ?? "";
    for (const name of readdirSync(directory).sort()) {
        const told = execFileSync(process.execPath, [join(directory, name)], {
            encoding: "utf8",
            stdio: ["ignore", "pipe", "ignore"],
        });
        check(`the example ${name} runs and prints something`, told.trim() !== "");
    }
}

/** A command by the client, and the same request without it, in turns. */
async function speed(): Promise<void> {
    await using box = await Sandbox.start({ isolation: "none" });
    const headers = { "X-Session-API-Key": await keyOf(box), "Content-Type": "application/json" };
    const times: [ours: number, raw: number][] = [];
    for (let turn = 0; turn < 220; turn++) {
        const begun = performance.now();
        const body = JSON.stringify({ command: "echo hi" });
        await (await fetch(`${box.url()}/v1/exec`, { method: "POST", headers, body })).text();
        const middle = performance.now();
        await box.run("echo hi");
        if (turn >= 20) times.push([performance.now() - middle, middle - begun]);
    }
    const median = (at: 0 | 1) =>
        times.map((each) => each[at]).sort((one, other) => one - other)[times.length / 2] ?? 0;
    const [ours, raw] = [median(0), median(1)];
    measured(`run("echo hi"), p50: ${ours.toFixed(2)} ms, fetch alone ${raw.toFixed(2)} ms`);
}

async function works(): Promise<void> {
    const inventory = new Inventory();
    measured(`${inventory.there.size} public functions`);
    const others = Object.keys(gloveport).filter((name) => !/^[A-Z][a-z]/.test(name));
    check("nothing internal is exported", others.join() === "findProgram", others);
    await cases();
    const unused = await special();
    const missing = inventory.missing().filter((label) => !unused.some((beginning) => label.startsWith(beginning)));
    const but = unused.length === 0 ? "" : ", but for those that this machine cannot use";
    check(`every public function has a case${but}`, missing.length === 0, missing);
    examples();
    await defaultIsolation();
    await isolated("files");
    await isolated("container");
    await browse();
    await speed();
}

await (EXAMPLES === undefined ? attack() : works());
finish();
