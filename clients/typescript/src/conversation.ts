// The conversation with a terminal, whatever becomes of its connections.
//
// What a terminal writes has offsets, and what is typed into it is counted. So a connection that breaks is made again
// without losing or doubling a byte.

import { freshId, segment } from "./checks.js";
import { type Connection, Retry } from "./connection.js";
import {
    ConflictError,
    ConnectionLostError,
    SandboxClosedError,
    ServerFailedError,
    UnreachableError,
} from "./errors.js";
import { joined } from "./exchange.js";
import { Fields, foreign, parsed } from "./fields.js";
import type { Closed, Line, Message } from "./line.js";

/** Bytes of input in a message, and those that the terminal may not have taken yet, at most. */
export const PIECE = 16 * 1024;
const WINDOW = 64 * 1024;
/** Bytes of output that wait for their reader. What comes behind them is asked for when they have been read. */
export const HELD = 1024 * 1024;
/** Why a server closes a connection: the program has ended, a message was not understood, the output is unreadable. */
const [ENDED, INVALID, UNREADABLE] = [1000, 1008, 4002];

/** How the program of a terminal ended. */
export interface TerminalEnd {
    /** As a shell has it: the exit status, or 128 plus the signal; -1 if it is not known. */
    readonly exitCode: number;
    /** The number of the signal that ended it. */
    readonly signal?: number;
}

/** Messages of the server, all of whose members may be there. */
interface Told {
    type: string;
    input: number;
    offset: number;
    to: number;
    message: string;
    exit_code: number;
    signal: number | null;
}

/** Somebody who waits until something is so. */
interface Waiter {
    readonly isSo: () => boolean;
    readonly resolve: () => void;
    readonly reject: (error: unknown) => void;
}

/** The path of a terminal, or of a part of it. */
export const pathOf = (id: string, what = ""): string => `/v1/terminals/${segment(id)}${what}`;

export class Conversation {
    /** Output that nobody has read. */
    readonly held = new Held();
    /** Bytes of output that the sandbox no longer had. */
    missing = 0;
    /** How the program ended, once that is known. */
    end: TerminalEnd | undefined;
    readonly #connection: Connection;
    readonly #id: string;
    readonly #client = freshId(12);
    readonly #waiters = new Set<Waiter>();
    #isRunning = false;
    #line: Line | undefined;
    #retry = new Retry();
    /** Offset behind the output that is held or was read. */
    #offset = 0;
    /** More output came than is held, so it has to be asked for again. */
    #isBehind = false;
    /** The program has ended, and all its output came. */
    #isWhole = false;
    /** The server has said where the conversation goes on. */
    #isReady = false;
    #isClosed = false;
    /** Input that the terminal has not taken, as far as that is known; and how much it took before that. */
    #typed: Uint8Array<ArrayBuffer> = new Uint8Array();
    #taken = 0;
    /** Where what was sent by this connection ends. */
    #sent = 0;

    constructor(connection: Connection, id: string) {
        this.#connection = connection;
        this.#id = id;
    }

    /** Whether there is something to read, or never will be. */
    hasOutput(): boolean {
        return this.held.size > 0 || this.isOver();
    }

    /** Whether the program has ended, and all its output is here. */
    isOver(): boolean {
        return this.#isWhole;
    }

    hasEnded(): boolean {
        return this.end !== undefined;
    }

    /** Whether so much can be typed now, or never. */
    hasRoom(size: number): boolean {
        return this.hasEnded() || (this.#isReady && this.#typed.length + size <= WINDOW);
    }

    /** Whether all that was typed is on its way, or never will be. */
    hasSent(): boolean {
        return this.hasEnded() || (this.#isReady && this.#sent === this.#taken + this.#typed.length);
    }

    /** Takes messages until something is so. Throws the reason of the signal. */
    async until(isSo: () => boolean, signal: AbortSignal): Promise<void> {
        signal.throwIfAborted();
        if (isSo()) return;
        if (this.#isClosed) throw closed();
        // One who waits for messages meanwhile makes the connection anew.
        if (this.#isBehind && this.held.size === 0) this.#line?.close();
        const { promise, resolve, reject } = deferred();
        const waiter: Waiter = { isSo, resolve, reject };
        const leave = () => reject(signal.reason);
        signal.addEventListener("abort", leave, { once: true });
        this.#waiters.add(waiter);
        this.#line?.hold(true);
        if (!this.#isRunning) void this.#run();
        try {
            await promise;
        } finally {
            signal.removeEventListener("abort", leave);
            this.#waiters.delete(waiter);
            if (this.#waiters.size === 0) this.#line?.hold(false);
        }
    }

    /** Types something for which there is room. If the connection breaks, the next one sends it. */
    type(data: Uint8Array<ArrayBuffer>): void {
        if (this.hasEnded()) {
            throw new ConflictError(`the program on the terminal \`${this.#id}\` has ended`, {
                status: 409,
                code: "not_running",
            });
        }
        if (this.#isClosed) throw closed();
        this.#typed = joined([this.#typed, data], this.#typed.length + data.length);
        this.#flush();
    }

    /** Ends the conversation, and the waiting of all. */
    close(): void {
        this.#isClosed = true;
        this.#hangUp();
        for (const waiter of this.#waiters) waiter.reject(closed());
    }

    /** Goes on while somebody waits. */
    async #run(): Promise<void> {
        this.#isRunning = true;
        try {
            while (this.#waiters.size > 0) {
                await this.#step();
                for (const waiter of this.#waiters) {
                    if (waiter.isSo()) {
                        this.#waiters.delete(waiter);
                        waiter.resolve();
                    }
                }
            }
        } catch (error) {
            this.#hangUp();
            this.#retry = new Retry();
            for (const waiter of this.#waiters) waiter.reject(error);
            this.#waiters.clear();
        } finally {
            this.#isRunning = false;
            this.#line?.hold(false);
        }
    }

    /** Takes the next message. */
    async #step(): Promise<void> {
        if (this.#isBehind && this.held.size === 0) this.#hangUp();
        const message = await this.#received();
        if (this.#isClosed) throw closed();
        if (message === undefined) return;
        if (typeof message === "string") this.#note(new Fields<Told>(parsed(message), "a message"));
        else if (message instanceof Uint8Array) this.#take(message);
        else await this.#lost(message);
        this.#flush();
    }

    /** The next message; nothing if there is no connection yet. */
    async #received(): Promise<Message | undefined> {
        try {
            this.#line ??= await this.#dialed();
            return await this.#line.receive();
        } catch (error) {
            const isPassing =
                error instanceof UnreachableError ||
                error instanceof ConnectionLostError ||
                error instanceof ConflictError;
            if (!isPassing) throw error;
            this.#hangUp();
            await this.#retry.wait(error, this.#connection, undefined);
            return undefined;
        }
    }

    async #dialed(): Promise<Line> {
        const path = pathOf(this.#id, "/attach");
        const query = { offset: String(this.#offset), client: this.#client };
        let line: Line;
        try {
            line = await this.#connection.dial(path, query);
        } catch (error) {
            // A browser does not tell why. Another request does.
            if (error instanceof UnreachableError) {
                await this.#connection.once({ method: "GET", path: pathOf(this.#id) });
            }
            throw error;
        }
        if (this.#isClosed) {
            line.close();
            throw closed();
        }
        line.hold(this.#waiters.size > 0);
        this.#isBehind = false;
        this.#retry.opened();
        return line;
    }

    async #lost({ status, reason }: Closed): Promise<void> {
        const isWanted = this.#isBehind && this.held.size === 0;
        this.#hangUp();
        if (isWanted || (status === ENDED && this.hasEnded())) return;
        const error = new ConnectionLostError(`the connection to the terminal ended: ${reason || status}`);
        // It would end so again.
        if (status === INVALID || status === UNREADABLE) throw error;
        await this.#retry.wait(error, this.#connection, undefined);
    }

    #hangUp(): void {
        this.#line?.close();
        this.#line = undefined;
        this.#isReady = false;
    }

    #flush(): void {
        while (this.#isReady) {
            const at = this.#sent - this.#taken;
            const piece = this.#typed.slice(at, at + PIECE);
            if (piece.length === 0) return;
            this.#sent += piece.length;
            this.#line?.send(piece);
        }
    }

    #take(output: Uint8Array): void {
        if (this.#isBehind || this.held.size >= HELD) {
            this.#isBehind = true;
            return;
        }
        this.held.add(output);
        this.#offset += output.length;
        this.#retry.progressed();
    }

    #note(told: Fields<Told>): void {
        switch (told.text("type")) {
            case "start":
                this.#acknowledge(told.count("input"));
                this.#sent = this.#taken;
                this.#isReady = true;
                break;
            case "input":
                this.#acknowledge(told.count("offset"));
                break;
            case "gap": {
                const to = told.count("to");
                if (this.#isBehind || to <= this.#offset) break;
                this.missing += to - this.#offset;
                this.#offset = to;
                break;
            }
            case "exit": {
                const signal = told.maybeCount("signal");
                this.end = { exitCode: told.number("exit_code"), ...(signal === undefined ? {} : { signal }) };
                this.#isWhole = !this.#isBehind;
                break;
            }
            case "error":
                throw new ServerFailedError(told.text("message"), { code: "terminal_failed" });
            default:
        }
    }

    /** The terminal has taken so much of what was typed. */
    #acknowledge(taken: number): void {
        const fresh = taken - this.#taken;
        if (fresh < 0 || fresh > this.#typed.length) {
            throw foreign(`${taken} bytes of input were taken, of ${this.#taken + this.#typed.length}`);
        }
        this.#typed = this.#typed.slice(fresh);
        this.#taken = taken;
    }
}

function closed(): SandboxClosedError {
    return new SandboxClosedError("the terminal is closed", { remedy: "start another one, or one with the same id" });
}

function deferred(): { promise: Promise<void>; resolve: () => void; reject: (error: unknown) => void } {
    let resolve: () => void = () => {};
    let reject: (error: unknown) => void = () => {};
    const promise = new Promise<void>((resolved, rejected) => {
        resolve = resolved;
        reject = rejected;
    });
    return { promise, resolve, reject };
}

/** Bytes that come at the end, and are taken from the beginning. */
export class Held {
    #buffer = new Uint8Array(1024);
    #start = 0;
    #end = 0;

    get size(): number {
        return this.#end - this.#start;
    }

    add(data: Uint8Array): void {
        if (this.#end + data.length > this.#buffer.length) {
            const needed = this.size + data.length;
            // Twice the size, so that no byte is moved often.
            const room = needed * 2 > this.#buffer.length ? new Uint8Array(needed * 2) : this.#buffer;
            room.set(this.#buffer.subarray(this.#start, this.#end));
            [this.#buffer, this.#start, this.#end] = [room, 0, this.size];
        }
        this.#buffer.set(data, this.#end);
        this.#end += data.length;
    }

    /** The first bytes, so many at most. */
    take(most: number): Uint8Array<ArrayBuffer> {
        const data = this.#buffer.slice(this.#start, Math.min(this.#end, this.#start + most));
        this.#start += data.length;
        return data;
    }

    /** Where some bytes begin, from a place on; -1 if they are not there. */
    find(marker: Uint8Array, from: number): number {
        const held = this.#buffer.subarray(this.#start, this.#end);
        const first = marker[0] ?? 0;
        for (let at = held.indexOf(first, from); at >= 0; at = held.indexOf(first, at + 1)) {
            if (at + marker.length > held.length) return -1;
            if (marker.every((byte, index) => held[at + index] === byte)) return at;
        }
        return -1;
    }
}
