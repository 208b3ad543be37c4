// Checks of what callers give, where JSON would turn it into something else.

import { InvalidRequestError } from "./errors.js";

/** Milliseconds as the seconds of the wire. */
export function secondsOf(name: string, milliseconds: number): number {
    if (!Number.isFinite(milliseconds) || milliseconds <= 0) {
        throw new InvalidRequestError(`\`${name}\` is ${milliseconds}, and must be a number of milliseconds above 0`);
    }
    return milliseconds / 1000;
}

/** A timer of so many milliseconds. One of more than 24 days would fire at once, so it has these. */
export function timerOf(name: string, milliseconds: number, fire: () => void): ReturnType<typeof setTimeout> {
    secondsOf(name, milliseconds);
    return setTimeout(fire, Math.min(milliseconds, 2 ** 31 - 1));
}

/** A signal that fires with another one, and with an error after so many milliseconds, until it is ended. */
export class Deadline {
    readonly #controller = new AbortController();
    readonly #wanted: AbortSignal | undefined;
    readonly #leave = () => this.#controller.abort(this.#wanted?.reason);
    readonly #timer: ReturnType<typeof setTimeout> | undefined;

    /** Throws the reason of the other signal if that has fired. */
    constructor(wanted: AbortSignal | undefined, name: string, milliseconds: number | undefined, late: () => Error) {
        wanted?.throwIfAborted();
        this.#wanted = wanted;
        const fire = () => this.#controller.abort(late());
        this.#timer = milliseconds === undefined ? undefined : timerOf(name, milliseconds, fire);
        wanted?.addEventListener("abort", this.#leave, { once: true });
    }

    get signal(): AbortSignal {
        return this.#controller.signal;
    }

    end(): void {
        clearTimeout(this.#timer);
        this.#wanted?.removeEventListener("abort", this.#leave);
    }
}

/** What becomes of something, or the reason of a signal that fires before. */
export async function orLeft<T>(what: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
    if (signal === undefined) return what;
    let leave = () => {};
    const left = new Promise<never>((_, reject) => {
        leave = () => reject(signal.reason);
    });
    signal.addEventListener("abort", leave, { once: true });
    if (signal.aborted) leave();
    try {
        return await Promise.race([what, left]);
    } finally {
        signal.removeEventListener("abort", leave);
    }
}

/** A number of bytes, or an offset. */
export function countOf(name: string, value: number): number {
    if (value !== Number.POSITIVE_INFINITY && !(Number.isSafeInteger(value) && value >= 0)) {
        throw new InvalidRequestError(`\`${name}\` is ${value}, and must be a whole number from 0 on`);
    }
    return value;
}

/** Permission bits as the wire has them. */
export function modeOf(mode: number): string {
    if (!Number.isInteger(mode) || mode < 0 || mode > 0o7777) {
        throw new InvalidRequestError(`the mode ${mode} has no permission bits, such as 0o644`);
    }
    return mode.toString(8);
}

/** A part of a URL's path. */
export function segment(id: string): string {
    try {
        // Dots alone would be steps of the path, however they are written.
        if (!/^\.{0,2}$/.test(id)) return encodeURIComponent(id);
    } catch {
        // It has half a character.
    }
    throw new InvalidRequestError(`${JSON.stringify(id)} is no id and no name`);
}

/** An id that nobody else makes up. */
export function freshId(bytes: number): string {
    const random = crypto.getRandomValues(new Uint8Array(bytes));
    return `js-${Array.from(random, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}
