// Unpacks a tree that a sandbox has packed, which may be hostile.
//
// Nothing is written through a link: every directory on the way must be one, and what is in the place of a file is
// removed first. A link may only lead to what is in the tree, and steps up only at its beginning, so that links behind
// each other cannot lead out either. Nobody else may write to the directory meanwhile.

import { constants } from "node:fs";
import { chmod, type FileHandle, link, lstat, lutimes, mkdir, open, symlink, unlink, utimes } from "node:fs/promises";

import { GloveportError } from "../errors.js";
import type { Copied } from "../values.js";
import { broken, type Entry, padding, type ReadExactly, readEntry } from "./tar.js";

/** Bytes that are copied at once. */
const PIECE = 256 * 1024;
const SLASH = Buffer.from("/");

/** Unpacks an archive into a directory that is there. */
export async function unpack(archive: FileHandle, root: string): Promise<Copied> {
    let at = 0;
    const read: ReadExactly = async (size) => {
        const bytes = Buffer.alloc(size);
        for (let done = 0; done < size;) {
            const { bytesRead } = await archive.read(bytes, done, size - done, at + done);
            if (bytesRead === 0) throw broken("it breaks off");
            done += bytesRead;
        }
        at += size;
        return bytes;
    };
    const tree = new Tree(root);
    let [files, bytes] = [0, 0];
    try {
        for (let entry = await readEntry(read); entry !== undefined; entry = await readEntry(read)) {
            await tree.take(entry, read);
            if (entry.kind !== "directory") [files, bytes] = [files + 1, bytes + entry.size];
        }
        await tree.finish();
    } catch (error) {
        if (error instanceof GloveportError || !(error instanceof Error)) throw error;
        throw new GloveportError(`the tree is not unpacked to its end: ${error.message}`, {
            code: "not_unpacked",
            cause: error,
        });
    }
    return { files, bytes };
}

class Tree {
    readonly #root: Buffer;
    /** Directories that are known to be there, so that not each file asks for all above it. */
    readonly #known = new Set<string>();
    /** Times of directories, which change as long as something is put into them. */
    readonly #times: [path: Buffer, modified: number][] = [];

    constructor(root: string) {
        this.#root = Buffer.from(root);
    }

    async take(entry: Entry, read: ReadExactly): Promise<void> {
        const parts = partsOf(entry.name);
        const last = parts.pop();
        if (last === undefined) {
            // The directory itself.
            if (entry.kind === "directory") return;
            throw broken("an entry has no name");
        }
        const directory = await this.#directory(parts);
        const path = Buffer.concat([directory, SLASH, last]);
        if (entry.kind === "directory") {
            await this.#directory([...parts, last]);
            await chmod(path, (entry.mode & 0o755) | 0o700);
            this.#times.push([path, entry.modified]);
            return;
        }
        await this.#clear(path);
        if (entry.kind === "file") {
            await store(path, entry, read);
        } else if (entry.kind === "symlink") {
            checkTarget(entry, parts.length);
            await symlink(entry.target ?? Buffer.alloc(0), path);
            await lutimes(path, entry.modified, entry.modified);
        } else if (entry.kind === "hardlink") {
            await link(await this.#file(entry), path);
        } else {
            throw broken(`${shown(entry.name)} is neither a file nor a directory nor a link`);
        }
    }

    async finish(): Promise<void> {
        for (const [path, modified] of this.#times.reverse()) await utimes(path, modified, modified);
    }

    /** The path of a directory in the tree, which is made, and reached without a link. */
    async #directory(parts: readonly Buffer[]): Promise<Buffer> {
        let path = this.#root;
        for (const part of parts) {
            path = Buffer.concat([path, SLASH, part]);
            const key = path.toString("latin1");
            if (this.#known.has(key)) continue;
            const found = await lstat(path).catch(ifMissing);
            if (found === undefined) await mkdir(path);
            else if (!found.isDirectory()) throw broken(`${shown(path)} is no directory`);
            this.#known.add(key);
        }
        return path;
    }

    /** Makes place for what is not a directory. */
    async #clear(path: Buffer): Promise<void> {
        const found = await lstat(path).catch(ifMissing);
        if (found === undefined) return;
        if (found.isDirectory()) throw broken(`${shown(path)} is a directory`);
        await unlink(path);
    }

    /** The file that a hard link is another name of. */
    async #file(entry: Entry): Promise<Buffer> {
        const parts = partsOf(entry.target ?? Buffer.alloc(0));
        const last = parts.pop();
        if (last === undefined) throw broken(`${shown(entry.name)} links to nothing`);
        const path = Buffer.concat([await this.#directory(parts), SLASH, last]);
        if (!(await lstat(path)).isFile()) throw broken(`${shown(entry.name)} links to what is no file`);
        return path;
    }
}

/** Writes a file. Special bits are not set, and nobody else may write to it. */
async function store(path: Buffer, entry: Entry, read: ReadExactly): Promise<void> {
    const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
    const file = await open(path, flags, 0o600);
    try {
        for (let left = entry.size; left > 0;) {
            const piece = await read(Math.min(left, PIECE));
            await file.writeFile(piece);
            left -= piece.length;
        }
        await read(padding(entry.size));
        await file.chmod((entry.mode & 0o755) | 0o600);
        await file.utimes(entry.modified, entry.modified);
    } finally {
        await file.close();
    }
}

/** The parts of a name below the root. */
function partsOf(name: Buffer): Buffer[] {
    if (name[0] === SLASH[0]) throw broken(`${shown(name)} is an absolute path`);
    const parts = split(name).filter((part) => part.length > 0 && !part.equals(Buffer.from(".")));
    if (parts.some(isUp)) throw broken(`${shown(name)} leads out of the tree`);
    return parts;
}

/**
 * Fails for a link, so many directories below the root, that leads out of the tree, or may do so behind another link.
 */
function checkTarget(entry: Entry, depth: number): void {
    const target = entry.target ?? Buffer.alloc(0);
    const parts = split(target);
    const ups = parts.findIndex((part) => !isUp(part));
    const steps = ups < 0 ? parts.length : ups;
    if (target.length === 0 || target[0] === SLASH[0] || steps > depth || parts.slice(steps).some(isUp)) {
        throw broken(`the link ${shown(entry.name)} leads to ${shown(target)}, which may be outside of the tree`);
    }
}

const isUp = (part: Buffer): boolean => part.equals(Buffer.from(".."));

function split(name: Buffer): Buffer[] {
    const parts: Buffer[] = [];
    let start = 0;
    for (let end = name.indexOf(SLASH); end >= 0; end = name.indexOf(SLASH, start)) {
        parts.push(name.subarray(start, end));
        start = end + 1;
    }
    return [...parts, name.subarray(start)];
}

const shown = (name: Buffer): string => JSON.stringify(name.toString("utf8").slice(0, 200));

function ifMissing(error: NodeJS.ErrnoException): undefined {
    if (error.code !== "ENOENT") throw error;
}
