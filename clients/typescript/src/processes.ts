// Processes of a sandbox: programs with pipes, whose standard output and standard error are apart.

import { countOf, secondsOf, segment } from "./checks.js";
import { Collector } from "./collector.js";
import { type Connection, Retry } from "./connection.js";
import { ConflictError, ConnectionLostError, OutputGoneError, UnreachableError } from "./errors.js";
import { EventParser } from "./events.js";
import type { Answer } from "./exchange.js";
import { Fields, foreign, parsed } from "./fields.js";
import { LIMITS } from "./limits.js";
import type { Completed, ProcessEnd, ProcessInfo, ProcessOutput } from "./values.js";
import type * as wire from "./wire.js";

/** Most bytes of input that the server takes at a time. */
const INPUT = 1024 * 1024;
/** Bytes of each output that are kept, unless the caller says something else. */
const KEPT = 256 * 1024 * 1024;

/** How a process is started. */
export interface ProcessOptions {
    /** Directory to run in: an absolute path. */
    cwd?: string | undefined;
    /** Variables beside those of the sandbox. */
    env?: Readonly<Record<string, string>> | undefined;
    /** A name that lists show. */
    tag?: string | undefined;
    /** Milliseconds after which it is ended. */
    timeoutMs?: number | undefined;
}

/** How a process is waited for. */
export interface WaitOptions {
    /** Gives the waiting up, and throws its reason. */
    signal?: AbortSignal | undefined;
    /** Bytes of each of its outputs that are kept at most, the last ones: 256 MiB by default. */
    keep?: number | undefined;
}

const pathOf = (id: string, what = ""): string => `/v1/processes/${segment(id)}${what}`;

function infoOf(value: unknown): ProcessInfo {
    const told = new Fields<wire.ProcessStatus>(value, "a process");
    const tag = told.maybeText("tag");
    const end = told.maybeFields<wire.ProcessEnd>("end");
    return {
        id: told.text("id"),
        pid: told.number("pid"),
        argv: told.texts("argv"),
        cwd: told.text("cwd"),
        ...(tag === undefined ? {} : { tag }),
        ...(end === undefined ? {} : { end: endOf(end) }),
    };
}

function endOf(told: Fields<wire.ProcessEnd>): ProcessEnd {
    const exitCode = told.maybeNumber("exit_code");
    const signal = told.maybeNumber("signal");
    return {
        ...(exitCode === undefined ? {} : { exitCode }),
        ...(signal === undefined ? {} : { signal }),
        timedOut: told.flag("timed_out"),
    };
}

/**
 * Hands out what a process writes, from the beginning of what is kept, and goes on where it was when the connection
 * breaks: what comes first then is what was let go, so that all bytes have a place.
 */
async function* follow(
    connection: Connection,
    id: string,
    signal: AbortSignal | undefined,
    onLost: (bytes: number) => void = () => {},
): AsyncGenerator<ProcessOutput, ProcessEnd> {
    const retry = new Retry();
    const query = { from: "start" };
    /** Where what is handed out ends, in bytes of all that the process has written. */
    let reached = 0;
    for (;;) {
        let answer: Answer | undefined;
        try {
            answer = await connection.open({ method: "GET", path: pathOf(id, "/output"), query, signal });
            retry.opened();
            /** Whether it has come to what was not there before. */
            let isFresh = reached === 0;
            let at = 0;
            const parser = new EventParser();
            for (let piece = await answer.read(); piece !== undefined; piece = await answer.read()) {
                for (const { name, data } of parser.feed(piece)) {
                    if (name === "output") {
                        const stream = data.word("stream", "stdout", "stderr");
                        const bytes = data.bytes("text", "base64");
                        const fresh = bytes.subarray(Math.max(0, reached - at));
                        at += bytes.length;
                        if (fresh.length === 0) continue;
                        isFresh = true;
                        retry.progressed();
                        reached = at;
                        yield { stream, data: fresh };
                    } else if (name === "lost") {
                        at += data.count("bytes");
                        if (at <= reached) continue;
                        // Somebody who was there all the time was too slow, and is told of it.
                        if (!isFresh) throw gone();
                        onLost(at - reached);
                        reached = at;
                    } else if (name === "exit") {
                        if (at < reached) throw foreign("the output of a process has become shorter");
                        await answer.rest();
                        return endOf(data as Fields<unknown> as Fields<wire.ProcessEnd>);
                    }
                }
            }
            throw new ConnectionLostError("the server ended the stream of a process that has not ended");
        } catch (error) {
            if (!(error instanceof UnreachableError || error instanceof ConnectionLostError)) throw error;
            await retry.wait(error, connection, signal);
        } finally {
            answer?.close();
        }
    }
}

function gone(): OutputGoneError {
    return new OutputGoneError(
        "the connection broke, and the process has written more than the sandbox keeps, so its output cannot be " +
            "followed from where it was; the process goes on",
        {
            code: "output_gone",
            remedy: "let it write into a file, or use `start` of the sandbox, which keeps more",
        },
    );
}

/** A program with pipes that runs in the sandbox, and goes on whether or not somebody follows it. */
export class Process {
    /** What was known of it when it was started. */
    readonly info: ProcessInfo;
    readonly #connection: Connection;

    /** @internal */
    constructor(connection: Connection, info: ProcessInfo) {
        this.#connection = connection;
        this.info = info;
    }

    /** Its id. */
    get id(): string {
        return this.info.id;
    }

    /**
     * How it stands.
     *
     * @throws {@link NotFoundError} when the sandbox has forgotten it.
     */
    async status(): Promise<ProcessInfo> {
        const { body } = await this.#connection.perform({ method: "GET", path: pathOf(this.id), repeatable: true });
        return infoOf(parsed(body));
    }

    /**
     * What it writes, from the beginning of what is kept (1 MiB), until it ends. Who follows holds it back as a pipe
     * does. A connection that breaks is made again, and the output goes on where it was.
     *
     * @param options - `signal` gives it up, and throws its reason.
     * @throws {@link OutputGoneError} if it has written more than 1 MiB while there was no connection; the process goes
     * on.
     */
    async *output(options: { signal?: AbortSignal | undefined } = {}): AsyncGenerator<ProcessOutput, void> {
        yield* follow(this.#connection, this.id, options.signal);
    }

    /**
     * Waits for its end, and keeps what it writes. A connection that breaks is made again.
     *
     * @throws {@link OutputGoneError} if it has written more than 1 MiB while there was no connection; the process goes
     * on.
     */
    async wait(options: WaitOptions = {}): Promise<Completed> {
        const keep = countOf("keep", options.keep ?? KEPT);
        const kept = { stdout: new Collector(keep), stderr: new Collector(keep) };
        let lost = 0;
        const parts = follow(this.#connection, this.id, options.signal, (bytes) => {
            lost += bytes;
        });
        for (;;) {
            const { done, value } = await parts.next();
            if (done === true) {
                const [stdout, stderr] = [kept.stdout.bytes(), kept.stderr.bytes()];
                return { ...value, stdout, stderr, lost, dropped: kept.stdout.dropped + kept.stderr.dropped };
            }
            kept[value.stream].take(value.data);
        }
    }

    /**
     * Gives it input, and returns when the process or its pipe has taken it.
     *
     * @throws {@link ConflictError} if it was started without `stdin`, has ended, or takes nothing for half a minute.
     */
    async write(data: string | Uint8Array, options: { signal?: AbortSignal | undefined } = {}): Promise<void> {
        const bytes = typeof data === "string" ? new TextEncoder().encode(data) : data;
        const headers = { "Content-Type": "application/octet-stream" };
        for (let at = 0; at < bytes.length; at += INPUT) {
            const content = bytes.slice(at, at + INPUT);
            const path = pathOf(this.id, "/input");
            await this.#connection.perform({ method: "POST", path, headers, content, signal: options.signal });
        }
    }

    /** Ends its input. */
    async closeStdin(): Promise<void> {
        await this.#connection.perform({ method: "DELETE", path: pathOf(this.id, "/input"), repeatable: true });
    }

    /**
     * Sends it a signal such as `TERM`; with `group` also to what it has started.
     *
     * @throws {@link ConflictError} if it has ended.
     */
    async signal(name: string, options: { group?: boolean | undefined } = {}): Promise<void> {
        const json: wire.ProcessSignal = { name: name.replace(/^SIG/, ""), group: options.group ?? false };
        await this.#connection.perform({ method: "POST", path: pathOf(this.id, "/signal"), json });
    }

    /** Ends it and everything that it started, and forgets it. */
    async remove(): Promise<void> {
        await this.#connection.perform({ method: "DELETE", path: pathOf(this.id) });
    }
}

/** The processes of a sandbox. */
export class Processes {
    readonly #connection: Connection;

    /** @internal */
    constructor(connection: Connection) {
        this.#connection = connection;
    }

    /**
     * Starts a program, without a shell.
     *
     * @param options - `stdin` gives it an input to write to.
     * @throws {@link ConnectionLostError} if it is not known whether it was started.
     */
    async start(
        argv: readonly string[],
        options: ProcessOptions & { stdin?: boolean | undefined } = {},
    ): Promise<Process> {
        const json: wire.ProcessRequest = { argv: [...argv], stdin: options.stdin ?? false };
        if (options.cwd !== undefined) json.cwd = options.cwd;
        if (options.env !== undefined) json.env = options.env;
        if (options.tag !== undefined) json.tag = options.tag;
        if (options.timeoutMs !== undefined) json.timeout = secondsOf("timeoutMs", options.timeoutMs);
        // It has no id by which it could be found, so the request is sent only once.
        const { body } = await this.#connection.perform({ method: "POST", path: "/v1/processes", json });
        return new Process(this.#connection, infoOf(parsed(body)));
    }

    /**
     * Runs a program to its end. If this call fails on the way, as by its signal, the program is ended.
     *
     * @param options - `input` is what it reads from its standard input.
     */
    async run(
        argv: readonly string[],
        options: ProcessOptions & WaitOptions & { input?: string | Uint8Array | undefined } = {},
    ): Promise<Completed> {
        options.signal?.throwIfAborted();
        const { input } = options;
        const process = await this.start(argv, { ...options, stdin: input !== undefined });
        try {
            const [completed] = await Promise.all([process.wait(options), feed(process, input, options.signal)]);
            return completed;
        } catch (error) {
            const signal = AbortSignal.timeout(LIMITS.leaving);
            // It may be gone, or nobody is there who could be told.
            await this.#connection.once({ method: "DELETE", path: pathOf(process.id), signal }).catch(() => {});
            throw error;
        }
    }

    /** Those that run, and the latest that ended, in the order of their start. */
    async list(): Promise<ProcessInfo[]> {
        const { body } = await this.#connection.perform({ method: "GET", path: "/v1/processes", repeatable: true });
        return new Fields<wire.ProcessList>(parsed(body), "the list of processes").list("processes").map(infoOf);
    }
}

async function feed(
    process: Process,
    input: string | Uint8Array | undefined,
    signal: AbortSignal | undefined,
): Promise<void> {
    if (input === undefined) return;
    try {
        await process.write(input, signal === undefined ? {} : { signal });
        await process.closeStdin();
    } catch (error) {
        // A program may end before it has read everything.
        if (!(error instanceof ConflictError)) throw error;
    }
}
