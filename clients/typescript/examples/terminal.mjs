// A program that asks is answered on a terminal, and what it changes is watched.

import { Sandbox } from "gloveport";

const ASKS = `read -p "What is your name? " name && echo "$name" > name.txt && echo "Hello, $name."
`;

const box = await Sandbox.start();
try {
    const changes = await box.files.watch(".", { timeoutMs: 30_000 });
    const terminal = await box.terminal(["bash", "-c", ASKS], { cols: 100 });
    process.stdout.write(await terminal.readUntil("name? "));
    await terminal.write("Ada\n");
    console.log(await terminal.readUntil("Ada."));
    console.log("It ended with", (await terminal.wait({ timeoutMs: 10_000 })).exitCode);
    for await (const change of changes) {
        if (change.kind !== "modified") continue;
        console.log("Changed:", change.path.split("/").at(-1));
        break;
    }
} finally {
    await box.close();
}
