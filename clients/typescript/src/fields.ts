// Reads JSON of a server, which may be anything: what is not of the type that is described is an error that says so.

import { UnexpectedAnswerError } from "./errors.js";
import { CHECK_THE_URL } from "./refusals.js";

type Name<T> = keyof T & string;

/** The members of an object that should be a `T`, as the wire has it. */
export class Fields<T> {
    readonly #members: Record<string, unknown>;
    readonly #what: string;

    constructor(value: unknown, what: string) {
        if (typeof value !== "object" || value === null || Array.isArray(value)) {
            throw foreign(`${what} is no object`);
        }
        this.#members = value as Record<string, unknown>;
        this.#what = what;
    }

    has(name: Name<T>): boolean {
        return this.#get(name) !== undefined;
    }

    /** Whether it has exactly this value. */
    is(name: Name<T>, value: string | number | boolean): boolean {
        return this.#get(name) === value;
    }

    text(name: Name<T>): string {
        return this.maybeText(name) ?? this.#missing(name, "text");
    }

    maybeText(name: Name<T>): string | undefined {
        const value = this.#get(name);
        return value === undefined || typeof value === "string" ? value : this.#missing(name, "text");
    }

    /** One of several words. */
    word<W extends string>(name: Name<T>, ...words: W[]): W {
        const value = this.text(name);
        return words.find((word) => word === value) ?? this.#missing(name, `one of ${words.join(", ")}`);
    }

    number(name: Name<T>): number {
        return this.maybeNumber(name) ?? this.#missing(name, "number");
    }

    maybeNumber(name: Name<T>): number | undefined {
        const value = this.#get(name);
        if (value === undefined) return undefined;
        return typeof value === "number" && Number.isFinite(value) ? value : this.#missing(name, "number");
    }

    /** A number of bytes, or an offset. */
    count(name: Name<T>): number {
        const value = this.number(name);
        return Number.isSafeInteger(value) && value >= 0 ? value : this.#missing(name, "count");
    }

    maybeCount(name: Name<T>): number | undefined {
        return this.has(name) ? this.count(name) : undefined;
    }

    flag(name: Name<T>): boolean {
        const value = this.#get(name) ?? false;
        return typeof value === "boolean" ? value : this.#missing(name, "true or false");
    }

    list(name: Name<T>): unknown[] {
        const value = this.#get(name);
        return Array.isArray(value) ? value : this.#missing(name, "list");
    }

    texts(name: Name<T>): string[] {
        const values = this.list(name);
        return values.every((value) => typeof value === "string") ? values : this.#missing(name, "list of texts");
    }

    /** All members of an object in it. */
    record(name: Name<T>): Record<string, unknown> {
        const value = this.#get(name);
        const isRecord = typeof value === "object" && value !== null && !Array.isArray(value);
        return isRecord ? (value as Record<string, unknown>) : this.#missing(name, "object");
    }

    fields<U>(name: Name<T>): Fields<U> {
        return new Fields<U>(this.#get(name), `\`${name}\` of ${this.#what}`);
    }

    maybeFields<U>(name: Name<T>): Fields<U> | undefined {
        return this.has(name) ? this.fields<U>(name) : undefined;
    }

    /** Bytes of something that is told as text, or in base64 where it is none. */
    bytes(text: Name<T>, base64: Name<T>): Uint8Array {
        const plain = this.maybeText(text);
        return plain === undefined ? fromBase64(this.text(base64)) : new TextEncoder().encode(plain);
    }

    /** Null means that it is not there. What every object inherits is no member. */
    #get(name: string): unknown {
        return Object.hasOwn(this.#members, name) ? (this.#members[name] ?? undefined) : undefined;
    }

    #missing(name: string, wanted: string): never {
        throw foreign(`${this.#what} has no \`${name}\` (${wanted})`);
    }
}

/** The JSON of an answer, or of a message. */
export function parsed(body: Uint8Array | string): unknown {
    const text = typeof body === "string" ? body : new TextDecoder().decode(body);
    try {
        return JSON.parse(text);
    } catch {
        throw foreign(`it is no JSON: ${JSON.stringify(text.slice(0, 200))}`);
    }
}

/** An answer that is not what it must be. */
export function foreign(why: string): UnexpectedAnswerError {
    return new UnexpectedAnswerError(`the answer is not what it must be: ${why}`, { remedy: CHECK_THE_URL });
}

export function fromBase64(text: string): Uint8Array {
    let binary: string;
    try {
        binary = atob(text);
    } catch {
        throw foreign("a text is no base64");
    }
    const bytes = new Uint8Array(binary.length);
    for (let at = 0; at < binary.length; at++) bytes[at] = binary.charCodeAt(at);
    return bytes;
}

export function toBase64(bytes: Uint8Array): string {
    let binary = "";
    for (const byte of bytes) binary += String.fromCharCode(byte);
    return btoa(binary);
}
