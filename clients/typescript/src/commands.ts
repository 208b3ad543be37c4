/// <reference lib="esnext.disposable" preserve="true" />
// Commands of a sandbox.

import { countOf, Deadline, freshId, secondsOf } from "./checks.js";
import { KEPT } from "./collector.js";
import type { Connection, Request } from "./connection.js";
import { ConnectionLostError, GloveportError, NotFoundError, StillRunningError } from "./errors.js";
import { Fields, parsed } from "./fields.js";
import { type End, follow, maybeRun, pathOf, Progress, reasonOf, resultOf } from "./following.js";
import { LIMITS } from "./limits.js";
import { type CommandStatus, Output, type Result } from "./values.js";
import type * as wire from "./wire.js";

/** How a command is run. */
export interface CommandOptions {
    /** Directory to run in; with it the command runs in a shell of its own. */
    cwd?: string | undefined;
    /** Variables; with them the command runs in a shell of its own. */
    env?: Readonly<Record<string, string>> | undefined;
    /**
     * Milliseconds, counted from the request, after which the command is given up; its `reason` is then `timed_out`.
     */
    timeoutMs?: number | undefined;
}

/** How a command is followed. */
export interface FollowOptions {
    /** Gives the call up, and throws its reason. */
    signal?: AbortSignal | undefined;
    /** Bytes of output that the result has at most, the last ones: 16 MiB by default. */
    keep?: number | undefined;
}

/** How a command is run, and its output told as it comes. */
export interface RunOptions extends CommandOptions, FollowOptions {
    /** Gets the output as it comes, in pieces of any size. If it throws, the command is given up. */
    onOutput?: ((text: string) => void) | undefined;
}

/** A command that is to be run. */
interface Spec {
    readonly id: string;
    readonly body: wire.ExecRequest;
}

function specOf(command: string, options: CommandOptions): Spec {
    const id = freshId(12);
    const body: wire.ExecRequest = { command, id };
    if (options.timeoutMs !== undefined) body.timeout = secondsOf("timeoutMs", options.timeoutMs);
    const env = options.env ?? {};
    if (options.cwd !== undefined || Object.keys(env).length > 0) {
        // A shell of its own, next to the session's, which keeps its directory and variables.
        body.session = "new";
        body.env = env;
        body.cwd = options.cwd ?? null;
    }
    return { id, body };
}

function statusOf(value: unknown): CommandStatus {
    const told = new Fields<wire.ExecStatus>(value, "a command");
    const exitCode = told.maybeNumber("exit_code");
    const reason = told.maybeText("reason");
    return {
        id: told.text("id"),
        command: told.text("command"),
        state: told.word("state", "queued", "running", "ended"),
        waitingForInput: told.flag("waiting_for_input"),
        hidesInput: told.flag("hides_input"),
        ...(exitCode === undefined ? {} : { exitCode }),
        ...(reason === undefined ? {} : { reason: reasonOf(reason) }),
    };
}

/** Gives a command up, without patience: for who leaves. */
async function giveUp(connection: Connection, id: string): Promise<void> {
    try {
        const signal = AbortSignal.timeout(LIMITS.leaving);
        await connection.once({ method: "DELETE", path: pathOf(id), signal });
    } catch {
        // It has ended, or nobody is there who could be told.
    }
}

/** Runs a command in the sandbox's shell, and streams its output. */
export function stream(
    connection: Connection,
    command: string,
    options: CommandOptions & FollowOptions,
): CommandStream {
    const spec = specOf(command, options);
    const progress = new Progress(0, options.keep ?? KEPT);
    const first: Request = { method: "POST", path: "/v1/exec", json: spec.body, signal: options.signal };
    return new CommandStream(connection, spec.id, command, progress, options.signal, first);
}

/** Starts a command, and does not wait for it. */
export async function start(connection: Connection, command: string, options: CommandOptions): Promise<Command> {
    const spec = specOf(command, options);
    try {
        await connection.perform({ method: "POST", path: "/v1/exec", query: { follow: "false" }, json: spec.body });
    } catch (error) {
        if (!(error instanceof ConnectionLostError)) throw error;
        try {
            await connection.perform({ method: "GET", path: pathOf(spec.id), repeatable: true });
        } catch (second) {
            throw second instanceof NotFoundError ? maybeRun(spec.id, second) : second;
        }
    }
    return new Command(connection, spec.id, command);
}

/** A command by its id. */
export async function find(connection: Connection, id: string): Promise<Command> {
    const { command } = await status(connection, id);
    return new Command(connection, id, command);
}

/** All commands that the sandbox knows, in the order of their start. */
export async function list(connection: Connection): Promise<CommandStatus[]> {
    const { body } = await connection.perform({ method: "GET", path: "/v1/exec", repeatable: true });
    return new Fields<wire.ExecList>(parsed(body), "the list of commands").list("execs").map(statusOf);
}

async function status(connection: Connection, id: string): Promise<CommandStatus> {
    const { body } = await connection.perform({ method: "GET", path: pathOf(id), repeatable: true });
    return statusOf(parsed(body));
}

/**
 * Output of a command as it comes: text, in pieces of any size.
 *
 * A loop over it that is left before the end gives the command up; so do `close` and the end of an `await using` block.
 * `result` is there behind the last piece.
 */
export class CommandStream implements AsyncIterableIterator<string, undefined> {
    /** The id of the command. */
    readonly id: string;
    readonly #command: string;
    readonly #connection: Connection;
    readonly #progress: Progress;
    readonly #signal: AbortSignal | undefined;
    readonly #leaving = new AbortController();
    readonly #pieces: AsyncGenerator<string, End>;
    #isOver = false;
    #result: Result | undefined;

    /** @internal */
    constructor(
        connection: Connection,
        id: string,
        command: string,
        progress: Progress,
        signal: AbortSignal | undefined,
        first: Request,
    ) {
        this.id = id;
        this.#command = command;
        this.#connection = connection;
        this.#progress = progress;
        this.#signal = signal;
        signal?.addEventListener("abort", this.#leave, { once: true });
        const leaving = this.#leaving.signal;
        this.#pieces = follow(connection, id, progress, leaving, { ...first, signal: leaving });
    }

    /** The stream itself. */
    [Symbol.asyncIterator](): this {
        return this;
    }

    /** The next piece of output. */
    async next(): Promise<IteratorResult<string, undefined>> {
        if (this.#isOver) return { done: true, value: undefined };
        try {
            this.#signal?.throwIfAborted();
            const { done, value } = await this.#pieces.next();
            if (done !== true) return { done: false, value };
            this.#result = resultOf(this.id, this.#command, value, this.#progress);
            this.#end();
            return { done: true, value: undefined };
        } catch (error) {
            // The one that closed it while this waited has given the command up.
            if (this.#isOver) return { done: true, value: undefined };
            if (error instanceof GloveportError && !this.#leaving.signal.aborted) this.#end();
            else await this.close();
            throw error;
        }
    }

    /** Gives the command up: what a loop calls that is left. */
    async return(): Promise<IteratorResult<string, undefined>> {
        await this.close();
        return { done: true, value: undefined };
    }

    /**
     * How the command ended.
     *
     * @throws {@link GloveportError} with the code `not_ended` before that is known, or if it was given up.
     */
    get result(): Result {
        if (this.#result !== undefined) return this.#result;
        throw new GloveportError("the command has not ended, or was given up", { code: "not_ended" });
    }

    /** Gives the command up if it has not ended. Twice is not an error. */
    async close(): Promise<void> {
        if (this.#isOver) return;
        this.#end();
        this.#leave();
        await this.#pieces.return(undefined as never);
        await giveUp(this.#connection, this.id);
    }

    /**
     * Waits for the end, and returns the result.
     *
     * @param onOutput - gets the output as it comes.
     */
    async drain(onOutput?: (text: string) => void): Promise<Result> {
        for await (const text of this) onOutput?.(text);
        return this.result;
    }

    /** Closes it. */
    async [Symbol.asyncDispose](): Promise<void> {
        await this.close();
    }

    readonly #leave = (): void => this.#leaving.abort(this.#signal?.reason);

    #end(): void {
        this.#isOver = true;
        this.#signal?.removeEventListener("abort", this.#leave);
    }
}

/** A command that was started, and goes on whether or not somebody follows it. */
export class Command {
    /** Its id, by which `sandbox.command(id)` finds it again. */
    readonly id: string;
    /** Its text. */
    readonly command: string;
    readonly #connection: Connection;

    /** @internal */
    constructor(connection: Connection, id: string, command: string) {
        this.#connection = connection;
        this.id = id;
        this.command = command;
    }

    /**
     * How it stands.
     *
     * @throws {@link NotFoundError} when the sandbox has forgotten it, which keeps the last 256 that ended.
     */
    status(): Promise<CommandStatus> {
        return status(this.#connection, this.id);
    }

    /**
     * The output from an offset (bytes; 0 by default) that there is now, up to `most` bytes: 1 MiB by default, and no
     * more.
     *
     * @throws {@link OutputGoneError} if that part is not kept any more.
     */
    async output(options: { from?: number | undefined; most?: number | undefined } = {}): Promise<Output> {
        const from = countOf("from", options.from ?? 0);
        const most = countOf("most", options.most ?? 1024 * 1024);
        const query = { offset: String(from), max: String(most) };
        const request: Request = { method: "GET", path: pathOf(this.id, "/output"), query, repeatable: true };
        let answer = await this.#connection.perform(request);
        let state = answer.headers.get("x-output-state");
        if (state === null && answer.body.length < most) {
            // A page of another origin may not see the headers. What is there after the end is all.
            ({ state } = await this.status());
            if (state === "ended") answer = await this.#connection.perform(request);
        }
        const offset = headerCount(answer.headers, "x-output-offset", from);
        const next = headerCount(answer.headers, "x-output-next", offset + answer.body.length);
        return new Output(offset, answer.body, next, state === "ended" && answer.body.length < most);
    }

    /**
     * The output from an offset (bytes; 0 by default) as it comes, until the command ends. Leaving it does not end the
     * command.
     *
     * @param options - `signal` gives it up, and throws its reason.
     */
    async *follow(
        options: { from?: number | undefined; signal?: AbortSignal | undefined } = {},
    ): AsyncGenerator<string, void> {
        const progress = new Progress(countOf("from", options.from ?? 0), 0);
        yield* follow(this.#connection, this.id, progress, options.signal);
    }

    /**
     * Waits for its end.
     *
     * @param options - `timeoutMs` is how many milliseconds this waits; `keep` how many of the last bytes of output the
     * result has (16 MiB by default); `onOutput` gets the output as it comes; `signal` gives the waiting up, and throws
     * its reason.
     * @throws {@link StillRunningError} after `timeoutMs`; the command goes on.
     */
    async wait(
        options: FollowOptions & {
            timeoutMs?: number | undefined;
            onOutput?: ((text: string) => void) | undefined;
        } = {},
    ): Promise<Result> {
        const progress = new Progress(0, options.keep ?? KEPT);
        const late = () => new StillRunningError(`the command \`${this.id}\` has not ended in time, and goes on`);
        const deadline = new Deadline(options.signal, "timeoutMs", options.timeoutMs, late);
        const pieces = follow(this.#connection, this.id, progress, deadline.signal);
        try {
            for (;;) {
                const { done, value } = await pieces.next();
                if (done === true) return resultOf(this.id, this.command, value, progress);
                options.onOutput?.(value);
            }
        } finally {
            deadline.end();
            await pieces.return(undefined as never);
        }
    }

    /**
     * Types a text and Enter. A key such as `C-d` is sent without Enter; `Up`, `Escape` and `F1` press that key.
     *
     * @throws {@link ConflictError} if the command does not run.
     */
    async sendInput(text: string): Promise<void> {
        await this.#connection.perform({ method: "POST", path: pathOf(this.id, "/input"), json: { text } });
    }

    /**
     * Interrupts it as C-c does.
     *
     * @throws {@link ConflictError} if it does not run.
     */
    async interrupt(): Promise<void> {
        await this.#connection.perform({ method: "POST", path: pathOf(this.id, "/interrupt") });
    }

    /** Gives it up: one that waits for its turn never begins; one that runs is interrupted, and quit 2 s later. */
    async kill(): Promise<void> {
        await this.#connection.perform({ method: "DELETE", path: pathOf(this.id), repeatable: true });
    }
}

function headerCount(headers: Headers, name: string, otherwise: number): number {
    const value = headers.get(name);
    return value !== null && /^\d{1,15}$/.test(value) ? Number(value) : otherwise;
}
