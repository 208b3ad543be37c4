// A program that uses a sandbox, and is ended in some way by the one that has started it: child.js WAY.

import { spawn } from "node:child_process";

import { Sandbox } from "gloveport";

const way = process.argv[2];
process.stdout.write("starting\n");

/** In a function, so that nothing refers to the sandbox any more. */
async function forgotten(): Promise<string> {
    return (await Sandbox.start({ isolation: "none" })).id;
}

if (way === "drops it") {
    process.stdout.write(`${await forgotten()}\n`);
    // The loop lets callbacks of the collector run.
    setInterval(() => (globalThis as { gc?: () => void }).gc?.(), 20);
} else {
    const box = await Sandbox.start({ isolation: "none" });
    process.stdout.write(`${box.id}\n`);
    // What it has started, and goes on when it is killed.
    if (way === "has children") spawn("sleep", ["20"], { detached: true, stdio: "ignore" });
    if (way === "exits") process.exit(0);
    if (way === "throws") throw new Error("as it happens");
    if (way === "reads on") await box.stream("yes").next();
    else if (way !== "just ends") await box.run("sleep 60");
    if (way === "reads on") process.exit(0);
}
