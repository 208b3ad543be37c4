// Sandboxes of programs that run in Node: sessions that they start and find, and copies of their files.

import { stat } from "node:fs/promises";

import { Connection } from "../connection.js";
import { readArchive, writeArchive, writing } from "../files.js";
import { greet, RemoteSandbox } from "../sandbox.js";
import type { Copied } from "../values.js";
import { type Found, find, Guard, type StartOptions } from "./session.js";
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
    #guard: Guard | undefined;

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
        options.signal?.throwIfAborted();
        const guard = new Guard(options);
        const found = await guard.started(options.signal);
        try {
            const box = await Sandbox.#of(found, options.signal);
            box.#guard = guard;
            FORGOTTEN.register(box, guard, guard);
            if (options.isolation === undefined && box.isolation === "none") warn();
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
        return Sandbox.#of(await find(id, options), options.signal);
    }

    /** See {@link RemoteSandbox.connect}. */
    static override async connect(
        url: string | URL,
        key?: string,
        options: { signal?: AbortSignal | undefined } = {},
    ): Promise<Sandbox> {
        const connection = new Connection(String(url), key);
        await greet(connection, options.signal);
        return new Sandbox(connection);
    }

    static async #of({ session, url, key }: Found, signal: AbortSignal | undefined): Promise<Sandbox> {
        const connection = new Connection(url, key);
        await greet(connection, signal);
        return new Sandbox(connection, session);
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
