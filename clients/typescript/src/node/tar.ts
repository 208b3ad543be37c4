// The format of tar streams: a block of 512 bytes for each file, then its content, with zeros up to the next block.
//
// What a block has no room for (long names, large numbers) is in an entry of its own in front of it, with lines such as
// `30 path=…`: the format of POSIX, "pax". Those of GNU for long names are read, too.

import { GloveportError } from "../errors.js";

export const BLOCK = 512;
/** Most bytes of an entry that describes the next one. */
const MOST_DESCRIPTION = 1024 * 1024;
/** The largest number that eleven octal digits have. */
const MOST_OCTAL = 0o77777777777;

/** What an entry is; `other` is what has no place in a tree that is copied. */
export type EntryKind = "file" | "directory" | "symlink" | "hardlink" | "other";

/** A file of an archive, without its content. Names are bytes. */
export interface Entry {
    readonly kind: EntryKind;
    readonly name: Buffer;
    /** What a link leads to. */
    readonly target?: Buffer;
    /** Bytes of content. */
    readonly size: number;
    /** Permission bits. */
    readonly mode: number;
    /** Seconds since 1970. */
    readonly modified: number;
}

const FLAGS: Record<Exclude<EntryKind, "other">, string> = { file: "0", hardlink: "1", symlink: "2", directory: "5" };

/** Reads exactly so many bytes of an archive. */
export type ReadExactly = (size: number) => Promise<Buffer>;

export function broken(why: string): GloveportError {
    return new GloveportError(`the tree is not unpacked to its end: ${why}`, {
        code: "unsafe_tree",
        remedy: "leave out what leads out of it, or pack it with `tar` and download that",
    });
}

/** The blocks that begin an entry. */
export function headerOf(entry: Entry & { kind: Exclude<EntryKind, "other"> }): Uint8Array {
    const target = entry.target ?? Buffer.alloc(0);
    const lines: Buffer[] = [];
    if (entry.name.length > 100) lines.push(line("path", entry.name));
    if (target.length > 100) lines.push(line("linkpath", target));
    if (entry.size > MOST_OCTAL) lines.push(line("size", Buffer.from(String(entry.size))));
    if (entry.modified < 0 || entry.modified > MOST_OCTAL) {
        lines.push(line("mtime", Buffer.from(String(entry.modified))));
    }
    const own = block(FLAGS[entry.kind], entry.name, target, entry.size, entry.mode, entry.modified);
    if (lines.length === 0) return own;
    const more = Buffer.concat(lines);
    const head = block("x", Buffer.from("description"), Buffer.alloc(0), more.length, 0o644, 0);
    return Buffer.concat([head, more, Buffer.alloc(padding(more.length)), own]);
}

/** Zeros behind a content. */
export function padding(size: number): number {
    return (BLOCK - (size % BLOCK)) % BLOCK;
}

/** A line of a description, which begins with its own length. */
function line(name: string, value: Buffer): Buffer {
    const rest = Buffer.concat([Buffer.from(` ${name}=`), value, Buffer.from("\n")]);
    let length = rest.length;
    while (String(length).length + rest.length !== length) length = String(length).length + rest.length;
    return Buffer.concat([Buffer.from(String(length)), rest]);
}

function block(flag: string, name: Buffer, target: Buffer, size: number, mode: number, modified: number): Buffer {
    const header = Buffer.alloc(BLOCK);
    const octal = (value: number, at: number, digits: number) => {
        const fitting = value >= 0 && value < 8 ** digits ? value : 0;
        header.write(`${fitting.toString(8).padStart(digits, "0")}\0`, at, "latin1");
    };
    name.copy(header, 0, 0, 100);
    octal(mode, 100, 7);
    octal(0, 108, 7);
    octal(0, 116, 7);
    octal(size, 124, 11);
    octal(modified, 136, 11);
    header.write("        ", 148, "latin1");
    header.write(flag, 156, "latin1");
    target.copy(header, 157, 0, 100);
    header.write("ustar\x0000", 257, "latin1");
    header.write(`${sum(header).toString(8).padStart(6, "0")}\0 `, 148, "latin1");
    return header;
}

const sum = (header: Buffer): number => header.reduce((total, byte) => total + byte, 0);

/** The next entry; nothing at the end. */
export async function readEntry(read: ReadExactly): Promise<Entry | undefined> {
    const told = new Map<string, Buffer>();
    for (;;) {
        const header = await read(BLOCK);
        if (header.every((byte) => byte === 0)) return undefined;
        checkSum(header);
        const flag = header.toString("latin1", 156, 157);
        const size = number(header, 124, 136);
        if (size < 0) throw broken("a size is below zero");
        if (flag === "x" || flag === "g" || flag === "L" || flag === "K") {
            if (size > MOST_DESCRIPTION) throw broken(`a description has ${size} bytes`);
            const text = (await read(size + padding(size))).subarray(0, size);
            if (flag === "x") describe(told, text);
            if (flag === "L") told.set("path", untilZero(text));
            if (flag === "K") told.set("linkpath", untilZero(text));
            continue;
        }
        return entryOf(header, flag, size, told);
    }
}

function entryOf(header: Buffer, flag: string, size: number, told: ReadonlyMap<string, Buffer>): Entry {
    const prefix =
        header.toString("latin1", 257, 263) === "ustar\0" ? untilZero(header.subarray(345, 500)) : Buffer.alloc(0);
    const own = untilZero(header.subarray(0, 100));
    const whole = prefix.length > 0 ? Buffer.concat([prefix, Buffer.from("/"), own]) : own;
    const kinds: Record<string, EntryKind> = {
        "0": "file",
        "\0": "file",
        "7": "file",
        "1": "hardlink",
        "2": "symlink",
        "5": "directory",
    };
    const kind = kinds[flag] ?? "other";
    const content = told.has("size") ? decimal(told.get("size") as Buffer) : size;
    return {
        kind,
        name: told.get("path") ?? whole,
        target: told.get("linkpath") ?? untilZero(header.subarray(157, 257)),
        // What is no file has none, whatever it says.
        size: kind === "file" ? content : 0,
        mode: number(header, 100, 108) & 0o7777,
        modified: told.has("mtime") ? seconds(told.get("mtime") as Buffer) : number(header, 136, 148),
    };
}

/** Takes the lines of a description. */
function describe(told: Map<string, Buffer>, text: Buffer): void {
    for (let at = 0; at < text.length;) {
        const space = text.indexOf(0x20, at);
        const length = space < 0 ? 0 : Number(text.toString("latin1", at, space));
        const equals = text.indexOf(0x3d, space);
        const end = at + length;
        if (!Number.isSafeInteger(length) || length < 5 || end > text.length || equals < 0 || equals >= end) {
            throw broken("a description is none");
        }
        told.set(text.toString("utf8", space + 1, equals), text.subarray(equals + 1, end - 1));
        at = end;
    }
}

function checkSum(header: Buffer): void {
    const blank = Buffer.from(header);
    blank.fill(0x20, 148, 156);
    if (sum(blank) !== number(header, 148, 156)) throw broken("a block is none of an archive");
}

function untilZero(bytes: Buffer): Buffer {
    const end = bytes.indexOf(0);
    return Buffer.from(end < 0 ? bytes : bytes.subarray(0, end));
}

/** A number in octal digits, or in binary where it is large. */
function number(header: Buffer, start: number, end: number): number {
    const field = header.subarray(start, end);
    const first = field[0] ?? 0;
    if (first >= 0x80) {
        // All bits are set before a number below zero: a time before 1970.
        let value = first === 0xff ? -1 : first & 0x7f;
        for (const byte of field.subarray(1)) value = value * 256 + byte;
        if (!Number.isSafeInteger(value)) throw broken("a number is too large");
        return value;
    }
    const text = untilZero(field).toString("latin1").trim();
    if (!/^[0-7]*$/.test(text)) throw broken("a number is none");
    return text === "" ? 0 : Number.parseInt(text, 8);
}

function decimal(bytes: Buffer): number {
    const text = bytes.toString("latin1");
    if (!/^\d{1,15}$/.test(text)) throw broken("a size is none");
    return Number(text);
}

function seconds(bytes: Buffer): number {
    const value = Number(bytes.toString("latin1"));
    return Number.isFinite(value) ? value : 0;
}
