// Files and trees of this machine, which go to a sandbox and come from one.

import { constants } from "node:fs";
import { chmod, lstat, mkdir, mkdtemp, open, readdir, readlink, rename, rm, unlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";

import { freshId } from "../checks.js";
import { GloveportError } from "../errors.js";
import type { Copied } from "../values.js";
import { BLOCK, headerOf } from "./tar.js";
import { unpack } from "./unpack.js";

/** Bytes that are read at once. */
const PIECE = 256 * 1024;

/** The content of a file. */
export async function* piecesOf(path: string | Buffer): AsyncGenerator<Uint8Array, void> {
    const file = await open(path, "r");
    try {
        for (;;) {
            const { bytesRead, buffer } = await file.read(new Uint8Array(PIECE));
            if (bytesRead === 0) return;
            yield buffer.subarray(0, bytesRead);
        }
    } finally {
        await file.close();
    }
}

/** A tar stream of what is in a directory, with modes, times and links. */
export async function* packed(root: string): AsyncGenerator<Uint8Array, void> {
    const top = Buffer.from(resolve(root));
    for await (const name of below(top, Buffer.alloc(0))) {
        const path = under(top, name);
        const found = await lstat(path);
        const times = { mode: found.mode & 0o7777, modified: Math.floor(found.mtimeMs / 1000) };
        if (found.isDirectory()) {
            yield headerOf({ kind: "directory", name, size: 0, ...times });
        } else if (found.isSymbolicLink()) {
            const target = await readlink(path, { encoding: "buffer" });
            yield headerOf({ kind: "symlink", name, target, size: 0, ...times });
        } else if (found.isFile()) {
            yield headerOf({ kind: "file", name, size: found.size, ...times });
            yield* exactly(path, found.size);
        }
    }
    yield new Uint8Array(2 * BLOCK);
}

/**
 * The names of all that is below a directory, each directory before what is in it. Names are bytes, which may be no
 * text.
 */
async function* below(root: Buffer, at: Buffer): AsyncGenerator<Buffer, void> {
    const entries = await readdir(at.length === 0 ? root : under(root, at), {
        withFileTypes: true,
        encoding: "buffer",
    });
    entries.sort((one, other) => Buffer.compare(one.name, other.name));
    for (const entry of entries) {
        const name = at.length === 0 ? entry.name : under(at, entry.name);
        yield name;
        if (entry.isDirectory()) yield* below(root, name);
    }
}

function under(directory: Buffer, name: Buffer): Buffer {
    return Buffer.concat([directory, Buffer.from("/"), name]);
}

/** So many bytes of a file, and zeros up to the next block. */
async function* exactly(path: Buffer, size: number): AsyncGenerator<Uint8Array, void> {
    let left = size;
    for await (const piece of piecesOf(path)) {
        const part = piece.subarray(0, left);
        left -= part.length;
        if (part.length > 0) yield part;
        if (left === 0) break;
    }
    if (left > 0)
        throw new GloveportError(`the file \`${path}\` became shorter while it was read`, { code: "changed" });
    yield new Uint8Array((BLOCK - (size % BLOCK)) % BLOCK);
}

/**
 * Writes a file that comes from a sandbox, whole or not at all: it is renamed in the end, so it is made next to its
 * target.
 */
export async function receiveFile(pieces: AsyncIterable<Uint8Array>, target: string, mode: number): Promise<Copied> {
    const part = join(dirname(resolve(target)), `.${basename(target).slice(0, 100)}.${freshId(8)}`);
    const file = await open(part, "wx", 0o600);
    try {
        let bytes = 0;
        try {
            for await (const piece of pieces) {
                await file.writeFile(piece);
                bytes += piece.length;
            }
        } finally {
            await file.close();
        }
        await chmod(part, mode);
        await rename(part, target);
        return { files: 1, bytes };
    } catch (error) {
        await rm(part, { force: true });
        throw error;
    }
}

/** Writes a tree that comes from a sandbox as a tar stream, when all of it is here. */
export async function receiveTree(pieces: AsyncIterable<Uint8Array>, target: string): Promise<Copied> {
    const directory = await mkdtemp(join(tmpdir(), "gloveport-"));
    const path = join(directory, "tree");
    try {
        const file = await open(path, constants.O_RDWR | constants.O_CREAT | constants.O_EXCL, 0o600);
        try {
            // What is left after a crash has no name.
            await unlink(path);
            for await (const piece of pieces) await file.writeFile(piece);
            await mkdir(target, { recursive: true });
            return await unpack(file, resolve(target));
        } finally {
            await file.close();
        }
    } finally {
        await rm(directory, { recursive: true, force: true });
    }
}
