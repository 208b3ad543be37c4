// What a browser loads: sandboxes by the URLs of their servers, and gateways.

import { Connection } from "./connection.js";
import { SessionError } from "./errors.js";
import { RemoteGateway, type SandboxInfo, sessionOf } from "./gateway.js";
import { type AtGateway, RemoteSandbox } from "./sandbox.js";

export * from "./exports.js";

const REMEDY = "use `connect` with the URL of a sandbox's server, or a `Gateway`";

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

/** A gateway, which starts, finds, keeps and ends sandboxes. It must let pages of this origin ask. */
export class Gateway extends RemoteGateway<Sandbox> {
    /** @internal */
    protected override placed(info: SandboxInfo, atGateway: AtGateway): Sandbox {
        return new Sandbox(new Connection(info.url, info.key), sessionOf(info), atGateway);
    }

    /** @internal A page that is left can wait for nothing. */
    protected override held(): () => void {
        return () => {};
    }
}
