// Stands between a client and a server, and breaks connections as it is told.

import { once } from "node:events";
import {
    createServer as createWebServer,
    type IncomingMessage,
    request as ask,
    type Server as WebServer,
    type ServerResponse,
} from "node:http";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";

import { Sandbox } from "gloveport";

import { keyOf } from "./cases.js";

export class Proxy {
    /** Bytes of answers after which a connection is broken, for the next connections; others go on. */
    limits: number[] = [];
    /** How many of the next connections have their request read, and never passed on. */
    swallow = 0;
    count = 0;
    readonly #server: Server;
    readonly #sockets = new Set<Socket>();

    private constructor(server: Server) {
        this.#server = server;
    }

    static async to(url: string): Promise<Proxy> {
        const server = createServer();
        const proxy = new Proxy(server);
        server.on("connection", (client) => proxy.#join(client, Number(new URL(url).port)));
        await once(server.listen(0, "127.0.0.1"), "listening");
        return proxy;
    }

    get url(): string {
        return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
    }

    /** Ends the connections that there are, so that the next request makes one. */
    async drop(): Promise<void> {
        const closed = [...this.#sockets].map((socket) => once(socket, "close"));
        for (const socket of this.#sockets) socket.destroy();
        await Promise.all(closed);
        // The client is in this process, and hears of it in one of the next turns.
        await sleep(60);
    }

    /** Goes away, with all its connections. */
    close(): void {
        this.#server.close();
        for (const socket of this.#sockets) socket.destroy();
    }

    #join(client: Socket, port: number): void {
        this.count += 1;
        const limit = this.limits.shift();
        this.#watch(client);
        if (this.swallow > 0) {
            this.swallow -= 1;
            client.once("data", () => client.destroy());
            return;
        }
        const server = connect(port, "127.0.0.1");
        this.#watch(server);
        let passed = 0;
        client.on("data", (data) => server.write(data));
        server.on("data", (data: Buffer) => {
            const room = limit === undefined ? data.length : limit - passed;
            passed += data.length;
            if (data.length <= room) {
                if (!client.write(data)) {
                    server.pause();
                    client.once("drain", () => server.resume());
                }
                return;
            }
            client.end(data.subarray(0, room), () => client.destroy());
            server.destroy();
        });
        client.on("close", () => server.destroy());
        server.on("close", () => client.end());
    }

    #watch(socket: Socket): void {
        this.#sockets.add(socket);
        socket.on("error", () => socket.destroy());
        socket.on("close", () => this.#sockets.delete(socket));
    }
}

/** A sandbox, the same one through a proxy, and that. */
export async function proxied(body: (direct: Sandbox, through: Sandbox, proxy: Proxy) => Promise<void>): Promise<void> {
    await using direct = await Sandbox.start({ isolation: "none" });
    const proxy = await Proxy.to(direct.url());
    try {
        await using through = await Sandbox.connect(proxy.url, await keyOf(direct));
        await proxy.drop();
        await body(direct, through, proxy);
    } finally {
        proxy.close();
    }
}

/** Passes a request on to a server, and its answer back, but for some headers. */
export function passOn(
    url: string,
    request: IncomingMessage,
    response: ServerResponse,
    hidden: readonly string[] = [],
): void {
    const target = new URL(url);
    const { method, headers } = request;
    const asked = ask(target, { method: method ?? "GET", headers: { ...headers, host: target.host } }, (answer) => {
        for (const name of hidden) delete answer.headers[name];
        response.writeHead(answer.statusCode ?? 500, answer.headers);
        answer.pipe(response);
    });
    asked.on("error", () => response.destroy());
    response.on("close", () => asked.destroy());
    request.pipe(asked);
}

/** Passes a request for a WebSocket on to a server, and what follows in both directions. */
export function passUpgrade(url: string, request: IncomingMessage, client: Duplex): void {
    const target = new URL(url);
    const asked = ask(target, { headers: { ...request.headers, host: target.host } });
    asked.on("upgrade", (answer, server, head) => {
        const lines = Object.entries(answer.headers).map(([name, value]) => `${name}: ${value}`);
        client.write(["HTTP/1.1 101 Switching Protocols", ...lines, "", ""].join("\r\n"));
        client.write(head);
        server.pipe(client).pipe(server);
        server.on("error", () => client.destroy());
    });
    asked.on("response", () => client.destroy());
    asked.on("error", () => client.destroy());
    client.on("error", () => asked.destroy());
    asked.end();
}

/** A server that passes all on, but for some headers of answers. */
export async function passing(url: string, hidden: readonly string[]): Promise<{ url: string; server: WebServer }> {
    const server = createWebServer((request, response) => passOn(`${url}${request.url}`, request, response, hidden));
    await once(server.listen(0, "127.0.0.1"), "listening");
    return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, server };
}
