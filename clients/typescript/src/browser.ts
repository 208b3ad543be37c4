// What a browser loads: sandboxes by the URLs of their servers.

import { SessionError } from "./errors.js";
import { RemoteSandbox } from "./sandbox.js";

export * from "./exports.js";

const REMEDY = "use `connect` with the URL of a sandbox's server";

/** A sandbox, by the URL of its server. */
export class Sandbox extends RemoteSandbox {
    /** Sessions are started by a program, which a browser has none of. @throws {@link SessionError} always. */
    static async start(): Promise<never> {
        throw new SessionError("a browser cannot start sessions", { remedy: REMEDY });
    }

    /** Sessions are found by a program, which a browser has none of. @throws {@link SessionError} always. */
    static async attach(): Promise<never> {
        throw new SessionError("a browser cannot find sessions", { remedy: REMEDY });
    }
}
