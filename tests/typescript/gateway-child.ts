// A program that uses a sandbox of a gateway, and ends in some way: gateway-child.js URL WAY, with the key in TEST_KEY.

import { Gateway } from "gloveport";

const [, , url = "", way] = process.argv;
const there = new Gateway(url, { key: process.env["TEST_KEY"] });

/** In a function, so that nothing refers to the sandbox any more. */
async function forgotten(): Promise<string> {
    return (await there.start()).id;
}

if (way === "drops it") {
    process.stdout.write(await forgotten());
    // The loop lets callbacks of the collector run.
    setInterval(() => (globalThis as { gc?: () => void }).gc?.(), 20);
} else {
    const box = await there.start(
        way === "is killed" ? { ttlMs: 3000 } : way === "is abandoned" ? { abandonedAfterMs: 2000 } : {},
    );
    process.stdout.write(box.id);
    if (way === "is abandoned") setInterval(() => {}, 1000);
    if (way === "throws") throw new Error("as it happens");
    if (way === "exits") process.exit(0);
    if (way === "is killed") await box.run("sleep 60");
}
