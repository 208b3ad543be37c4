// Sessions that the program starts for us, and that end with us.
//
// A guard is a shell that starts the session, waits on a pipe, and removes the session when the pipe is closed. This
// process holds the only other end, which the kernel closes when it ends, however it ends. Closing a sandbox is the
// same: the pipe is closed. The guard starts the session itself, so that there is no moment in which a session has no
// guard.

import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, fstatSync, openSync, readSync, unlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";

import { freshId } from "../checks.js";
import { GloveportError, SessionError } from "../errors.js";
import { Fields } from "../fields.js";
import type { Session } from "../sandbox.js";
import { Secret, type Snapshot } from "../values.js";
import { idOf, startOf } from "./manage.js";
import { ask, asked, failed, findProgram, object, objects, unusable } from "./program.js";

/**
 * Words: program, id, runtime (may be empty), and the command of `session` that starts it. While the session is being
 * started, signals are for the program, which gives it up; afterwards only the pipe counts.
 */
const GUARD = `
program=$1 id=$2 runtime=$3
shift 3
session() { "$program" session \${runtime:+--runtime "$runtime"} "$@"; }
trap : INT TERM HUP
session "$@" </dev/null && session env --json "$id" </dev/null
trap '' INT TERM HUP
exec >/dev/null
while read -r _; do :; done
session rm -f "$id"
`;

/** Milliseconds in which a session must have ended. */
const ENDING = 120_000;
/** Bytes that the program may print when a session is started, and that are read of what it tells people. */
const MOST = 1024 * 1024;

/** What a sandbox is started with. */
export interface StartOptions {
    /**
     * What hosts it: `local` (the default), `docker`, `kubernetes` and others; an empty one is that of the
     * configuration.
     */
    runtime?: string | undefined;
    /** The image of its container, such as `python:3.13`. */
    image?: string | undefined;
    /** A snapshot to begin with, in the place of an image. The runtime is that of the snapshot. */
    fromSnapshot?: string | Snapshot | undefined;
    /** A directory of this machine to work in, which stays. */
    workspace?: string | undefined;
    /**
     * Variables of its commands. They are arguments of a program, which other users of this machine see while it
     * starts.
     */
    env?: Readonly<Record<string, string>> | undefined;
    /** Variables whose values stay out of arguments, logs and histories. */
    secrets?: Readonly<Record<string, string | Secret>> | undefined;
    /** `none`, `files` or `container`; the strongest that there is by default. */
    isolation?: "none" | "files" | "container" | undefined;
    /** `full`, `none`, or the hosts that it may talk to. */
    network?: string | readonly string[] | undefined;
    /** Its memory at most: a size such as `2g`. */
    memory?: string | undefined;
    /** Ports of programs in it, by names. */
    ports?: Readonly<Record<string, number>> | undefined;
    /** What is added to it, such as `jupyter`. */
    plugins?: readonly string[] | undefined;
    /** Labels that lists show. */
    labels?: Readonly<Record<string, string>> | undefined;
    /** More flags of `gloveport session start`, such as `["--cpus", "2"]`. */
    flags?: readonly string[] | undefined;
    /** The path of the program `gloveport`. */
    program?: string | undefined;
    /** Gives the start up, and throws its reason. */
    signal?: AbortSignal | undefined;
}

/** A session, and where its sandbox is. */
export interface Found {
    readonly session: Session;
    readonly url: string;
    readonly key: string | undefined;
}

/** What a guard starts. */
export interface Plan {
    readonly program: string | undefined;
    readonly runtime: string;
    /** The command of `session` that starts it, for an id. */
    readonly words: (id: string) => string[];
    /** The variables of the program, which takes secrets from them. */
    readonly env: NodeJS.ProcessEnv;
}

/** A session that is started. */
export function planOf(given: StartOptions): Plan {
    const { runtime, image } = startOf(given, given.fromSnapshot);
    const options = { ...given, image };
    const words = (id: string) => ["start", "--quiet", "--json", "--id", id, ...flagsOf(options)];
    return { program: options.program, runtime: runtime ?? "local", words, env: environment(options) };
}

/** A session with the files and settings of another one. */
export function forkOf(parent: Session, program: string | undefined): Plan {
    const of = idOf(parent);
    const words = (id: string) => ["fork", "--quiet", "--json", "--id", id, "--", of];
    return { program, runtime: parent.runtime, words, env: process.env };
}

/** The flags of `session start`. Values of secrets are not among them, since arguments can be seen by others. */
function flagsOf(options: StartOptions): string[] {
    const { image, workspace, isolation, memory } = options;
    const network = typeof options.network === "object" ? options.network.join(",") : options.network;
    const single = { image, workspace, isolation, network, memory };
    const words = Object.entries(single).flatMap(([flag, value]) =>
        value === undefined ? [] : [`--${flag}=${value}`],
    );
    for (const [name, value] of Object.entries(options.env ?? {})) words.push(`--env=${name}=${value}`);
    for (const [name, secret] of Object.entries(options.secrets ?? {})) {
        const hosts = secret instanceof Secret ? secret.hosts : [];
        words.push(`--secret=${name}${hosts.length > 0 ? `@${hosts.join(",")}` : ""}`);
    }
    for (const [name, port] of Object.entries(options.ports ?? {})) words.push(`--port=${name}:${port}`);
    for (const name of options.plugins ?? []) words.push(`--plugin=${name}`);
    for (const [name, value] of Object.entries(options.labels ?? {})) words.push(`--label=${name}=${value}`);
    return [...words, ...(options.flags ?? [])];
}

/** The variables of the program, which takes secrets from them. */
function environment(options: StartOptions): NodeJS.ProcessEnv {
    const secrets = Object.entries(options.secrets ?? {});
    const values = secrets.map(
        ([name, secret]) => [name, secret instanceof Secret ? secret.reveal() : secret] as const,
    );
    return { ...process.env, ...Object.fromEntries(values) };
}

/** How a guard ended: with an exit code, or by a signal. */
interface Ended {
    readonly code: number | null;
    readonly error?: Error;
}

/** A session of our own. */
export class Guard {
    readonly #id = freshId(8);
    readonly #program: string;
    readonly #runtime: string;
    /** A file, and no pipe: what outlives this process can still write to it. */
    readonly #errors: number;
    readonly #process: ChildProcess;
    readonly #pipe: Writable;
    readonly #exit: Promise<Ended>;
    #isEnding = false;

    constructor(plan: Plan) {
        if (process.platform === "win32") {
            throw new SessionError("sessions are started on Linux and macOS only", {
                remedy: "use `connect` with the URL of a sandbox elsewhere",
            });
        }
        this.#program = findProgram(plan.program);
        this.#runtime = plan.runtime;
        this.#errors = unnamedFile();
        const command = plan.words(this.#id);
        const words = ["-c", GUARD, "gloveport-guard", this.#program, this.#id, this.#runtime, ...command];
        try {
            this.#process = spawn("/bin/sh", words, {
                stdio: ["pipe", "pipe", this.#errors],
                env: plan.env,
                // In a session of its own it gets no signals of a terminal.
                detached: true,
            });
        } catch {
            closeSync(this.#errors);
            // What cannot be an argument or a variable, such as a text with a NUL. The message may show a secret.
            throw new SessionError("the session cannot be started: an option is no text that a program can be given");
        }
        this.#pipe = this.#process.stdin as Writable;
        // One that has ended says so itself.
        this.#pipe.on("error", () => {});
        this.#exit = new Promise((resolve) => {
            this.#process.once("error", (error) => resolve({ code: null, error }));
            this.#process.once("exit", (code) => resolve({ code }));
        });
        this.#holdProgram(false);
    }

    /**
     * Waits until the session is there.
     *
     * Throws `SessionError` with what the program said if it cannot be started.
     */
    async started(signal: AbortSignal | undefined): Promise<Found> {
        const leave = () => this.giveUp();
        signal?.addEventListener("abort", leave, { once: true });
        this.#holdProgram(true);
        try {
            if (this.#process.pid === undefined) {
                const { error } = await this.#exit;
                throw new SessionError(`/bin/sh cannot be started: ${error?.message}`);
            }
            const printed = await textOf(this.#process.stdout as Readable);
            signal?.throwIfAborted();
            const shown = objects(printed);
            if (shown.length === 2) return foundOf(shown[0], shown[1]);
            const told = this.#told(0);
            if (told.startsWith("gloveport-guard: ")) {
                // The shell, of a program that it cannot run.
                throw unusable(this.#program, told.trim().split(": ").at(-1) ?? "");
            }
            throw failed(told, this.#program);
        } catch (error) {
            this.giveUp();
            throw error;
        } finally {
            signal?.removeEventListener("abort", leave);
            this.#holdProgram(false);
        }
    }

    /** Ends the session without waiting for it, also one that is being started. */
    giveUp(): void {
        if (this.#isEnding) return;
        this.#isEnding = true;
        this.#pipe.destroy();
        const { pid, exitCode, signalCode } = this.#process;
        if (pid !== undefined && exitCode === null && signalCode === null) {
            try {
                process.kill(-pid, "SIGTERM");
            } catch {
                // It has just ended.
            }
        }
        void this.#exit.then(() => this.#close());
    }

    /**
     * Ends the session, and waits until nothing is left of it.
     *
     * Throws `SessionError` if it could not be ended; one that has ended by itself is no error.
     */
    async end(): Promise<void> {
        if (this.#isEnding) return;
        this.#isEnding = true;
        const begun = fstatSync(this.#errors).size;
        this.#holdProgram(true);
        this.#pipe.destroy();
        let timer: ReturnType<typeof setTimeout> | undefined;
        const late = new Promise<Ended>((resolve) => {
            timer = setTimeout(() => resolve({ code: 1 }), ENDING);
        });
        try {
            const { code } = await Promise.race([this.#exit, late]);
            if (code === 0) return;
            // Somebody has killed the guard, or the program failed.
            const removed = code === null ? await this.#ask("rm", "--force", this.#id) : undefined;
            if (removed?.isOk === true || !(await this.#isThere())) return;
            const why = removed?.stderr ?? this.#told(begun);
            throw new SessionError(
                `the session \`${this.#id}\` could not be ended: ${failed(why, this.#program).message}`,
                {
                    remedy: `try \`gloveport session rm -f ${this.#id}\``,
                },
            );
        } finally {
            clearTimeout(timer);
            this.#close();
        }
    }

    async #isThere(): Promise<boolean> {
        const listed = await this.#ask("ls", "--quiet");
        return !listed.isOk || listed.stdout.split(/\s+/).includes(this.#id);
    }

    #ask(...words: string[]) {
        const runtime = this.#runtime === "" ? [] : ["--runtime", this.#runtime];
        return ask(this.#program, ["session", ...runtime, ...words]);
    }

    /** Whether this process waits for the guard before it ends by itself. */
    #holdProgram(isHeld: boolean): void {
        for (const each of [this.#process, this.#process.stdin, this.#process.stdout]) {
            const handle = each as { ref?(): void; unref?(): void } | null;
            if (isHeld) handle?.ref?.();
            else handle?.unref?.();
        }
    }

    /** What the program has told people from there on, as far as anybody can want it. */
    #told(from: number): string {
        const size = fstatSync(this.#errors).size;
        const start = Math.max(from, size - MOST);
        const bytes = new Uint8Array(Math.max(0, size - start));
        return new TextDecoder().decode(bytes.subarray(0, readSync(this.#errors, bytes, 0, bytes.length, start)));
    }

    #close(): void {
        closeSync(this.#errors);
    }
}

/** A file that goes away with those who have it open. */
function unnamedFile(): number {
    const path = join(tmpdir(), freshId(16));
    const file = openSync(path, "wx+", 0o600);
    unlinkSync(path);
    return file;
}

async function textOf(stream: Readable): Promise<string> {
    const decoder = new TextDecoder();
    let text = "";
    for await (const piece of stream) {
        text += decoder.decode(piece as Uint8Array, { stream: true });
        if (text.length > MOST) throw new SessionError("the program printed more than anybody can want");
    }
    return text;
}

/** A session that runs. Throws `SessionError` if there is none of this id. */
export async function find(
    id: string,
    options: { runtime?: string | undefined; program?: string | undefined; signal?: AbortSignal | undefined },
): Promise<Found> {
    const program = findProgram(options.program);
    const words = ["session", ...(options.runtime === undefined ? [] : ["--runtime", options.runtime])];
    const shown: unknown[] = [];
    for (const what of ["show", "env"]) {
        shown.push(object(await asked(program, [...words, what, "--json", id], options.signal)));
    }
    return foundOf(shown[0], shown[1]);
}

/** A session as `session show --json` and `session env --json` print it. */
function foundOf(shown: unknown, variables: unknown): Found {
    try {
        const told = new Fields<Record<string, unknown>>(shown, "the session");
        const env = new Fields<Record<string, unknown>>(variables, "its variables");
        const session = {
            id: told.text("session_id"),
            runtime: told.maybeText("provider") ?? "",
            workspace: told.maybeText("workspace"),
            ports: texts(told.has("urls") ? told.record("urls") : {}),
            labels: texts(told.has("labels") ? told.record("labels") : {}),
        };
        return { session, url: env.text("GLOVEPORT_URL"), key: env.maybeText("GLOVEPORT_KEY") };
    } catch (error) {
        if (!(error instanceof GloveportError)) throw error;
        throw new SessionError(`the program printed what is no session: ${error.message}`, {
            remedy: "check that it is gloveport's, of the version of this package",
        });
    }
}

function texts(record: Record<string, unknown>): Record<string, string> {
    return Object.fromEntries(
        Object.entries(record).filter((each): each is [string, string] => typeof each[1] === "string"),
    );
}
