// A gateway over this machine.

import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import { findProgram } from "gloveport";

export interface Gateway {
    readonly url: string;
    readonly key: string;
    /** Ends it, in good order unless it is said otherwise. Twice is not an error. */
    end(signal?: NodeJS.Signals): Promise<void>;
}

/** One that lets pages of these origins ask, with more flags. */
export async function startGateway(origins: readonly string[], ...flags: string[]): Promise<Gateway> {
    const directory = mkdtempSync(join(tmpdir(), "gateway-"));
    const key = randomBytes(16).toString("hex");
    const settings = join(directory, "gateway.toml");
    writeFileSync(join(directory, "key"), key, { mode: 0o600 });
    writeFileSync(settings, `[gateway]\nkey_file = "key"\nport = 0\nallow_origins = ${JSON.stringify(origins)}\n`);
    const program = spawn(findProgram(), ["gateway", "--config", settings, ...flags], {
        stdio: ["ignore", "pipe", "ignore"],
    });
    const ended = once(program, "exit");
    const end = async (signal: NodeJS.Signals = "SIGTERM"): Promise<void> => {
        program.kill(signal);
        await ended;
        rmSync(directory, { recursive: true, force: true });
    };
    const line = await Promise.race([
        once(program.stdout.setEncoding("utf8"), "data").then(String),
        sleep(20_000, "", { ref: false }),
    ]);
    const url = /listening on (http:\S+)/.exec(line)?.[1];
    if (url === undefined) {
        await end();
        throw new Error(`the gateway does not listen: ${line}`);
    }
    return { url, key, end };
}
