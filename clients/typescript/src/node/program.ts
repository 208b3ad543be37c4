// The `gloveport` program: where it is, and what it says.

import { execFile, type ExecFileException, spawn } from "node:child_process";
import { accessSync, constants, statSync } from "node:fs";
import { delimiter, join } from "node:path";

import { GloveportError, ProgramMissingError, SessionError, TooLargeError } from "../errors.js";
import { LIMITS } from "../limits.js";

/** Names the program, where no option does. */
const VARIABLE = "GLOVEPORT_PROGRAM";
/** What its errors begin with. */
const NAMED = "gloveport: ";
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
    /** Why it could not be run; nothing if it was. */
    readonly unusable?: string;
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
            else resolve({ stdout, stderr, isOk: error === null, ...whyUnusable(error) });
        });
        asked.stdin?.end();
        const leave = () => asked.kill("SIGTERM");
        signal?.addEventListener("abort", leave, { once: true });
        asked.once("close", () => signal?.removeEventListener("abort", leave));
    });
}

/** Why a program could not be run, if its error says that: no code of its own is a word. */
function whyUnusable(error: ExecFileException | null): { unusable?: string } {
    const code: unknown = error?.code;
    return typeof code === "string" && code !== "ERR_CHILD_PROCESS_STDIO_MAXBUFFER" ? { unusable: code } : {};
}

/** There is a program, which cannot be run. */
export function unusable(program: string, why: string): ProgramMissingError {
    return new ProgramMissingError(`the program \`${program}\` cannot be run: ${why}`, {
        remedy: `install one for this machine, or name it with the option \`program\` or the variable ${VARIABLE}`,
    });
}

/** What a command of the program prints. Throws `SessionError` with what it said if it fails. */
export async function asked(program: string, words: readonly string[], signal?: AbortSignal): Promise<string> {
    signal?.throwIfAborted();
    const told = await ask(program, words, signal);
    if (told.unusable !== undefined) throw unusable(program, told.unusable);
    if (!told.isOk) throw failed(told.stderr, program);
    return told.stdout;
}

/** The first lines that a command prints, and no more than `most`. It is not waited for the rest. */
export async function firstLines(
    program: string,
    words: readonly string[],
    most: number,
    signal: AbortSignal | undefined,
): Promise<string[]> {
    signal?.throwIfAborted();
    const child = spawn(program, words, { stdio: ["ignore", "pipe", "pipe"], windowsHide: true });
    let broken: string | undefined;
    const ended = new Promise<boolean>((resolve) => {
        child.once("error", (error: NodeJS.ErrnoException) => {
            broken = error.code ?? error.message;
            resolve(false);
        });
        child.once("close", (code) => resolve(code === 0));
    });
    const leave = () => {
        child.kill("SIGKILL");
        // What it has started may still have them.
        child.stdout.destroy();
        child.stderr.destroy();
    };
    signal?.addEventListener("abort", leave, { once: true });
    const timer = setTimeout(leave, LIMIT);
    let stderr = "";
    child.stderr.on("data", (data: Buffer) => void (stderr = `${stderr}${data}`.slice(-MOST)));
    const lines: string[] = [];
    try {
        const decoder = new TextDecoder();
        let [text, size] = ["", 0];
        for await (const piece of child.stdout as AsyncIterable<Buffer>) {
            size += piece.length;
            if (size > LIMITS.answer) {
                const remedy = "ask for fewer events";
                throw new TooLargeError(`the program prints more than ${LIMITS.answer} bytes`, { remedy });
            }
            const parts = `${text}${decoder.decode(piece, { stream: true })}`.split("\n");
            text = parts.pop() ?? "";
            lines.push(...parts.slice(0, most - lines.length));
            if (lines.length === most) return lines;
        }
        if (await ended) return lines;
        throw failed(stderr, program);
    } catch (error) {
        signal?.throwIfAborted();
        if (broken !== undefined) throw unusable(program, broken);
        if (error instanceof GloveportError) throw error;
        throw new SessionError(`the program was ended after ${LIMIT / 1000} s`, { cause: error });
    } finally {
        leave();
        await ended;
        clearTimeout(timer);
        signal?.removeEventListener("abort", leave);
    }
}

/** The JSON object that was printed. */
export function object(printed: string): unknown {
    const [found] = objects(printed);
    if (found === undefined) throw foreign(printed);
    return found;
}

/** The members of the JSON list that was printed. */
export function list(printed: string): unknown[] {
    let value: unknown;
    try {
        value = JSON.parse(printed);
    } catch {
        // It is none.
    }
    if (!Array.isArray(value)) throw foreign(printed);
    return value;
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
    throw foreign(text);
}

function foreign(text: string): SessionError {
    return new SessionError(`the program printed something else than JSON: ${JSON.stringify(text.slice(0, 200))}`, {
        remedy: "check that it is gloveport's",
    });
}

/** A command of the program failed. */
export function failed(stderr: string, program: string): SessionError {
    const text = said(stderr);
    if (text !== "") return new SessionError(text);
    return new SessionError(`the program \`${program}\` failed, and did not say why`, {
        remedy: "check that it is gloveport's",
    });
}

/** What the program told a person, without its name in front. Warnings of other things are left out. */
function said(stderr: string): string {
    const lines = stderr.trim().split("\n");
    const begin = lines.findIndex((line) => line.startsWith(NAMED));
    if (begin === -1) return stderr.trim();
    const end = lines.findIndex((line, at) => at > begin && /^\s*WARN /.test(line));
    return lines
        .slice(begin, end === -1 ? undefined : end)
        .join("\n")
        .slice(NAMED.length);
}
