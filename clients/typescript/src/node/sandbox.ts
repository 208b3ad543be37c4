// Sandboxes of programs that run in Node: sessions that they start and find, and copies of their files.

import { stat } from "node:fs/promises";

import { Connection } from "../connection.js";
import { readArchive, writeArchive, writing } from "../files.js";
import { type AtGateway, greet, RemoteSandbox, type Session } from "../sandbox.js";
import type { Copied, Snapshot } from "../values.js";
import { dialUpgrade } from "./line.js";
import * as manage from "./manage.js";
import { type Found, find, forkOf, Guard, type Plan, planOf, type StartOptions } from "./session.js";
import { packed, piecesOf, receiveFile, receiveTree } from "./trees.js";

export type { StartOptions } from "./session.js";

/** Sandboxes that nobody has any more end as those do that are closed. */
const FORGOTTEN = new FinalizationRegistry<Guard>((guard) => guard.giveUp());

/**
 * A computer for an agent: a shell that keeps its state, files, processes and IPython.
 *
 * `await using box = await Sandbox.start()` starts a session, which ends with the block, with this process, and with
 * this object, whatever comes first. Calls may be made side by side. All methods throw `GloveportError` if they fail.
 */
export class Sandbox extends RemoteSandbox {
    /** Whom it may reach. */
    readonly network: manage.Network;
    readonly #program: string | undefined;
    #guard: Guard | undefined;

    /** @internal */
    constructor(connection: Connection, session?: Session, program?: string, atGateway?: AtGateway) {
        super(connection, session, atGateway);
        this.#program = program;
        this.network = new manage.Network(this, program, () => void this.used);
    }

    /**
     * Starts a session, and returns when it can be used. `close`, the end of this process and that of the object end
     * it.
     *
     * A sandbox of this machine that cannot be kept apart from it is told with a warning of the process, unless
     * `isolation: "none"` asks for one.
     *
     * @throws {@link SessionError} with the reason if it cannot be started, {@link ProgramMissingError} if there is no
     * program.
     */
    static async start(options: StartOptions = {}): Promise<Sandbox> {
        const box = await Sandbox.#started(planOf(options), options.signal);
        if (options.isolation === undefined && box.isolation === "none") warn();
        return box;
    }

    static async #started(plan: Plan, signal: AbortSignal | undefined): Promise<Sandbox> {
        signal?.throwIfAborted();
        const guard = new Guard(plan);
        const found = await guard.started(signal);
        try {
            const box = await Sandbox.#of(found, plan.program, signal);
            box.#guard = guard;
            FORGOTTEN.register(box, guard, guard);
            return box;
        } catch (error) {
            guard.giveUp();
            throw error;
        }
    }

    /**
     * A session that runs, by its id. Closing it leaves it running.
     *
     * @param options - `runtime` is what hosts it, all by default; `program` the path of the program `gloveport`.
     * @throws {@link SessionError} if there is none.
     */
    static async attach(
        id: string,
        options: { runtime?: string | undefined; program?: string | undefined; signal?: AbortSignal | undefined } = {},
    ): Promise<Sandbox> {
        return Sandbox.#of(await find(id, options), options.program, options.signal);
    }

    /** See {@link RemoteSandbox.connect}. */
    static override async connect(
        url: string | URL,
        key?: string,
        options: { signal?: AbortSignal | undefined } = {},
    ): Promise<Sandbox> {
        const connection = new Connection(String(url), key, dialUpgrade);
        await greet(connection, options.signal);
        return new Sandbox(connection);
    }

    static async #of(
        { session, url, key }: Found,
        program: string | undefined,
        signal: AbortSignal | undefined,
    ): Promise<Sandbox> {
        const connection = new Connection(url, key, dialUpgrade);
        await greet(connection, signal);
        return new Sandbox(connection, session, program);
    }

    /**
     * The snapshots of a runtime, or of all that can be asked, the newest first.
     *
     * @param options - `program` is the path of the program `gloveport`.
     * @throws {@link SessionError} where the runtime has none.
     */
    static async snapshots(runtime?: string, options: { program?: string | undefined } = {}): Promise<Snapshot[]> {
        return manage.snapshots({ runtime, program: options.program });
    }

    /**
     * Removes a snapshot, which is one of `snapshot` or `snapshots`, or the name of its image.
     *
     * @param options - `runtime` is what hosts it; `program` the path of the program `gloveport`.
     * @throws {@link SessionError} if there is none, or if it is still needed.
     */
    static async removeSnapshot(
        snapshot: string | Snapshot,
        options: { runtime?: string | undefined; program?: string | undefined } = {},
    ): Promise<void> {
        return manage.removeSnapshot(snapshot, { runtime: options.runtime, program: options.program });
    }

    /**
     * Keeps its files as an image, from which `Sandbox.start({ fromSnapshot })` starts others. It stays until
     * `removeSnapshot`.
     *
     * @param name - letters, digits, `_`, `.` and `-`.
     * @throws {@link SessionError} where the runtime cannot do that.
     */
    async snapshot(name?: string): Promise<Snapshot> {
        void this.used;
        if (this.atGateway !== undefined) return this.atGateway.gateway.snapshot(this.atGateway.id, name);
        return manage.snapshot(this, this.#program, name);
    }

    /**
     * Another sandbox with its files and settings as they are now, and no secrets and no processes of it.
     *
     * It is one of your own, which ends with `close`, with this process, and with its object.
     *
     * @param options - `signal` gives it up, and throws its reason.
     * @throws {@link SessionError} where the runtime cannot do that.
     */
    async fork(options: { signal?: AbortSignal | undefined } = {}): Promise<Sandbox> {
        void this.used;
        if (this.atGateway !== undefined) {
            // Its gateway makes sandboxes of this kind.
            return (await this.atGateway.gateway.fork(this.atGateway.id, options)) as Sandbox;
        }
        return Sandbox.#started(forkOf(this, this.#program), options.signal);
    }

    /**
     * The history of its session: the first events from a number on, or those of some kinds.
     *
     * What `gloveport session exec` and others do in it is recorded; what this client does is not.
     *
     * @throws {@link SessionError} if it was reached by its URL.
     */
    async events(options: manage.EventsOptions = {}): Promise<manage.SessionEvent[]> {
        void this.used;
        return manage.events(this, this.#program, options);
    }

    /**
     * Copies a file of this machine to a path, or what is in a directory into a directory; missing ones are made.
     *
     * Modes, times and links of trees are kept; FIFOs, devices and sockets are left out.
     */
    async upload(source: string, target: string, options: { signal?: AbortSignal | undefined } = {}): Promise<Copied> {
        const found = await stat(source);
        const connection = this.used;
        if (found.isDirectory()) return writeArchive(connection, target, () => packed(source), options.signal);
        const settings = { ...options, mode: found.mode & 0o777, parents: true };
        await connection.perform(writing(target, () => piecesOf(source), settings));
        return { files: 1, bytes: found.size };
    }

    /**
     * Copies a file to a path of this machine, or what is in a directory into a directory, which is made.
     *
     * A file is written whole or not at all. Nothing of a tree is written outside of the directory, and no special bits
     * are set.
     *
     * @throws {@link GloveportError} with the code `unsafe_tree` for a tree that leads out of its directory.
     */
    async download(
        source: string,
        target: string,
        options: { signal?: AbortSignal | undefined } = {},
    ): Promise<Copied> {
        const found = await this.files.stat(source);
        if (found.kind === "directory") return receiveTree(readArchive(this.used, source, options.signal), target);
        return receiveFile(this.files.stream(source, options), target, found.mode & 0o777);
    }

    override async close(): Promise<void> {
        await super.close();
        if (this.#guard === undefined) return;
        FORGOTTEN.unregister(this.#guard);
        await this.#guard.end();
    }
}

function warn(): void {
    process.emitWarning(
        "this machine cannot keep the sandbox apart: its commands are you, with all your files " +
            '(isolation: "none" if you want that, `gloveport doctor` for what is missing)',
        { type: "NotIsolatedWarning", code: "GLOVEPORT_NOT_ISOLATED" },
    );
}
