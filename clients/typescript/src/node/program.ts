// The `gloveport` program: where it is, and what it says.

import { execFile } from "node:child_process";
import { accessSync, constants, statSync } from "node:fs";
import { delimiter, join } from "node:path";

import { ProgramMissingError, SessionError } from "../errors.js";

/** Names the program, where no option does. */
const VARIABLE = "GLOVEPORT_PROGRAM";
const NAME = process.platform === "win32" ? "gloveport.exe" : "gloveport";
/** Milliseconds that a question to the program may take. It asks an engine or a cluster, which may be slow. */
const LIMIT = 120_000;
/** Bytes that it may print. */
const MOST = 16 * 1024 * 1024;

/** What the program has printed, and how it ended. */
export interface Told {
    readonly stdout: string;
    readonly stderr: string;
    readonly isOk: boolean;
}

/**
 * The path of the program: the one that is named, that of the variable `GLOVEPORT_PROGRAM`, or the first in `PATH`.
 *
 * @throws {@link ProgramMissingError}, which says what to do.
 */
export function findProgram(named?: string): string {
    const variable = process.env[VARIABLE];
    for (const [program, who] of [
        [named, "the option `program`"],
        [variable, `the variable ${VARIABLE}`],
    ] as const) {
        if (program === undefined || program === "") continue;
        if (isProgram(program)) return program;
        throw new ProgramMissingError(`${who} names \`${program}\`, which is no program`, {
            remedy: `correct ${who}, or leave it out`,
        });
    }
    const found = (process.env["PATH"] ?? "")
        .split(delimiter)
        .filter((directory) => directory !== "")
        .map((directory) => join(directory, NAME))
        .find(isProgram);
    if (found !== undefined) return found;
    throw new ProgramMissingError("there is no program `gloveport`", {
        remedy: `put the program into PATH, or name it with the option \`program\` or the variable ${VARIABLE}`,
    });
}

function isProgram(path: string): boolean {
    try {
        accessSync(path, constants.X_OK);
        return statSync(path).isFile();
    } catch {
        return false;
    }
}

/** Runs the program to its end. */
export function ask(program: string, words: readonly string[], signal?: AbortSignal): Promise<Told> {
    return new Promise((resolve, reject) => {
        const settings = { maxBuffer: MOST, timeout: LIMIT, killSignal: "SIGKILL", windowsHide: true } as const;
        const asked = execFile(program, words, settings, (error, stdout, stderr) => {
            if (signal?.aborted === true) reject(signal.reason);
            else resolve({ stdout, stderr, isOk: error === null });
        });
        asked.stdin?.end();
        const leave = () => asked.kill("SIGTERM");
        signal?.addEventListener("abort", leave, { once: true });
        asked.once("close", () => signal?.removeEventListener("abort", leave));
    });
}

/**
 * The JSON objects that were printed one behind the other, each over lines of which the first is `{` and the last `}`.
 */
export function objects(printed: string): unknown[] {
    const found: unknown[] = [];
    let text = "";
    for (const line of printed.split("\n")) {
        text += `${line}\n`;
        // Members are indented, so that the end of an object is the only line that begins with its bracket.
        if (!line.startsWith("}") && !/^\{.*\}$/.test(line)) continue;
        try {
            found.push(JSON.parse(text));
        } catch {
            break;
        }
        text = "";
    }
    if (text.trim() === "") return found;
    throw new SessionError(`the program printed something else than JSON: ${JSON.stringify(text.slice(0, 200))}`, {
        remedy: "check that it is gloveport's",
    });
}

/** What the program told a person, without its name in front. */
export function said(stderr: string): string {
    return stderr.trim().replace(/^gloveport: /, "") || "the program `gloveport` failed, and did not say why";
}
