/// <reference lib="esnext.disposable" preserve="true" />
// Gateways, as far as they need nothing of Node.

import { ended, GATEWAY, infoOf, KIND, notKept, snapshotOf, Start } from "./asking.js";
import { countOf, Deadline, freshId, segment } from "./checks.js";
import { Connection, type Request, Retry } from "./connection.js";
import {
    ConflictError,
    ConnectionLostError,
    GloveportError,
    InvalidRequestError,
    SandboxGoneError,
    ServerFailedError,
    SessionError,
    TimedOutError,
    UnreachableError,
} from "./errors.js";
import { Fields, parsed } from "./fields.js";
import type * as wire from "./gateway-wire.js";
import { LIMITS } from "./limits.js";
import { Presence } from "./presence.js";
import { type AtGateway, hello, RemoteSandbox, type Session, use } from "./sandbox.js";
import type { SandboxState, Secret, Snapshot } from "./values.js";

export { GATEWAY } from "./asking.js";

/** A sandbox, as its gateway tells of it. */
export interface SandboxInfo {
    /** What the gateway knows it by. */
    readonly id: string;
    /** The session that it is for, which has one sandbox. */
    readonly sessionId: string;
    /** What it does. */
    readonly state: "pending" | "running" | "paused" | "stopped" | "failed" | "crash_looping" | "unknown";
    /** Why it is so; empty where there is nothing to say. */
    readonly reason: string;
    /** The URL of its server. */
    readonly url: string;
    /** The key that its server asks for; with `url` it is what `Sandbox.connect` takes. What prints it does not show it. */
    readonly key: string | undefined;
    /** The image it was made from. */
    readonly image: string | undefined;
    /** The directory in the sandbox that the work is in, if it is known. */
    readonly workspace: string | undefined;
    /** The URLs of its ports by their names. */
    readonly ports: Readonly<Record<string, string>>;
    /** Its labels. */
    readonly labels: Readonly<Record<string, string>>;
    /** False for one that ends with its client. */
    readonly isKept: boolean;
    /** When it was made, if that is known. */
    readonly created: Date | undefined;
    /** When it ends by itself, if it does. */
    readonly expires: Date | undefined;
    /** How often the engine has started it anew. */
    readonly restarts: number;
}

/** What a gateway is, and what its runtime can do. */
export interface GatewayCapabilities {
    /** Its runtime, such as `docker`. */
    readonly runtime: string;
    /** Whose key is used. */
    readonly tenant: string;
    /** The version of the gateway. */
    readonly version: string;
    /** What keeps a sandbox apart from the machine: `none`, `process`, `container` or `virtual-machine`. */
    readonly isolation: string;
    /** What it can do, such as `snapshots`, `pause`, `images` or `time_to_live`. */
    readonly can: ReadonlySet<string>;
}

/** How a sandbox is forked. */
export interface ForkOptions {
    /** Whether it stays when it is closed. */
    kept?: boolean | undefined;
    /** Milliseconds until it must be ready: 300,000 by default. */
    timeoutMs?: number | undefined;
    /** Gets how it stands whenever that changes. */
    onProgress?: ((info: SandboxInfo) => void) | undefined;
    /** Gives it up, and throws its reason. */
    signal?: AbortSignal | undefined;
}

/** What a sandbox is started with. */
export interface GatewayStartOptions extends ForkOptions {
    /** The image of its container, such as `python:3.13`. */
    image?: string | undefined;
    /** A snapshot to begin with, in the place of an image. */
    fromSnapshot?: string | Snapshot | undefined;
    /** A name of your own, of which there is one sandbox. */
    sessionId?: string | undefined;
    /** Variables of its commands. */
    env?: Readonly<Record<string, string>> | undefined;
    /** Variables whose values stay out of logs and lists. */
    secrets?: Readonly<Record<string, string | Secret>> | undefined;
    /** `full`, `none`, or the hosts that it may talk to. */
    network?: string | readonly string[] | undefined;
    /** Its processors at most. */
    cpus?: number | undefined;
    /** Its memory at most: a size such as `2g`, or bytes. */
    memory?: string | number | undefined;
    /** Ports of programs in it, by names. */
    ports?: Readonly<Record<string, number>> | undefined;
    /** What is added to it, such as `jupyter`. */
    plugins?: readonly string[] | undefined;
    /** Labels that lists show. */
    labels?: Readonly<Record<string, string>> | undefined;
    /** Milliseconds after which it ends by itself. */
    ttlMs?: number | undefined;
    /** Milliseconds after which it ends when you have not used it. Nothing else uses it then. */
    idleMs?: number | undefined;
    /**
     * Milliseconds after which it ends when its client is gone without a word: 300,000 by default, `null` for never. It
     * is ignored with `idleMs`, with `kept`, and where the runtime has no `idle_stop` among its capabilities.
     */
    abandonedAfterMs?: number | null | undefined;
    /** Other members of `POST /v1/sandboxes`. */
    more?: Readonly<Record<string, unknown>> | undefined;
}

/** Which sandboxes are listed. */
export interface ListOptions {
    /** Those with all of these labels. */
    labels?: Readonly<Record<string, string>> | undefined;
    /** Those in one of these states. */
    states?: readonly SandboxInfo["state"][] | undefined;
    /** That of this session. */
    sessionId?: string | undefined;
    /** Also those that have ended and are still known. */
    includeEnded?: boolean | undefined;
    /** Sandboxes at most: 1000 by default. */
    most?: number | undefined;
    /** Gives it up, and throws its reason. */
    signal?: AbortSignal | undefined;
}

/** What is called by its id, and what has one. */
type Named = string | SandboxInfo | RemoteSandbox;

/** Milliseconds between two looks at a sandbox that is being made: at first, and at last. */
const [SOON, LATER] = [50, 1000];
/** Sandboxes that are asked for at a time. */
const PAGE = 500;
/** Milliseconds in which a snapshot must be made. */
const KEEPING = 3_600_000;

/** A sandbox of our own at a gateway. */
class Lease {
    readonly #end: () => Promise<void>;
    readonly #id: string;
    readonly #url: string;
    readonly onOver: () => void;
    /** Says that we are there, if the sandbox would end without that. */
    presence: Presence | undefined;
    #ending: Promise<void> | undefined;

    constructor(id: string, url: string, end: () => Promise<void>, onOver: () => void) {
        this.#id = id;
        this.#url = url;
        this.#end = end;
        this.onOver = onOver;
        OURS.set(id, this);
    }

    /** Ends it, and waits until it is gone. Can be called again where that could not be done. */
    end(): Promise<void> {
        // Where nobody can be asked for its end, it ends all the same.
        this.presence?.stop();
        this.#ending ??= this.#ended().catch((error: unknown) => {
            this.#ending = undefined;
            throw error;
        });
        return this.#ending;
    }

    async #ended(): Promise<void> {
        try {
            await this.#end();
        } catch (error) {
            if (!(error instanceof GloveportError)) throw error;
            if (!(error instanceof SandboxGoneError)) {
                throw new SessionError(`the sandbox \`${this.#id}\` could not be ended: ${error.message}`, {
                    code: "not_ended",
                    remedy: error.remedy || `end it with \`delete\` of the gateway at ${this.#url}`,
                    cause: error,
                });
            }
        }
        OURS.delete(this.#id);
        this.onOver();
    }
}

/** Those that are not over, by the ids of their sandboxes. */
const OURS = new Map<string, Lease>();

/** Sandboxes that nobody has any more end as those do that are closed. */
const FORGOTTEN = new FinalizationRegistry<Lease>((lease) => void lease.end().catch(() => {}));

/**
 * A gateway, which starts, finds, keeps and ends sandboxes elsewhere. No program is needed here.
 *
 * All methods throw {@link GloveportError} if they fail: `ForbiddenError` if the key is wrong, `UnreachableError` if
 * nobody answers. Where a sandbox is asked for, it may be called by its id, or by the id of its session.
 */
export abstract class RemoteGateway<Box extends RemoteSandbox = RemoteSandbox> {
    readonly #connection: Connection;
    /** For what is ended after all else is closed. */
    readonly #ending: Connection;
    /** What its runtime can do, as far as it was asked. */
    #can: ReadonlySet<string> | undefined;

    /**
     * The gateway at a URL, with the key that it is sent as `X-API-Key`. Nothing is asked yet.
     *
     * @throws {@link InvalidRequestError} if one of them cannot be right.
     */
    constructor(url: string | URL, options: { key?: string | undefined } = {}) {
        this.#connection = new Connection(String(url), options.key, undefined, KIND);
        this.#ending = new Connection(String(url), options.key, undefined, KIND);
    }

    /** Where it is. */
    get url(): string {
        return this.#connection.url;
    }

    /** @internal A sandbox of this kind, out of what the gateway tells of it. */
    protected abstract placed(info: SandboxInfo, atGateway: AtGateway): Box;

    /** @internal A sandbox is ours from now on; what is returned is called when it is not any more. */
    protected abstract held(id: string): () => void;

    /**
     * Starts a sandbox, and returns when it can be used.
     *
     * It ends with its `await using` block, with `close` and with its object, unless it is `kept`. A program that is
     * killed and a page that is left leave it for `abandonedAfterMs`: it ends when nobody has used it for so long, and as
     * long as its object is open, a timer uses it now and then, which keeps no program running. One that is paused stays.
     * Runtimes without `idle_stop` cannot do that, so give it a `ttlMs` there. A connection that breaks is made again, and
     * the sandbox is started once. A start that fails, takes too long or is given up leaves none.
     *
     * @throws {@link SessionError} with the reason if it cannot be started, {@link TimedOutError} if it takes longer
     * than `timeoutMs`, {@link ConflictError} if there is a sandbox of the session, {@link TooManyError} if a quota is
     * used up.
     */
    async start(options: GatewayStartOptions = {}): Promise<Box> {
        return this.#started(new Start(options), options, undefined);
    }

    /**
     * Another sandbox with the files of one as they are now, and no processes of it. It ends as one of `start`, and has
     * the times of what it was made of.
     *
     * @throws {@link SessionError} where the runtime cannot do that, {@link InvalidRequestError} if it is to be `kept` and
     * would end like its source, which is to be started with `abandonedAfterMs: null` then.
     */
    async fork(sandbox: string | SandboxInfo | RemoteSandbox, options: ForkOptions = {}): Promise<Box> {
        const id = idOf(sandbox);
        if (options.kept === true && OURS.get(id)?.presence !== undefined) throw notKept(id);
        return this.#started(new Start({ timeoutMs: options.timeoutMs }), options, id);
    }

    async #started(start: Start, options: ForkOptions, source: string | undefined): Promise<Box> {
        let info: SandboxInfo | undefined;
        const late = () =>
            new TimedOutError(
                `the sandbox of the session \`${start.sessionId}\` was not ready within ${start.timeoutMs / 1000} s` +
                    (info === undefined ? ": the gateway has not answered" : `: it is \`${info.state}\``),
                { remedy: "wait longer, with `timeoutMs`, or look at the gateway's log" },
            );
        const deadline = new Deadline(options.signal, "timeoutMs", start.timeoutMs, late);
        const { signal } = deadline;
        try {
            info = await (source === undefined
                ? this.#asked(start, signal)
                : this.#called(source, (id) => this.#forked(id, start, signal)));
            info = await this.#running(info, options.onProgress, signal);
            const { id } = info;
            const gateway: AtGateway = { id, gateway: this };
            const box = this.placed(info, gateway);
            const state = await this.#greeted(info, signal);
            if (options.kept !== true) {
                const lease = new Lease(id, this.url, () => this.#deleted(id), this.held(id));
                gateway.lease = lease;
                FORGOTTEN.register(box, lease);
                lease.presence = this.#attended(info, state, start, source);
            }
            // A signal that came meanwhile counts.
            signal.throwIfAborted();
            return box;
        } catch (error) {
            // It may be another gateway by now.
            this.#can = undefined;
            // Where nobody answers, there is nobody who could end it; what is in the way is somebody else's.
            const isNothing = error instanceof UnreachableError || error instanceof ConflictError;
            if (info !== undefined || !isNothing) await this.#swept(start, info?.id);
            throw error;
        } finally {
            deadline.end();
        }
    }

    /** Says at a sandbox that we are there, if it would end without that, and if nobody wants it to end so. */
    #attended(info: SandboxInfo, state: SandboxState, start: Start, source: string | undefined): Presence | undefined {
        // Of what others have started nobody knows here whether they want that it ends when it is idle.
        const isOurs = source !== undefined && OURS.has(source);
        const inherits = source !== undefined && (!isOurs || OURS.get(source)?.presence !== undefined);
        if (start.limitMs === undefined && !inherits) return undefined;
        // Limits of the gateway and of the tenant may be shorter than what was asked for.
        const limitMs = Math.min(
            state.idleLimitMs ?? Number.POSITIVE_INFINITY,
            start.limitMs ?? Number.POSITIVE_INFINITY,
        );
        if (limitMs === Number.POSITIVE_INFINITY) return undefined;
        const connection = new Connection(info.url, info.key);
        return new Presence(limitMs, async (signal) => {
            try {
                const { body } = await this.#ending.once({ method: "GET", path: pathOf(info.id), signal });
                const now = infoOf(parsed(body)).state;
                if (now === "stopped" || now === "failed") return false;
                // Some gateways would wake it.
                if (now === "paused") return true;
            } catch (error) {
                if (error instanceof SandboxGoneError) return false;
                throw error;
            }
            await use(connection, signal);
            return true;
        });
    }

    /** Has it made, once. */
    async #asked(start: Start, signal: AbortSignal): Promise<SandboxInfo> {
        const retry = new Retry();
        // With an id that nobody else has, one that is there is the one that was asked for before.
        const query = start.isNamed ? {} : { if_exists: "return" };
        const request = {
            method: "POST",
            path: "/v1/sandboxes",
            query,
            json: start.body,
            silence: 2 ** 31 - 1,
        } as const;
        for (let hasBroken = false; ; hasBroken = true) {
            try {
                if (start.abandonedAfter !== undefined) {
                    this.#can ??= (await this.#told({ method: "GET", path: "/v1/capabilities", signal })).can;
                    start.limit(this.#can);
                }
                return infoOf(parsed((await this.#connection.perform({ ...request, signal })).body));
            } catch (error) {
                if (error instanceof ConflictError && hasBroken) {
                    const there = await this.#ofSession(start.sessionId, signal);
                    if (there !== undefined && start.isOwn(there)) return there;
                }
                if (!(error instanceof ConnectionLostError)) throw error;
                await retry.wait(error, this.#connection, signal);
            }
        }
    }

    /** Has it made of another one. Nobody asks twice for that. */
    async #forked(source: string, start: Start, signal: AbortSignal): Promise<SandboxInfo> {
        const json = { session_id: start.sessionId };
        const path = pathOf(source, "/fork");
        const { body } = await this.#connection.perform({ method: "POST", path, json, silence: 2 ** 31 - 1, signal });
        return infoOf(parsed(body));
    }

    /** Waits until the engine says that it runs. */
    async #running(
        made: SandboxInfo,
        onProgress: ((info: SandboxInfo) => void) | undefined,
        signal: AbortSignal,
    ): Promise<SandboxInfo> {
        let [info, told, delay] = [made, "", SOON];
        for (;;) {
            const now = `${info.state} ${info.reason}`;
            if (now !== told) onProgress?.(info);
            told = now;
            if (info.state === "running") return info;
            if (info.state !== "pending" && info.state !== "unknown") throw ended(info);
            await this.#connection.sleep(delay, signal);
            delay = Math.min(delay * 2, LATER);
            info = await this.#found(info.id, signal);
        }
    }

    /** Waits until its server answers. */
    async #greeted(info: SandboxInfo, signal: AbortSignal): Promise<SandboxState> {
        const connection = new Connection(info.url, info.key);
        const retry = new Retry();
        try {
            for (let delay = SOON; ; delay = Math.min(delay * 2, LATER)) {
                try {
                    return await hello(connection, signal);
                } catch (error) {
                    if (error instanceof SandboxGoneError) throw await this.#whyGone(info.id, error, signal);
                    if (error instanceof UnreachableError) {
                        await retry.wait(error, connection, signal);
                        continue;
                    }
                    const isEarly = error instanceof ServerFailedError && [502, 503, 504].includes(error.status);
                    if (!isEarly && !(error instanceof ConnectionLostError)) throw error;
                    await connection.sleep(delay, signal);
                }
            }
        } finally {
            connection.close();
        }
    }

    async #whyGone(id: string, gone: GloveportError, signal: AbortSignal): Promise<GloveportError> {
        try {
            return ended(await this.#found(id, signal));
        } catch (error) {
            return error instanceof GloveportError ? error : gone;
        }
    }

    /** Ends what there is of a start that was given up, as far as somebody answers. */
    async #swept(start: Start, id: string | undefined): Promise<void> {
        const limit = AbortSignal.timeout(LIMITS.leaving);
        try {
            if (id !== undefined) {
                await this.#deleted(id, limit);
                return;
            }
            const query = { session_id: start.sessionId };
            const { body } = await this.#ending.once({ method: "GET", path: "/v1/sandboxes", query, signal: limit });
            const there = pageOf(body).every[0];
            if (there !== undefined && start.isOwn(there)) await this.#deleted(there.id, limit);
        } catch {
            // What it was given up for counts.
        }
    }

    /**
     * A sandbox that is there. Closing it leaves it running.
     *
     * @throws {@link SandboxGoneError} if there is none.
     */
    async get(sandbox: string | SandboxInfo, options: { signal?: AbortSignal | undefined } = {}): Promise<Box> {
        const info = await this.#called(idOf(sandbox), (id) => this.#found(id, options.signal));
        const box = this.placed(info, { id: info.id, gateway: this });
        const connection = new Connection(info.url, info.key);
        try {
            await hello(connection, options.signal);
        } finally {
            connection.close();
        }
        return box;
    }

    /** How a sandbox stands. */
    async info(
        sandbox: string | SandboxInfo | RemoteSandbox,
        options: { signal?: AbortSignal | undefined } = {},
    ): Promise<SandboxInfo> {
        return this.#called(idOf(sandbox), (id) => this.#found(id, options.signal));
    }

    /** The sandboxes of the key's tenant, the oldest first. */
    async list(options: ListOptions = {}): Promise<SandboxInfo[]> {
        const most = countOf("most", options.most ?? 1000);
        const wanted: [string, string][] = Object.entries(options.labels ?? {}).map((each) => [
            "label",
            each.join("="),
        ]);
        if (options.states !== undefined && options.states.length > 0) wanted.push(["state", options.states.join(",")]);
        if (options.sessionId !== undefined) wanted.push(["session_id", options.sessionId]);
        if (options.includeEnded === true) wanted.push(["include_ended", "true"]);
        const every: SandboxInfo[] = [];
        let cursor: string | undefined;
        while (every.length < most) {
            const query: [string, string][] = [...wanted, ["limit", String(Math.min(PAGE, most - every.length))]];
            if (cursor !== undefined) query.push(["cursor", cursor]);
            const page = pageOf(
                await this.#ask({ method: "GET", path: "/v1/sandboxes", query, signal: options.signal }),
            );
            every.push(...page.every);
            cursor = page.cursor;
            if (cursor === undefined) break;
        }
        return every;
    }

    /**
     * Ends a sandbox, with all that belongs to it.
     *
     * @throws {@link SandboxGoneError} if there is none.
     */
    async delete(
        sandbox: string | SandboxInfo | RemoteSandbox,
        options: { signal?: AbortSignal | undefined } = {},
    ): Promise<void> {
        await this.#called(idOf(sandbox), (id) => this.#deleted(id, options.signal));
    }

    /**
     * Stops a sandbox at its engine, which needs no processor then. Until it is resumed, what uses it throws
     * {@link PausedError}, unless the gateway wakes it.
     *
     * @throws {@link SessionError} where the runtime cannot do that.
     */
    async pause(sandbox: string | SandboxInfo | RemoteSandbox): Promise<SandboxInfo> {
        return this.#called(idOf(sandbox), async (id) => {
            const pause = async (): Promise<SandboxInfo> =>
                infoOf(parsed(await this.#ask({ method: "POST", path: pathOf(id, "/pause") })));
            const presence = OURS.get(id)?.presence;
            return presence === undefined ? pause() : presence.without(pause);
        });
    }

    /** Lets a sandbox go on. One that is not paused stays as it is. */
    async resume(sandbox: string | SandboxInfo | RemoteSandbox): Promise<SandboxInfo> {
        return this.#called(idOf(sandbox), async (id) =>
            infoOf(parsed(await this.#ask({ method: "POST", path: pathOf(id, "/resume") }))),
        );
    }

    /**
     * Keeps the files of a sandbox as an image, from which `start({ fromSnapshot })` starts others. It stays until
     * `removeSnapshot`.
     *
     * @param name - letters, digits, `_`, `.` and `-`.
     * @throws {@link SessionError} where the runtime cannot do that.
     */
    async snapshot(sandbox: string | SandboxInfo | RemoteSandbox, name?: string): Promise<Snapshot> {
        const given = name ?? freshId(8);
        const { id, sessionId } = await this.info(sandbox);
        // Nobody asks twice for that.
        const request = {
            method: "POST",
            path: pathOf(id, "/snapshot"),
            json: { name: given },
            silence: KEEPING,
        } as const;
        const told = new Fields<wire.Snapshot>(parsed((await this.#connection.perform(request)).body), "the snapshot");
        return { image: told.text("image"), name: given, runtime: GATEWAY, sessionId };
    }

    /** The snapshots of the key's tenant, the newest first. */
    async snapshots(): Promise<Snapshot[]> {
        const told = new Fields<wire.Snapshots>(
            parsed(await this.#ask({ method: "GET", path: "/v1/snapshots" })),
            "it",
        );
        const time = (each: Snapshot) => each.created?.getTime() ?? 0;
        return told
            .list("snapshots")
            .map(snapshotOf)
            .sort((one, other) => time(other) - time(one));
    }

    /**
     * Removes a snapshot, which is one of `snapshot` or `snapshots`, or the name of its image.
     *
     * @throws {@link NotFoundError} if there is none, {@link ConflictError} if it is still needed.
     */
    async removeSnapshot(snapshot: string | Snapshot): Promise<void> {
        const path = `/v1/snapshots/${segment(typeof snapshot === "string" ? snapshot : snapshot.image)}`;
        await this.#connection.perform({ method: "DELETE", path });
    }

    /** What the gateway is, and what its runtime can do. */
    async capabilities(): Promise<GatewayCapabilities> {
        const told = await this.#told({ method: "GET", path: "/v1/capabilities", repeatable: true });
        this.#can = told.can;
        return told;
    }

    async #told(request: Request): Promise<GatewayCapabilities> {
        const { body } = await this.#connection.perform(request);
        const told = new Fields<wire.Capabilities>(parsed(body), "what the gateway can do");
        const can = Object.entries(told.record("capabilities"));
        return {
            runtime: told.text("runtime"),
            tenant: told.text("tenant"),
            version: told.text("gateway_version"),
            isolation: told.fields<wire.CapabilitySet>("capabilities").text("isolation"),
            can: new Set(can.flatMap(([name, value]) => (value === true ? [name] : []))),
        };
    }

    /** A question, or what has the same effect when it arrives twice. */
    async #ask(request: Request): Promise<Uint8Array> {
        return (await this.#connection.perform({ ...request, repeatable: true })).body;
    }

    async #found(id: string, signal: AbortSignal | undefined): Promise<SandboxInfo> {
        return infoOf(parsed(await this.#ask({ method: "GET", path: pathOf(id), signal })));
    }

    async #ofSession(sessionId: string, signal?: AbortSignal): Promise<SandboxInfo | undefined> {
        const query = { session_id: sessionId };
        return pageOf(await this.#ask({ method: "GET", path: "/v1/sandboxes", query, signal })).every[0];
    }

    /** Does something with a sandbox, which is called by its own id or by that of its session. */
    async #called<T>(id: string, act: (id: string) => Promise<T>): Promise<T> {
        try {
            return await act(id);
        } catch (error) {
            if (!(error instanceof SandboxGoneError)) throw error;
            const there = await this.#ofSession(id).catch((other: unknown) => {
                // An id that no session can have.
                if (other instanceof InvalidRequestError) return undefined;
                throw other;
            });
            if (there === undefined) throw error;
            return act(there.id);
        }
    }

    /** Ends it. One that is gone when it is asked for again has been ended by the first time. */
    async #deleted(id: string, signal?: AbortSignal): Promise<void> {
        const retry = new Retry();
        for (let hasBroken = false; ; hasBroken = true) {
            try {
                await this.#ending.perform({ method: "DELETE", path: pathOf(id), signal });
                return;
            } catch (error) {
                if (error instanceof SandboxGoneError && hasBroken) return;
                if (!(error instanceof ConnectionLostError)) throw error;
                await retry.wait(error, this.#ending, signal);
            }
        }
    }
}

const pathOf = (id: string, what = ""): string => `/v1/sandboxes/${segment(id)}${what}`;

function idOf(sandbox: Named): string {
    if (typeof sandbox === "string") return sandbox;
    if (!(sandbox instanceof RemoteSandbox)) return sandbox.id;
    if (sandbox.atGateway !== undefined) return sandbox.atGateway.id;
    throw new InvalidRequestError("the sandbox is none of a gateway");
}

/** A page of a list, and where the next one begins. */
function pageOf(body: Uint8Array): { every: SandboxInfo[]; cursor: string | undefined } {
    const told = new Fields<wire.SandboxList>(parsed(body), "the list of sandboxes");
    return { every: told.list("sandboxes").map(infoOf), cursor: told.maybeText("next_cursor") };
}

/** A sandbox of a gateway as a session. */
export function sessionOf(info: SandboxInfo): Session {
    const { id, workspace, ports, labels } = info;
    return { id, runtime: GATEWAY, workspace, ports, labels };
}
