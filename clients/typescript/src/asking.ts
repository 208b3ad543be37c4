// What is asked of a gateway, and what it tells, as the wire has them.

import { freshId, secondsOf } from "./checks.js";
import {
    type ApiError,
    ConflictError,
    type ErrorDetails,
    ForbiddenError,
    type GloveportError,
    InvalidRequestError,
    NotFoundError,
    SandboxGoneError,
    ServerFailedError,
    SessionError,
    TooManyError,
    UnexpectedAnswerError,
} from "./errors.js";
import { Fields } from "./fields.js";
import type { GatewayStartOptions, SandboxInfo } from "./gateway.js";
import type * as wire from "./gateway-wire.js";
import type { ServerKind } from "./refusals.js";
import { Secret, type Snapshot } from "./values.js";

/** What hosts a sandbox of a gateway, as far as a client knows. */
export const GATEWAY = "gateway";

/** Milliseconds after which a sandbox ends whose client is gone without a word, unless another time is asked for. */
const ABANDONED = 300_000;

/** Gateways. */
export const KIND: ServerKind = {
    header: "X-API-Key",
    what: "the gateway",
    remedy: "check the URL, and whether the gateway runs: its `/healthz` answers without a key",
    refusal,
};

type ApiErrorClass = new (message: string, details: ErrorDetails & { status?: number }) => ApiError;

const BY_STATUS = new Map<number, ApiErrorClass>([
    [400, InvalidRequestError],
    [401, ForbiddenError],
    [403, ForbiddenError],
    [405, InvalidRequestError],
    [409, ConflictError],
    [413, InvalidRequestError],
    [429, TooManyError],
]);

const REMEDIES = new Map([
    ["unauthorized", "give a key of the gateway, which is not that of one of its sandboxes"],
    ["forbidden", "ask whoever runs the gateway, or check that the URL is that of a gateway"],
    ["quota_exceeded", "end sandboxes that are not needed, or ask whoever runs the gateway for more"],
    ["too_many_requests", "wait a moment, and ask again"],
    ["session_exists", "use `get` for the one that there is, or another `sessionId`"],
    ["unsupported", "`capabilities()` says what the gateway's runtime can do"],
    ["engine_unavailable", "ask again when the engine of the gateway answers"],
    ["unavailable", "ask again in a moment"],
]);

/** The error for an answer of the gateway at a URL that is one. */
function refusal(status: number, body: Uint8Array, where: string): GloveportError {
    const text = new TextDecoder().decode(body);
    const error = errorOf(text);
    const [code, said, id] = [error["code"], error["message"], error["request_id"]];
    if (typeof code !== "string" || typeof said !== "string") {
        const start = JSON.stringify(text.slice(0, 200).trim());
        const message = `the answer of ${where} with status ${status} is none of a gateway of gloveport: ${start}`;
        return new UnexpectedAnswerError(message, { remedy: "check that the URL is that of a gateway" });
    }
    const message = `the gateway at ${where}: ${said}${typeof id === "string" && id !== "" ? ` (request ${id})` : ""}`;
    const remedy = REMEDIES.get(code) ?? "";
    if (code === "start_failed" || code === "unsupported") return new SessionError(message, { remedy, code });
    if (status === 404 && said.includes("no such sandbox")) {
        return new SandboxGoneError(message, { remedy: "`list()` has those that there are" });
    }
    if (status === 404) return new NotFoundError(message, { status, code });
    return new (BY_STATUS.get(status) ?? ServerFailedError)(message, { status, remedy, code });
}

function errorOf(text: string): Record<string, unknown> {
    try {
        const told = JSON.parse(text) as { error?: unknown } | null;
        return typeof told?.error === "object" && told.error !== null ? (told.error as Record<string, unknown>) : {};
    } catch {
        return {};
    }
}

const STATES = ["pending", "running", "paused", "stopped", "failed", "crash_looping", "unknown"] as const;

/** A sandbox, as a gateway tells of it. */
export function infoOf(value: unknown): SandboxInfo {
    const told = new Fields<wire.Sandbox>(value, "a sandbox");
    const ports = told.list("ports").map((each) => new Fields<wire.Port>(each, "a port"));
    const urls = ports.flatMap((port) => (port.has("url") ? [[port.text("name"), port.text("url")] as const] : []));
    const labels = Object.entries(told.record("labels")).map(([name, label]) => [name, String(label)] as const);
    const info: SandboxInfo = {
        id: told.text("id"),
        sessionId: told.text("session_id"),
        state: told.word("state", ...STATES),
        reason: told.maybeText("reason") ?? "",
        url: told.text("url"),
        key: told.maybeText("session_api_key"),
        image: told.maybeText("image"),
        workspace: told.maybeText("workspace"),
        ports: Object.fromEntries(urls),
        labels: Object.fromEntries(labels),
        isKept: told.flag("kept"),
        created: dateOf(told.maybeText("created_at")),
        expires: dateOf(told.maybeText("expires_at")),
        restarts: told.fields<{ count: number }>("restarts").count("count"),
    };
    // What prints it does not show the key.
    return Object.defineProperty(info, "key", { enumerable: false });
}

/** A snapshot, as a gateway lists it. */
export function snapshotOf(value: unknown): Snapshot {
    const told = new Fields<wire.KeptSnapshot>(value, "a snapshot");
    const [sessionId, created] = [told.maybeText("session_id"), dateOf(told.maybeText("created_at"))];
    return {
        image: told.text("image"),
        name: told.text("name"),
        runtime: GATEWAY,
        ...(sessionId === undefined ? {} : { sessionId }),
        ...(created === undefined ? {} : { created }),
    };
}

function dateOf(text: string | undefined): Date | undefined {
    return text === undefined ? undefined : new Date(text);
}

const UNITS = new Map([
    ["", 1],
    ["k", 1024],
    ["m", 1024 ** 2],
    ["g", 1024 ** 3],
    ["t", 1024 ** 4],
]);

/** A size such as `2g`, in bytes. */
function bytesOf(size: string | number): number {
    const [, digits, unit] = /^([\d.]+)\s*([kmgt]?)(?:i?b)?$/i.exec(String(size).trim()) ?? [];
    const bytes = Number(digits) * (UNITS.get((unit ?? "").toLowerCase()) ?? Number.NaN);
    if (bytes >= 1 && bytes <= Number.MAX_SAFE_INTEGER) return Math.floor(bytes);
    throw new InvalidRequestError(`${JSON.stringify(size)} is no size`, { remedy: "give one such as 512m or 2g" });
}

/** Whole seconds, as the wire has them, of milliseconds. */
const wholeSeconds = (name: string, milliseconds: number): number =>
    Math.max(1, Math.round(secondsOf(name, milliseconds)));

/** The body of a request for a sandbox. What is not asked for is not in it, since not every runtime has it. */
function bodyOf(options: GatewayStartOptions): Record<string, unknown> {
    const { image, fromSnapshot, network } = options;
    if (image !== undefined && fromSnapshot !== undefined) {
        throw new InvalidRequestError("a sandbox starts from an image or from a snapshot, and not from both");
    }
    const secrets = Object.entries(options.secrets ?? {}).map(([name, secret]) => {
        if (!(secret instanceof Secret)) return [name, secret] as const;
        if (secret.hosts.length === 0) return [name, secret.reveal()] as const;
        throw new InvalidRequestError(
            `the secret \`${name}\` has hosts, and a gateway starts no sandboxes that use secrets they never have`,
            { remedy: "give it without hosts, or start the sandbox with the program `gloveport`" },
        );
    });
    const hosts = typeof network === "string" ? network.split(",") : network;
    const resources = {
        ...(options.cpus === undefined ? {} : { cpus: options.cpus }),
        ...(options.memory === undefined ? {} : { memory_bytes: bytesOf(options.memory) }),
    };
    const body: Record<string, unknown> = {
        image: image ?? (typeof fromSnapshot === "object" ? fromSnapshot.image : fromSnapshot),
        environment: options.env,
        secrets: Object.fromEntries(secrets),
        resources,
        network: hosts === undefined || network === "full" || network === "none" ? network : { only: hosts },
        ports: Object.entries(options.ports ?? {}).map(([name, port]) => ({ name, port })),
        plugins: options.plugins,
        labels: options.labels,
        ttl_seconds: options.ttlMs === undefined ? undefined : wholeSeconds("ttlMs", options.ttlMs),
        idle_seconds: options.idleMs === undefined ? undefined : wholeSeconds("idleMs", options.idleMs),
        kept: options.kept === true ? undefined : false,
    };
    const isEmpty = (value: unknown) =>
        value === undefined || (typeof value === "object" && value !== null && Object.keys(value).length === 0);
    const given = Object.entries(body).filter(([, value]) => !isEmpty(value));
    return { ...Object.fromEntries(given), ...options.more };
}

/**
 * A sandbox that is to be made. Its session has an id that nobody else has, or a key of the sandbox does: by the one or
 * the other it is found again where the connection broke before the gateway had answered.
 */
export class Start {
    readonly sessionId: string;
    readonly isNamed: boolean;
    readonly body: Record<string, unknown>;
    readonly timeoutMs: number;
    /** Seconds without a use after which it is to end, if it is to end when its client is gone. */
    readonly abandonedAfter: number | undefined;
    /** Milliseconds without a use after which it ends, where the runtime can do that. */
    limitMs: number | undefined;
    readonly #key: string | undefined;

    constructor(options: GatewayStartOptions) {
        this.isNamed = options.sessionId !== undefined;
        this.sessionId = options.sessionId ?? freshId(8);
        this.timeoutMs = options.timeoutMs ?? 300_000;
        secondsOf("timeoutMs", this.timeoutMs);
        // One that somebody else has chosen proves nothing.
        this.#key = this.isNamed && options.more?.["session_api_key"] === undefined ? freshId(32) : undefined;
        const named = this.#key === undefined ? {} : { session_api_key: this.#key };
        this.body = { ...bodyOf(options), session_id: this.sessionId, ...named };
        const { abandonedAfterMs = ABANDONED, kept } = options;
        const isOver = abandonedAfterMs === null || kept === true || "idle_seconds" in this.body;
        this.abandonedAfter = isOver ? undefined : wholeSeconds("abandonedAfterMs", abandonedAfterMs);
    }

    /** Has it end when its client is gone, if the runtime can do that. */
    limit(can: ReadonlySet<string>): void {
        if (this.abandonedAfter === undefined || !can.has("idle_stop")) return;
        this.body["idle_seconds"] = this.abandonedAfter;
        this.limitMs = this.abandonedAfter * 1000;
    }

    /** Whether a sandbox of the session is this one, and not one that was there before. */
    isOwn(info: SandboxInfo): boolean {
        return !this.isNamed || (this.#key !== undefined && info.key === this.#key);
    }
}

/** A fork that cannot be kept, since it would end when nobody uses it for a while, as its source does. */
export function notKept(source: string): InvalidRequestError {
    return new InvalidRequestError(
        `a fork of the sandbox \`${source}\` cannot be kept: like that one it ends when its client is gone`,
        {
            remedy: "start that one with `abandonedAfterMs: null`, or start one with `fromSnapshot` of its `snapshot`",
        },
    );
}

/** It came to its end before it could be used. */
export function ended(info: SandboxInfo): SessionError {
    const why = info.reason === "" ? "nobody says why" : info.reason;
    return new SessionError(`the sandbox \`${info.id}\` was made and did not start; it is \`${info.state}\`: ${why}`, {
        code: "start_failed",
        remedy: "look at its image and its plugins",
    });
}
