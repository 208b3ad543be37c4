// What the program does with sessions that run: snapshots, histories, and whom they may reach.

import { countOf, freshId } from "../checks.js";
import { GloveportError, InvalidRequestError, SessionError } from "../errors.js";
import { Fields } from "../fields.js";
import { GATEWAY } from "../gateway.js";
import type { Session } from "../sandbox.js";
import type { Snapshot } from "../values.js";
import { asked, findProgram, firstLines, list, object } from "./program.js";

/** Something in the history of a session: an action, or the observation that came of it. */
export interface SessionEvent {
    /** Its number. */
    readonly id: number;
    /** Local time, as ISO 8601 has it. */
    readonly time: string;
    /** `agent`, `user` or `environment`. */
    readonly source: string;
    /** What was done or seen: `run`, `read`, `write`, `edit`, `message` and others. */
    readonly kind: string;
    /** Whether it is an action. */
    readonly isAction: boolean;
    /** The number of the event that led to it. */
    readonly cause?: number;
    /** For people. */
    readonly message: string;
    /** What an observation shows. */
    readonly content: string;
    /** The arguments of an action, or the rest of an observation. */
    readonly data: Readonly<Record<string, unknown>>;
}

/** Which events of a history are read. */
export interface EventsOptions {
    /** The number of the first one: 0 by default. */
    since?: number | undefined;
    /** Only these actions and observations, such as `run`. */
    kinds?: readonly string[] | undefined;
    /** Events at most: 1000 by default. */
    most?: number | undefined;
    /** Gives it up, and throws its reason. */
    signal?: AbortSignal | undefined;
}

/** A host that a sandbox has asked for. */
export interface AskedHost {
    /** The host and its port. */
    readonly target: string;
    /** Whether it was let through the last time. */
    readonly allowed: boolean;
    /** How often it was asked for. */
    readonly times: number;
    /** When it was asked for the last time. */
    readonly last: Date;
}

/** Whom a sandbox may reach. */
export interface NetworkState {
    /** Hosts, addresses and networks that it may reach. */
    readonly allowed: readonly string[];
    /** Those that it is kept from, whatever else is allowed. */
    readonly denied: readonly string[];
    /** Whom it has asked for lately, the last one at the end. */
    readonly asked: readonly AskedHost[];
}

/** Which program is asked, and of which runtime. */
export interface Of {
    readonly program: string | undefined;
    readonly runtime: string | undefined;
}

function words(runtime: string | undefined, ...more: string[]): string[] {
    return ["session", ...(runtime === undefined || runtime === "" ? [] : ["--runtime", runtime]), ...more];
}

/** The id of a session. Throws `SessionError` if the program cannot know it. */
export function idOf(session: Session): string {
    if (session.runtime === GATEWAY) {
        throw new SessionError(`the sandbox \`${session.id}\` is one of a gateway, whose native API does not do that`, {
            remedy: "start it with the program `gloveport` if you need it",
            code: "unsupported",
        });
    }
    if (session.id !== "") return session.id;
    throw new SessionError("the sandbox was reached by its URL, so it is not known which session it belongs to", {
        remedy: "use `attach` with the id of the session",
    });
}

/** What a program told that is none of ours. */
function told<T>(read: () => T): T {
    try {
        return read();
    } catch (error) {
        if (!(error instanceof GloveportError) || error instanceof SessionError) throw error;
        throw new SessionError(`the program printed something else: ${error.message}`, {
            remedy: "check that it is gloveport's, of the version of this package",
        });
    }
}

/** Keeps the files of a session as an image. */
export async function snapshot(session: Session, program: string | undefined, name?: string): Promise<Snapshot> {
    const given = name ?? freshId(8);
    const { runtime } = session;
    const printed = await asked(findProgram(program), words(runtime, "snapshot", "--json", "--", idOf(session), given));
    return told(() => {
        const found = new Fields<{ image: string }>(object(printed), "the snapshot");
        return { image: found.text("image"), name: given, runtime, sessionId: session.id };
    });
}

/** The runtime and the image of a sandbox that starts from a snapshot, or from none. */
export function startOf(
    options: Readonly<{ runtime?: string | undefined; image?: string | undefined }>,
    from: string | Snapshot | undefined,
): { runtime: string | undefined; image: string | undefined } {
    const { runtime, image } = options;
    if (from === undefined) return { runtime, image };
    if (image !== undefined) {
        throw new InvalidRequestError("a sandbox starts from an image or from a snapshot, and not from both");
    }
    return typeof from === "string"
        ? { runtime, image: from }
        : { runtime: runtime ?? from.runtime, image: from.image };
}

interface ToldSnapshot {
    image: string;
    name: string;
    provider: string;
    session_id: string;
    created: number;
}

/** The snapshots that are kept, the newest first. */
export async function snapshots({ program, runtime }: Of): Promise<Snapshot[]> {
    const printed = await asked(findProgram(program), words(runtime, "snapshots", "ls", "--json"));
    return told(() =>
        list(printed).map((each) => {
            const found = new Fields<ToldSnapshot>(each, "a snapshot");
            const [sessionId, created] = [found.maybeText("session_id"), found.maybeNumber("created")];
            return {
                image: found.text("image"),
                name: found.text("name"),
                runtime: found.text("provider"),
                ...(sessionId === undefined ? {} : { sessionId }),
                ...(created === undefined ? {} : { created: new Date(created * 1000) }),
            };
        }),
    );
}

/** Deletes a snapshot. */
export async function removeSnapshot(from: string | Snapshot, { program, runtime }: Of): Promise<void> {
    const [image, host] = typeof from === "string" ? [from, runtime] : [from.image, runtime ?? from.runtime];
    await asked(findProgram(program), words(host, "snapshots", "rm", "--", image));
}

/** The first events of a history from a number on. */
export async function events(
    session: Session,
    program: string | undefined,
    options: EventsOptions,
): Promise<SessionEvent[]> {
    const since = `--since=${countOf("since", options.since ?? 0)}`;
    const kinds = (options.kinds ?? []).map((kind) => `--kind=${kind}`);
    const most = countOf("most", options.most ?? 1000);
    const chosen = words(session.runtime, "events", "--json", since, ...kinds, "--", idOf(session));
    const lines = await firstLines(findProgram(program), chosen, most, options.signal);
    return told(() => lines.map((line) => eventOf(object(line))));
}

interface ToldEvent {
    id: number;
    timestamp: string;
    source: string;
    action: string;
    observation: string;
    cause: number;
    message: string;
    content: string;
    args: Record<string, unknown>;
    extras: Record<string, unknown>;
}

function eventOf(value: unknown): SessionEvent {
    const found = new Fields<ToldEvent>(value, "an event");
    const isAction = found.has("action");
    const cause = found.maybeNumber("cause");
    const data = isAction ? "args" : "extras";
    return {
        id: found.maybeNumber("id") ?? -1,
        time: found.maybeText("timestamp") ?? "",
        source: found.maybeText("source") ?? "",
        kind: found.text(isAction ? "action" : "observation"),
        isAction,
        ...(cause === undefined ? {} : { cause }),
        message: found.maybeText("message") ?? "",
        content: found.maybeText("content") ?? "",
        data: found.has(data) ? found.record(data) : {},
    };
}

interface ToldNetwork {
    allowed: string[];
    denied: string[];
    asked: unknown[];
}

interface ToldHost {
    target: string;
    allowed: boolean;
    times: number;
    last: number;
}

/** Whom a sandbox of this machine may reach, where a gate stands between it and the network. */
export class Network {
    readonly #session: Session;
    readonly #program: string | undefined;
    readonly #check: () => void;

    /** @internal */
    constructor(session: Session, program: string | undefined, check: () => void) {
        this.#session = session;
        this.#program = program;
        this.#check = check;
    }

    /**
     * Whom it may reach.
     *
     * @throws {@link SessionError} where no gate stands before it.
     */
    async show(): Promise<NetworkState> {
        return this.#ask("show", []);
    }

    /** Lets it reach hosts, addresses and networks, at once: `example.org`, `*.example.org:443`, `10.0.0.0/8`. */
    async allow(...hosts: string[]): Promise<NetworkState> {
        return this.#ask("allow", hosts);
    }

    /** Keeps it from them, at once, whatever else lets it reach them. Connections to them end. */
    async deny(...hosts: string[]): Promise<NetworkState> {
        return this.#ask("deny", hosts);
    }

    /** Whom it has asked for lately, and whether it was let through; the last one at the end. */
    async log(): Promise<readonly AskedHost[]> {
        return (await this.#ask("log", [])).asked;
    }

    async #ask(command: string, hosts: readonly string[]): Promise<NetworkState> {
        this.#check();
        const { runtime } = this.#session;
        const chosen = words(runtime, "network", command, "--json", "--", idOf(this.#session), ...hosts);
        const printed = await asked(findProgram(this.#program), chosen);
        return told(() => {
            const found = new Fields<ToldNetwork>(object(printed), "the network");
            const [allowed, denied] = [found.texts("allowed"), found.texts("denied")];
            return { allowed, denied, asked: found.list("asked").map(hostOf) };
        });
    }
}

function hostOf(value: unknown): AskedHost {
    const found = new Fields<ToldHost>(value, "a host");
    return {
        target: found.text("target"),
        allowed: found.flag("allowed"),
        times: found.count("times"),
        last: new Date(found.number("last") * 1000),
    };
}
