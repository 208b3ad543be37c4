// Tools for models, by the Model Context Protocol: those of the sandbox, and those of servers in it.

import { Deadline } from "./checks.js";
import type { Connection, Request } from "./connection.js";
import { NotFoundError, TimedOutError, ToolFailedError, UnexpectedAnswerError } from "./errors.js";
import { EventParser } from "./events.js";
import type { Answer } from "./exchange.js";
import { Fields, foreign, parsed } from "./fields.js";
import { LIMITS } from "./limits.js";
import { ofAnswer } from "./refusals.js";
import type * as wire from "./wire.js";

/** Where the tools of the sandbox are, and those of the servers in it. */
const [SANDBOX, SERVERS] = ["/mcp", "/mcp/proxy"];
/** The revision of the protocol that is spoken. */
const REVISION = "2025-06-18";
/** Pages of a list of tools at most. */
const PAGES = 100;
/** More milliseconds than anybody waits: as long as a timer can take. */
const FOREVER = 2 ** 31 - 1;
/** Milliseconds for a list of tools, and for a call by default. */
const [LISTING, CALLING] = [60_000, 600_000];

/** A program in the sandbox that speaks MCP over its standard input and output. */
export interface McpServer {
    /** Letters, digits, underscores and hyphens. */
    readonly name: string;
    /** The program. */
    readonly command: string;
    /** Its arguments. */
    readonly args?: readonly string[] | undefined;
    /** Variables beside those of the sandbox. */
    readonly env?: Readonly<Record<string, string>> | undefined;
}

/** How an MCP server stands. */
export interface McpStatus {
    /** Its name. */
    readonly name: string;
    /** `idle`, `starting`, `ready` or `failed`. */
    readonly state: string;
    /** Why it failed, with the last that it printed; empty if it did not. */
    readonly reason: string;
}

/** A tool that a model can call. */
export interface Tool {
    /** Its name. */
    readonly name: string;
    /** What it is for. */
    readonly description: string;
    /** The schema of its arguments, as JSON Schema has it. */
    readonly inputSchema: Readonly<Record<string, unknown>>;
    /** The schema of what it returns beside texts. */
    readonly outputSchema?: Readonly<Record<string, unknown>>;
}

/** What is known of a tool's result. */
export interface ToolResultDetails {
    readonly content: readonly Readonly<Record<string, unknown>>[];
    readonly structured: Readonly<Record<string, unknown>> | undefined;
    readonly isError: boolean;
}

/** What a tool returned. */
export class ToolResult implements ToolResultDetails {
    /** Texts, pictures and others, as MCP has them. */
    readonly content: readonly Readonly<Record<string, unknown>>[];
    /** The same as an object, from tools that have an `outputSchema`. */
    readonly structured: Readonly<Record<string, unknown>> | undefined;
    /** Whether the tool failed. */
    readonly isError: boolean;

    /** @internal */
    constructor(details: ToolResultDetails) {
        this.content = details.content;
        this.structured = details.structured;
        this.isError = details.isError;
    }

    /** The texts, one behind the other. */
    get text(): string {
        return this.content
            .filter((each) => each["type"] === "text" && typeof each["text"] === "string")
            .map((each) => each["text"])
            .join("\n");
    }

    /**
     * This result, if the tool did what it was asked for.
     *
     * @throws {@link ToolFailedError} otherwise.
     */
    check(): this {
        if (this.isError) throw new ToolFailedError(this.text);
        return this;
    }
}

/** A message of a server. */
interface Told {
    id: unknown;
    result: Record<string, unknown>;
    error: { message: string };
}

/** What a server says to a request for tools, or to a call of one. */
interface Said {
    tools: unknown[];
    nextCursor: string;
    content: unknown[];
    structuredContent: Record<string, unknown>;
    isError: boolean;
}

interface ToldTool {
    name: string;
    description: string;
    inputSchema: Record<string, unknown>;
    outputSchema: Record<string, unknown>;
}

/** A session of the protocol, for one purpose. */
class Talk {
    readonly #connection: Connection;
    readonly #path: string;
    readonly #signal: AbortSignal;
    #session = "";
    #count = 0;

    private constructor(connection: Connection, path: string, signal: AbortSignal) {
        this.#connection = connection;
        this.#path = path;
        this.#signal = signal;
    }

    /** Begins one, and ends it behind `body`. */
    static async with<T>(
        connection: Connection,
        path: string,
        signal: AbortSignal,
        body: (talk: Talk) => Promise<T>,
    ): Promise<T> {
        const talk = new Talk(connection, path, signal);
        try {
            await talk.#begin();
            return await body(talk);
        } finally {
            await talk.#end();
        }
    }

    async #begin(): Promise<void> {
        const clientInfo = { name: "gloveport-typescript", version: "" };
        const params = { protocolVersion: REVISION, capabilities: {}, clientInfo };
        try {
            await this.ask("initialize", params);
        } catch (error) {
            const isNone = this.#path === SERVERS && error instanceof UnexpectedAnswerError;
            if (!isNone || error.code !== "no_such_path") throw error;
            throw new NotFoundError("the sandbox has no MCP servers", {
                status: 404,
                code: "no_servers",
                remedy: "set some with `setServers`",
            });
        }
        const answer = await this.#posted({ method: "notifications/initialized" });
        await answer.whole();
    }

    /** Asks for something. It is sent once. */
    async ask(method: string, params: object): Promise<Fields<Said>> {
        const id = this.#count++;
        const answer = await this.#posted({ id, method, params });
        try {
            this.#session = answer.headers.get("mcp-session-id") ?? this.#session;
            for await (const told of messagesOf(answer)) {
                if (!told.is("id", id)) continue;
                const failed = told.maybeFields<Told["error"]>("error");
                if (failed !== undefined) throw new ToolFailedError(failed.text("message"));
                return told.fields<Said>("result");
            }
            throw foreign("there is no result in it");
        } finally {
            answer.close();
        }
    }

    #posted(message: object): Promise<Answer> {
        const request: Request = {
            method: "POST",
            path: this.#path,
            headers: {
                Accept: "application/json, text/event-stream",
                "MCP-Protocol-Version": REVISION,
                ...(this.#session === "" ? {} : { "Mcp-Session-Id": this.#session }),
            },
            json: { jsonrpc: "2.0", ...message },
            // The signal says how long it may be silent.
            silence: FOREVER,
            signal: this.#signal,
        };
        return this.#connection.openPatiently(request);
    }

    /** One that does not end so ends later, by itself. */
    async #end(): Promise<void> {
        if (this.#session === "") return;
        const headers = { "Mcp-Session-Id": this.#session };
        try {
            const signal = AbortSignal.timeout(LIMITS.leaving);
            await this.#connection.once({ method: "DELETE", path: this.#path, headers, signal });
        } catch {
            // It has ended, or nobody is there who could be told.
        }
    }
}

/** The messages of an answer, which is one or a stream of them. */
async function* messagesOf(answer: Answer): AsyncGenerator<Fields<Told>, void> {
    if (answer.headers.get("content-type")?.startsWith("text/event-stream") !== true) {
        yield new Fields<Told>(parsed(await answer.whole(FOREVER)), "a message");
        return;
    }
    const parser = new EventParser();
    for (let piece = await answer.read(FOREVER); piece !== undefined; piece = await answer.read(FOREVER)) {
        for (const { data } of parser.feed(piece)) yield data as Fields<unknown> as Fields<Told>;
    }
}

/** How a tool is called. */
export interface CallOptions {
    /** Milliseconds after which the call is given up: ten minutes by default. */
    timeoutMs?: number | undefined;
    /** Gives the call up, and throws its reason. */
    signal?: AbortSignal | undefined;
}

/** Tools that a model can call, by the Model Context Protocol. */
export class Tools {
    readonly #connection: Connection;
    readonly #path: string;

    /** @internal */
    constructor(connection: Connection, path = SANDBOX) {
        this.#connection = connection;
        this.#path = path;
    }

    /** The tools that there are. Their schemas are what a model is given. */
    async list(options: { signal?: AbortSignal | undefined } = {}): Promise<Tool[]> {
        const late = () => new TimedOutError(`the tools were not told in ${LISTING} ms`);
        return this.#talk({ ...options, timeoutMs: LISTING }, late, async (talk) => {
            const tools: Tool[] = [];
            let params: object = {};
            for (let page = 0; page < PAGES; page++) {
                const said = await talk.ask("tools/list", params);
                tools.push(...said.list("tools").map(toolOf));
                const cursor = said.maybeText("nextCursor");
                if (cursor === undefined) return tools;
                params = { cursor };
            }
            throw foreign(`the list of tools has more than ${PAGES} pages`);
        });
    }

    /**
     * Calls a tool, and waits for what it returns. It is called once.
     *
     * @throws {@link ToolFailedError} if there is none of this name, and {@link TimedOutError} after `timeoutMs`. A tool
     * that fails otherwise is none of these errors; see `check` of the result.
     */
    async call(
        name: string,
        args: Readonly<Record<string, unknown>> = {},
        options: CallOptions = {},
    ): Promise<ToolResult> {
        const timeoutMs = options.timeoutMs ?? CALLING;
        const late = () => new TimedOutError(`the tool \`${name}\` has not returned in ${timeoutMs} ms`);
        return this.#talk({ ...options, timeoutMs }, late, async (talk) => {
            const said = await talk.ask("tools/call", { name, arguments: args });
            return new ToolResult({
                content: said.has("content") ? said.list("content").map(contentOf) : [],
                structured: said.has("structuredContent") ? said.record("structuredContent") : undefined,
                isError: said.flag("isError"),
            });
        });
    }

    async #talk<T>(options: CallOptions, late: () => Error, body: (talk: Talk) => Promise<T>): Promise<T> {
        const deadline = new Deadline(options.signal, "timeoutMs", options.timeoutMs, late);
        try {
            return await Talk.with(this.#connection, this.#path, deadline.signal, body);
        } finally {
            deadline.end();
        }
    }
}

function toolOf(value: unknown): Tool {
    const told = new Fields<ToldTool>(value, "a tool");
    return {
        name: told.text("name"),
        description: told.maybeText("description") ?? "",
        inputSchema: told.record("inputSchema"),
        ...(told.has("outputSchema") ? { outputSchema: told.record("outputSchema") } : {}),
    };
}

function contentOf(value: unknown): Readonly<Record<string, unknown>> {
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return { ...value };
    throw foreign("a part of a tool's result is no object");
}

/** MCP servers that run in the sandbox: programs that are set, and started with their first use. */
export class Mcp extends Tools {
    readonly #connection: Connection;

    /** @internal */
    constructor(connection: Connection) {
        super(connection, SERVERS);
        this.#connection = connection;
    }

    /**
     * Sets the servers, in the place of those before. Returns which of them cannot work, as text, mostly empty.
     *
     * Tools of a single server have its names for them; with several they are `SERVER_TOOL`.
     */
    async setServers(servers: readonly McpServer[]): Promise<string> {
        const json: wire.McpServer[] = servers.map(({ name, command, args, env }) => {
            return { name, command, args: [...(args ?? [])], env: { ...env } };
        });
        const request = { method: "POST", path: "/update_mcp_server", json, repeatable: true } as const;
        const told = new Fields<wire.UpdateMcpResponse>(parsed((await this.#connection.perform(request)).body), "it");
        return told.text("router_error_log");
    }

    /** How they stand. */
    async servers(): Promise<McpStatus[]> {
        // That something is not ready is an answer, too.
        const request = { method: "GET", path: "/ready", repeatable: true, accepts: [503] } as const;
        const { status, body } = await this.#connection.perform(request);
        const told = new Fields<wire.Readiness>(parsed(body), "the readiness");
        if (!told.has("parts")) throw ofAnswer(status, body, this.#connection.url);
        return told.has("mcp_servers") ? told.list("mcp_servers").map(statusOf) : [];
    }
}

function statusOf(value: unknown): McpStatus {
    const told = new Fields<wire.McpReadiness>(value, "an MCP server");
    return { name: told.text("name"), state: told.text("state"), reason: told.maybeText("reason") ?? "" };
}
