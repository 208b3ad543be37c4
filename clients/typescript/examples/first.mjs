// A repository is made, tested, and its report is read, in a sandbox that ends with the program.

import { CommandFailedError, Sandbox } from "gloveport";

const box = await Sandbox.start();
try {
    (await box.run("mkdir project && cd project && git init -q")).check();
    await box.files.write("project/test.sh", "echo all is well > report.txt\n");
    try {
        (await box.run("sh test.sh", { timeoutMs: 60_000 })).check();
    } catch (error) {
        if (!(error instanceof CommandFailedError)) throw error;
        console.log(error.result.output);
    }
    console.log((await box.files.readText("project/report.txt")).trimEnd());
} finally {
    await box.close();
}
