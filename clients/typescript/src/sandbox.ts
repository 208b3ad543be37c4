/// <reference lib="esnext.disposable" preserve="true" />
// A sandbox, as far as it needs nothing of Node.

import * as cells from "./cells.js";
import type { Command, CommandOptions, CommandStream, FollowOptions, RunOptions } from "./commands.js";
import * as commands from "./commands.js";
import { Connection } from "./connection.js";
import { GloveportError, PausedError } from "./errors.js";
import { closed } from "./exchange.js";
import { Fields, parsed } from "./fields.js";
import { Files } from "./files.js";
import { Browser } from "./pages.js";
import { Processes } from "./processes.js";
import * as terminals from "./terminals.js";
import { Mcp, Tools } from "./tools.js";
import type { Cell, CommandStatus, Result, SandboxState, Snapshot } from "./values.js";
import type * as wire from "./wire.js";

/** What is known of a sandbox without asking it. */
export interface Session {
    /** The id of its session, or its own at a gateway; empty if it was reached by its URL. */
    readonly id: string;
    /** What hosts it, such as `local`, `docker` or `gateway`; empty if it was reached by its URL. */
    readonly runtime: string;
    /** The directory in the sandbox that the work is in, if it is known. */
    readonly workspace: string | undefined;
    /** The URLs of its ports by their names. */
    readonly ports: Readonly<Record<string, string>>;
    /** Its labels, such as `gloveport.isolation`, the level that keeps it apart from this machine. */
    readonly labels: Readonly<Record<string, string>>;
}

/** What is known of a sandbox that a gateway has told of. */
export interface AtGateway {
    /** What the gateway knows it by. */
    readonly id: string;
    readonly gateway: {
        snapshot(sandbox: string, name?: string): Promise<Snapshot>;
        fork(sandbox: string, options: { signal?: AbortSignal | undefined }): Promise<RemoteSandbox>;
    };
    /** What ends it, if it is ours. */
    lease?: { end(): Promise<void> };
}

const UNKNOWN: Session = { id: "", runtime: "", workspace: undefined, ports: {}, labels: {} };

/**
 * A computer for an agent: a shell that keeps its state, files, processes and IPython.
 *
 * All methods throw {@link GloveportError} if they fail. Calls may be made side by side.
 */
export class RemoteSandbox implements Session {
    readonly id: string;
    readonly runtime: string;
    readonly workspace: string | undefined;
    readonly ports: Readonly<Record<string, string>>;
    readonly labels: Readonly<Record<string, string>>;
    /** Files of the sandbox. */
    readonly files: Files;
    /** Programs with pipes. */
    readonly processes: Processes;
    /** Its browser, which starts with its first use. */
    readonly browser: Browser;
    /** What it offers to a model as tools: a shell, files, a browser and others. */
    readonly tools: Tools;
    /** MCP servers in it, and their tools. */
    readonly mcp: Mcp;
    /** @internal What it is at a gateway, if one has told of it. */
    readonly atGateway: AtGateway | undefined;
    readonly #connection: Connection;

    /** @internal */
    constructor(connection: Connection, session: Session = UNKNOWN, atGateway?: AtGateway) {
        this.#connection = connection;
        this.atGateway = atGateway;
        this.id = session.id;
        this.runtime = session.runtime;
        this.workspace = session.workspace;
        this.ports = session.ports;
        this.labels = session.labels;
        this.files = new Files(connection);
        this.processes = new Processes(connection);
        this.browser = new Browser(connection);
        this.tools = new Tools(connection);
        this.mcp = new Mcp(connection);
    }

    /**
     * A sandbox by the URL and the key of its server. Closing it leaves it running.
     *
     * @param options - `signal` gives it up, and throws its reason.
     * @throws {@link UnreachableError}, {@link ForbiddenError} or {@link UnexpectedAnswerError} if the URL or the key
     * is wrong, and {@link InvalidRequestError} if they cannot be right.
     */
    static async connect(
        url: string | URL,
        key?: string,
        options: { signal?: AbortSignal | undefined } = {},
    ): Promise<RemoteSandbox> {
        const connection = new Connection(String(url), key);
        await greet(connection, options.signal);
        return new this(connection);
    }

    /** How far it is kept apart from this machine: `none`, `files` or `container`; empty elsewhere. */
    get isolation(): string {
        return this.labels["gloveport.isolation"] ?? (this.runtime === "local" ? "none" : "");
    }

    /**
     * The URL of its server, or of a port by its name.
     *
     * @throws {@link GloveportError} with the code `no_such_port` if it has no such port.
     */
    url(port?: string): string {
        if (port === undefined) return this.#connection.url;
        const found = Object.hasOwn(this.ports, port) ? this.ports[port] : undefined;
        if (found !== undefined) return found;
        const there = Object.keys(this.ports).join(", ") || "none";
        throw new GloveportError(`the sandbox has no port \`${port}\`; it has ${there}`, {
            code: "no_such_port",
            remedy: "name its ports when it is started: `ports: { web: 8000 }`",
        });
    }

    /**
     * Runs a command in the sandbox's shell, whose directory and variables stay for the next one, and waits for its
     * end.
     *
     * With `cwd` or `env` it runs in a shell of its own, next to that one. If this call is left by the signal or by
     * what `onOutput` throws, the command is given up. A connection that breaks is made again, for ten seconds, and the
     * output goes on where it was. The command is never sent a second time if it may have arrived.
     *
     * @throws {@link ConnectionLostError} where nobody can tell whether it ran. A command that fails is none of these
     * errors; see `check` of the result.
     */
    async run(command: string, options: RunOptions = {}): Promise<Result> {
        return this.stream(command, options).drain(options.onOutput);
    }

    /**
     * The same, as an iterator over the output.
     *
     * The command does not wait for its reader. The sandbox keeps the last 256 MiB; what is gone before it was read is
     * counted in `missing` of the result.
     */
    stream(command: string, options: CommandOptions & FollowOptions = {}): CommandStream {
        return commands.stream(this.used, command, options);
    }

    /**
     * Starts a command and does not wait for it. In the sandbox's shell, those that come after it wait for their turn.
     */
    async start(command: string, options: CommandOptions = {}): Promise<Command> {
        return commands.start(this.used, command, options);
    }

    /**
     * A command by its id, such as one that another program has started.
     *
     * @throws {@link NotFoundError} if there is none.
     */
    async command(id: string): Promise<Command> {
        return commands.find(this.used, id);
    }

    /** The commands that run or wait for their turn, and the latest that ended, in the order of their start. */
    async commands(): Promise<CommandStatus[]> {
        return commands.list(this.used);
    }

    /**
     * Runs a cell in an IPython kernel, whose variables stay for the next one. Needs the plugin `jupyter`.
     *
     * If this call is left by the signal or by what `onOutput` throws, the cell is interrupted.
     *
     * @throws {@link ConnectionLostError} if the connection breaks: a cell has no id by which it could be found.
     */
    async runCode(code: string, options: cells.CellOptions = {}): Promise<Cell> {
        return cells.run(this.used, code, options);
    }

    /**
     * Interrupts the cell that runs.
     *
     * @throws {@link NotFoundError} if there is no such kernel.
     */
    async interruptKernel(kernel = "default"): Promise<void> {
        await cells.interrupt(this.used, kernel);
    }

    /** Ends a kernel, and starts another one of its name. */
    async restartKernel(kernel = "default"): Promise<void> {
        await cells.restart(this.used, kernel);
    }

    /**
     * Starts a program on a terminal of its own: a shell, or a command as text or as its words.
     *
     * An `id` of your own finds it again: where one of this id runs, that is the terminal, and nothing is started.
     *
     * @throws {@link ConflictError} if it is another program's, and {@link TooManyError} when 64 run.
     */
    async terminal(
        command?: string | readonly string[],
        options: terminals.TerminalOptions = {},
    ): Promise<terminals.Terminal> {
        return terminals.start(this.used, command, options);
    }

    /** The terminals that run, and the latest that ended. */
    async terminals(): Promise<terminals.TerminalInfo[]> {
        return terminals.list(this.used);
    }

    /** Whether it is paused, and since when nobody has used it. */
    async state(): Promise<SandboxState> {
        const { body } = await this.used.perform({ method: "GET", path: "/v1/sandbox", repeatable: true });
        return stateOf(parsed(body));
    }

    /** Stops all its processes where they are. Until it is resumed, most methods throw {@link PausedError}. */
    async pause(): Promise<void> {
        await this.used.perform({ method: "POST", path: "/v1/sandbox/pause", repeatable: true });
    }

    /** Lets its processes go on. One that is not paused stays as it is. */
    async resume(): Promise<void> {
        await this.used.perform({ method: "POST", path: "/v1/sandbox/resume", repeatable: true });
    }

    /** Ends it if this program has started it, and waits until nothing is left. Twice is not an error. */
    async close(): Promise<void> {
        this.#connection.close();
        await this.atGateway?.lease?.end();
    }

    /** Closes it. */
    async [Symbol.asyncDispose](): Promise<void> {
        await this.close();
    }

    /** @internal */
    protected get used(): Connection {
        if (!this.#connection.isClosed) return this.#connection;
        throw closed();
    }
}

/** Finds out, without patience, whether the address and the key are right. */
export async function greet(connection: Connection, signal: AbortSignal | undefined): Promise<void> {
    try {
        await hello(connection, signal);
    } catch (error) {
        connection.close();
        throw error;
    }
}

/** The same, and the connection stays, whatever comes of it. */
export async function hello(connection: Connection, signal: AbortSignal | undefined): Promise<SandboxState> {
    const { body } = await connection.once({ method: "GET", path: "/v1/sandbox", signal });
    return stateOf(parsed(body));
}

/** Uses it in the cheapest way: what asks about its state is no use. One that is paused is used all the same. */
export async function use(connection: Connection, signal: AbortSignal): Promise<void> {
    try {
        await connection.once({ method: "GET", path: "/v1/terminals", signal });
    } catch (error) {
        if (!(error instanceof PausedError)) throw error;
    }
}

function stateOf(value: unknown): SandboxState {
    const told = new Fields<wire.SandboxStatus>(value, "the state of the sandbox");
    // Servers of before do not tell it.
    const limit = told.maybeNumber("idle_limit_seconds");
    return {
        state: told.word("state", "running", "paused"),
        sinceMs: told.number("since_seconds") * 1000,
        idleMs: told.number("idle_seconds") * 1000,
        idleLimitMs: limit === undefined || limit <= 0 ? undefined : limit * 1000,
    };
}
