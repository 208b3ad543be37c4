// Gateways for programs that run in Node, which end what they have started when they end.

import { spawnSync } from "node:child_process";

import { Connection } from "../connection.js";
import { RemoteGateway, type SandboxInfo, sessionOf } from "../gateway.js";
import type { AtGateway } from "../sandbox.js";
import { dialUpgrade } from "./line.js";
import { Sandbox } from "./sandbox.js";

/** Milliseconds in which what a program has left must have ended, after it. */
const ENDING = 30_000;

/** A sandbox that is to be ended: where, and by which key. */
interface Left {
    readonly url: string;
    readonly key: string | undefined;
}

const LEFT = new Set<Left>();

/** Asks for the end of all that it reads of: a program that ends can wait for another one, and for nothing else. */
const LAST = `
let text = "";
for await (const piece of process.stdin.setEncoding("utf8")) text += piece;
await Promise.allSettled(JSON.parse(text).map(({ url, key }) =>
    fetch(url, { method: "DELETE", headers: key === undefined ? {} : { "X-API-Key": key }, redirect: "manual" })));
`;

function endAll(): void {
    if (LEFT.size === 0) return;
    // The keys are in no argument and no variable, which others could see.
    spawnSync(process.execPath, ["--input-type=module", "--eval", LAST], {
        input: JSON.stringify([...LEFT]),
        stdio: ["pipe", "ignore", "ignore"],
        env: {},
        timeout: ENDING,
        killSignal: "SIGKILL",
    });
}

let isListening = false;

/**
 * A gateway, which starts, finds, keeps and ends sandboxes elsewhere, without a program on this machine.
 *
 * `await using box = await new Gateway(url, { key }).start()` starts a sandbox, which ends with the block, with its
 * object, and with this process, unless a signal ends that.
 */
export class Gateway extends RemoteGateway<Sandbox> {
    readonly #key: string | undefined;

    constructor(url: string | URL, options: { key?: string | undefined } = {}) {
        super(url, options);
        this.#key = options.key;
    }

    /** @internal */
    protected override placed(info: SandboxInfo, atGateway: AtGateway): Sandbox {
        return new Sandbox(new Connection(info.url, info.key, dialUpgrade), sessionOf(info), undefined, atGateway);
    }

    /** @internal */
    protected override held(id: string): () => void {
        const left = { url: `${this.url}/v1/sandboxes/${encodeURIComponent(id)}`, key: this.#key };
        LEFT.add(left);
        if (!isListening) {
            isListening = true;
            process.on("exit", endAll);
        }
        return () => void LEFT.delete(left);
    }
}
