// Server-sent events, out of pieces of bytes that end anywhere.

import { LIMITS } from "./limits.js";
import { Fields, foreign } from "./fields.js";

const LINE = 10;

/** An event, and its data: a JSON object. */
export interface Event {
    readonly name: string;
    readonly data: Fields<Record<string, unknown>>;
}

/** Takes pieces of a stream, and gives the events that they complete. */
export class EventParser {
    #buffer = new Uint8Array(4096);
    #start = 0;
    #end = 0;
    /** Where no end of an event was found before. */
    #searched = 0;

    *feed(piece: Uint8Array): Generator<Event> {
        this.#add(piece);
        for (let end = this.#next(); end >= 0; end = this.#next()) {
            const block = this.#buffer.subarray(this.#start, end);
            this.#start = this.#searched = end + 2;
            const event = parsed(block);
            if (event !== undefined) yield event;
        }
        if (this.#end - this.#start > LIMITS.event) throw foreign(`an event has more than ${LIMITS.event} bytes`);
    }

    /**
     * Makes room by moving what is left, and by twice the size where that is too little, so that no byte is moved
     * often.
     */
    #add(piece: Uint8Array): void {
        const left = this.#end - this.#start;
        if (this.#end + piece.length > this.#buffer.length) {
            const needed = left + piece.length;
            const room = needed > this.#buffer.length ? new Uint8Array(needed * 2) : this.#buffer;
            room.set(this.#buffer.subarray(this.#start, this.#end));
            this.#searched -= this.#start;
            [this.#buffer, this.#start, this.#end] = [room, 0, left];
        }
        this.#buffer.set(piece, this.#end);
        this.#end += piece.length;
    }

    /** Where the next event ends: at an empty line. */
    #next(): number {
        for (let at = this.#searched; ; at++) {
            at = this.#buffer.indexOf(LINE, at);
            if (at < 0 || at + 1 >= this.#end) {
                this.#searched = Math.max(this.#start, this.#end - 1);
                return -1;
            }
            if (this.#buffer[at + 1] === LINE) return at;
        }
    }
}

/** An event, or nothing where the block is a comment, which keeps the connection alive. */
function parsed(block: Uint8Array): Event | undefined {
    let name = "";
    const data: string[] = [];
    for (const line of new TextDecoder().decode(block).split("\n")) {
        const colon = line.indexOf(":");
        const field = colon < 0 ? line : line.slice(0, colon);
        const value = colon < 0 ? "" : line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1);
        if (field === "event") name = value;
        else if (field === "data") data.push(value);
    }
    if (data.length === 0) return undefined;
    const what = `the event \`${name.slice(0, 40)}\``;
    let value: unknown;
    try {
        value = JSON.parse(data.join("\n"));
    } catch {
        throw foreign(`${what} is no JSON`);
    }
    return { name, data: new Fields(value, what) };
}
