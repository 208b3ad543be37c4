// Servers that a test starts and ends: each in a directory of its own, and all that it started found by a mark.

import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { appendFileSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

const START_LIMIT = 30_000;
const END_LIMIT = 10_000;
const MARK = "GLOVEPORT_TEST_MARK";

/** Gives the value of `probe` as soon as it has one; throws what it last threw when there is none within `limit` ms. */
export async function waitFor(what, limit, probe) {
    const deadline = Date.now() + limit;
    let last = "";
    while (Date.now() < deadline) {
        try {
            const value = await probe();
            if (value) return value;
        } catch (error) {
            last = `: ${error.cause?.message ?? error.message}`;
        }
        await new Promise((resolve) => setTimeout(resolve, 50));
    }
    throw new Error(`${what} within ${limit / 1000} s${last}`);
}

/** A port of loopback that nobody listens on. */
export function freePort() {
    return new Promise((resolve, reject) => {
        const probe = createServer().on("error", reject);
        probe.listen(0, "127.0.0.1", () => {
            const { port } = probe.address();
            probe.close(() => resolve(port));
        });
    });
}

/** A workspace with one file, and a home, in a temporary directory. */
export class Place {
    constructor() {
        this.root = mkdtempSync(join(tmpdir(), "gloveport-vscode-"));
        this.workspace = join(this.root, "work space");
        this.home = join(this.root, "home");
        this.file = "notes.txt";
        mkdirSync(this.workspace);
        mkdirSync(this.home);
        writeFileSync(join(this.workspace, this.file), "the first line\n");
    }

    content() {
        return readFileSync(join(this.workspace, this.file), "utf8");
    }

    remove() {
        rmSync(this.root, { recursive: true, force: true, maxRetries: 5 });
    }
}

/** A program that runs until `end`. */
export class Server {
    constructor(place, command, environment) {
        this.mark = randomUUID();
        this.log = join(place.root, "log");
        const { SESSION_API_KEY: _, VSCODE_PORT: __, ...inherited } = process.env;
        const [program, ...words] = command;
        this.child = spawn(program, words, {
            cwd: place.root,
            env: { ...inherited, HOME: place.home, [MARK]: this.mark, ...environment },
            stdio: ["ignore", "pipe", "pipe"],
        });
        for (const stream of [this.child.stdout, this.child.stderr]) stream.on("data", (bytes) => appendFileSync(this.log, bytes));
        this.ended = new Promise((resolve) => this.child.on("close", resolve));
        this.child.on("error", (error) => appendFileSync(this.log, String(error)));
    }

    /** Waits until `url` answers with a status below 500. */
    async answers(url, headers = {}) {
        await waitFor(`${url} does not answer`, START_LIMIT, async () => {
            if (this.child.exitCode !== null) throw new Error(`the program ended with ${this.child.exitCode}`);
            return (await fetch(url, { headers, redirect: "manual" })).status < 500;
        });
    }

    /** The processes that it started, itself included, which carry its mark in their environments. */
    processes() {
        const marked = `${MARK}=${this.mark}`;
        return readdirSync("/proc").filter((pid) => {
            try {
                return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/environ`, "latin1").split("\0").includes(marked);
            } catch {
                return false;
            }
        });
    }

    lastWords() {
        try {
            return readFileSync(this.log, "utf8").slice(-2000);
        } catch {
            return "";
        }
    }

    /** Ends it, and throws if something that it started outlives it. Nothing is left in any case. */
    async end() {
        this.child.kill("SIGTERM");
        try {
            await waitFor("processes are left", END_LIMIT, () => this.processes().length === 0);
        } catch (error) {
            const left = this.processes().map((pid) => `${pid} ${commandLine(pid)}`);
            this.processes().forEach((pid) => kill(Number(pid)));
            throw new Error(`${error.message}: ${left.join("; ").slice(0, 1000)}`);
        } finally {
            await this.ended;
        }
    }
}

function commandLine(pid) {
    try {
        return readFileSync(`/proc/${pid}/cmdline`, "latin1").replaceAll("\0", " ");
    } catch {
        return "(ended)";
    }
}

function kill(pid) {
    try {
        process.kill(pid, "SIGKILL");
    } catch (error) {
        if (error.code !== "ESRCH") throw error;
    }
}
