// Names of files are bytes, and mostly UTF-8. Bytes that are not become half surrogates (U+DC80 to U+DCFF), which no
// text has, and come back as what they were: the way of Python's `os.fsdecode`.

import { InvalidRequestError } from "./errors.js";
import { toBase64 } from "./fields.js";

const LOW = 0xdc00;
// With `u` they match halves alone, and none of a whole character.
const HALVES = /[\udc80-\udcff]/u;
const OTHER_HALVES = /[\ud800-\udc7f\udd00-\udfff]/u;

/** A name as text. */
export function nameOf(bytes: Uint8Array): string {
    try {
        return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    } catch {
        let text = "";
        for (let at = 0; at < bytes.length;) {
            const size = sizeAt(bytes, at);
            const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
            text +=
                size > 0 ? decoder.decode(bytes.subarray(at, at + size)) : String.fromCharCode(LOW + (bytes[at] ?? 0));
            at += Math.max(size, 1);
        }
        return text;
    }
}

/** Bytes of the character that begins there; 0 if none does. */
function sizeAt(bytes: Uint8Array, at: number): number {
    const first = bytes[at] ?? 0;
    const size = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
    if (size === 0 || at + size > bytes.length) return 0;
    try {
        new TextDecoder("utf-8", { fatal: true }).decode(bytes.subarray(at, at + size));
        return size;
    } catch {
        return 0;
    }
}

/** The bytes of a name. */
export function bytesOf(name: string): Uint8Array {
    const encoder = new TextEncoder();
    if (!HALVES.test(name)) return encoder.encode(name);
    const parts: number[] = [];
    for (const character of name) {
        const unit = character.charCodeAt(0);
        if (character.length === 1 && unit >= LOW + 0x80 && unit <= LOW + 0xff) parts.push(unit - LOW);
        else parts.push(...encoder.encode(character));
    }
    return Uint8Array.from(parts);
}

/** A path as a query: as text, or in base64 where it is none. */
export function pathQuery(path: string): { path: string } | { path_base64: string } {
    if (OTHER_HALVES.test(path)) throw new InvalidRequestError(`${JSON.stringify(path)} is no path`);
    return HALVES.test(path) ? { path_base64: toBase64(bytesOf(path)) } : { path };
}
