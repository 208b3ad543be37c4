// Much output and large files, and how much memory they take: memory.js DIRECTORY.

import { createHash } from "node:crypto";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";

import { Sandbox } from "gloveport";

const SIZE = 100_000_000;
const path = join(process.argv[2] ?? ".", "big");

/** KiB of memory at most so far. */
function peak(): number {
    return Number(/VmHWM:\s+(\d+)/.exec(readFileSync("/proc/self/status", "utf8"))?.[1]);
}

await using box = await Sandbox.start({ isolation: "none" });
await box.run("true");
const before = peak();
let size = 0;
const stream = box.stream(`head -c ${SIZE} /dev/zero | tr '\\0' x`);
for await (const text of stream) size += text.length;
const { result } = stream;
if (size + result.missing !== SIZE || result.output.length !== 16 * 1024 * 1024 || result.dropped === 0) {
    throw new Error(`${size} and ${result.missing} bytes, and ${result.output.length} of them kept`);
}
await box.processes.run(["sh", "-c", `head -c ${SIZE} /dev/zero >big`]);
size = 0;
for await (const piece of box.files.stream("big")) size += piece.length;
if (size !== SIZE) throw new Error(`${size} bytes were read`);
await box.download("big", path);
await box.upload(path, "again");
rmSync(path);
const hash = (await box.run("sha256sum <again")).output.slice(0, 64);
if (hash !== createHash("sha256").update(Buffer.alloc(SIZE)).digest("hex")) throw new Error("the copy is another one");
process.stdout.write(`${Math.round((peak() - before) / 1024)} ${result.missing}\n`);
