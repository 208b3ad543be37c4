// The browser of a sandbox: who may drive it and look at it, and what its pages do not reach.

import { execFileSync } from "node:child_process";
import { existsSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { waitFor } from "../vscode/servers.mjs";

const LIMIT = 20_000;
/** Names that lead to this machine in every browser, whoever gave them. */
const REBOUND = "evil.localhost";
const BUTTON = `<!DOCTYPE html><title>button</title><body style="margin:0">
<button style="position:fixed;inset:0;width:100vw;height:100vh" onclick="fetch('/clicked')">Press</button>
<script>addEventListener("keydown", (event) => fetch("/key?" + event.key))</script>`;

/** A page that is one button, and what was asked for. */
async function site() {
    const asked = [];
    const server = createServer((request, response) => {
        asked.push(request.url);
        response.setHeader("content-type", "text/html");
        response.end(BUTTON);
    });
    await new Promise((resolve) => server.listen(0, process.env.GLOVEPORT_TEST_OWN_NETWORK ? "0.0.0.0" : "127.0.0.1", resolve));
    const close = () => new Promise((resolve) => { server.closeAllConnections(); server.close(resolve); });
    return { url: `http://127.0.0.1:${server.address().port}/`, asked, close };
}

/**
 * The checks of one server. `suite` has the ways of the other checks, `person` is a browser of a person, `headers` are those
 * of somebody who may ask, and `hostile` is the port of a page that attacks, whose script is `attack`.
 */
export async function sandboxBrowser(suite, title, { here, port, place, headers, person, hostile, attack }) {
    const { check, same, chromium } = suite;
    const at = `${here}/v1/browser`;
    const marker = join(place.workspace, "MARKER");
    const page = await site();
    let driver;

    await check(`${title}: Playwright drives the browser of the sandbox over its address`, async () => {
        driver = await chromium.connectOverCDP(`${at}/cdp`, { headers, timeout: LIMIT });
        const opened = await driver.contexts()[0].newPage();
        await opened.goto(page.url);
        same("title", await opened.title(), "button");
        await opened.click("button");
        await waitFor("the click does not arrive", LIMIT, () => page.asked.includes("/clicked"));
        await opened.close();
        page.asked.length = 0;
    });
    if (Object.keys(headers).length > 0) {
        await check(`${title}: without the key nobody drives it, and nobody sees it`, async () => {
            for (const wrong of [{}, { "X-Session-API-Key": "wrong" }]) {
                const refused = await chromium.connectOverCDP(`${at}/cdp`, { headers: wrong, timeout: LIMIT }).then(() => "open", () => "refused");
                same("over its address", refused, "refused");
                const direct = await chromium.connectOverCDP(`${at.replace("http", "ws")}/cdp`, { headers: wrong, timeout: LIMIT }).then(() => "open", () => "refused");
                same("over its WebSocket", direct, "refused");
            }
            same("the page", (await fetch(`${at}/view`)).status, 403);
        });
    }
    await check(`${title}: a person sees the page of the sandbox, and a click and a key in the picture reach it`, async () => {
        const moved = await fetch(`${at}/navigate`, { method: "POST", headers, body: JSON.stringify({ url: page.url }) });
        same("status", moved.status, 200);
        const all = await (await fetch(`${here}/v1/plugins`, { headers })).json();
        const { path, token } = all.plugins.find(({ name }) => name === "browser");
        const view = await person.newPage();
        try {
            const wrong = [];
            view.on("console", (message) => message.type() === "error" && wrong.push(message.text()));
            await view.goto(`${here}${path}?tkn=${token}`);
            same("the address without the token", view.url(), `${here}${path}`);
            same("its origin", await view.evaluate(() => self.origin), "null");
            await view.waitForFunction(() => document.querySelector("canvas").dataset.shown, undefined, { timeout: LIMIT });
            same("what it shows", await view.inputValue("#address"), page.url);
            const colors = await view.evaluate(() => {
                const canvas = document.querySelector("canvas");
                return new Set(new Uint32Array(canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.buffer)).size;
            });
            if (colors < 2) throw new Error("the picture has one color");
            await view.click("canvas");
            await waitFor("the click does not arrive", LIMIT, () => page.asked.includes("/clicked"));
            await view.keyboard.press("x");
            await waitFor("the key does not arrive", LIMIT, () => page.asked.includes("/key?x"));
            same("errors of the page", wrong, []);
        } finally {
            await view.close();
        }
    });

    if (process.env.GLOVEPORT_TEST_OWN_NETWORK) {
        await check(`${title}: a page comes, though an address of the machine comes meanwhile`, async () => {
            const ip = (...words) => execFileSync("ip", words);
            ip("link", "add", "gloveport0", "type", "veth", "peer", "name", "gloveport1");
            try {
                ip("address", "add", "198.51.100.1/24", "dev", "gloveport0");
                for (const end of ["gloveport1", "gloveport0"]) ip("link", "set", end, "up");
                // Nobody answers there yet, so the browser is still connecting when the address comes.
                const url = `http://198.51.100.2:${new URL(page.url).port}/`;
                const going = fetch(`${at}/navigate`, { method: "POST", headers, body: JSON.stringify({ url }) });
                await new Promise((resolve) => setTimeout(resolve, 700));
                ip("address", "add", "198.51.100.2/32", "dev", "gloveport0");
                const answer = await going;
                same("status", answer.status, 200);
                same("what the browser shows", (await (await fetch(`${at}/page`, { headers })).text()).includes("Press"), true);
            } finally {
                ip("link", "delete", "gloveport0");
            }
        });
    }

    /** What `attack` reads in a page of the sandbox's browser. */
    const attacked = async (url, target, made) => {
        const opened = await driver.contexts()[0].newPage();
        try {
            if (made) await opened.route(url, (route) => route.fulfill({ contentType: "text/html", body: "<!DOCTYPE html><body>" }));
            await opened.goto(url);
            if (made) await opened.addScriptTag({ content: attack });
            const read = await opened.evaluate(([target, marker]) => attack(target, marker), [target, marker]);
            const more = await opened.evaluate(async (target) => {
                const read = [];
                const message = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" });
                for (const [path, options] of [
                    ["/mcp", { method: "POST", body: message, headers: { "content-type": "application/json", accept: "application/json, text/event-stream" } }],
                    ["/mcp", { method: "POST", body: message }],
                    ["/v1/browser", {}],
                    ["/v1/browser/view", { credentials: "include" }],
                    ["/v1/browser/navigate", { method: "POST", body: JSON.stringify({ url: "about:blank" }) }],
                ]) {
                    const answer = await fetch(`${target}${path}`, options).catch(() => undefined);
                    if (answer?.ok) read.push(path);
                }
                for (const path of ["/v1/browser/cdp", "/v1/browser/live"]) {
                    const socket = new WebSocket(`${target.replace("http", "ws")}${path}`);
                    const open = await new Promise((resolve) => { socket.onopen = () => resolve(true); socket.onerror = () => resolve(false); });
                    if (open) read.push(path);
                }
                return read;
            }, target);
            return { ...read, ...Object.fromEntries(more.map((path) => [path, "answered"])) };
        } finally {
            await opened.close();
        }
    };
    for (const [what, url, target, made] of [
        ["a page of another port", `http://127.0.0.1:${hostile}/`, here, false],
        ["a page of localhost", `http://localhost:${hostile}/`, `http://localhost:${port}`, false],
        ["a page of a name that was made to lead to the server", `http://${REBOUND}:${port}/page`, `http://${REBOUND}:${port}`, true],
        ["a page of such a name, by the server's address", `http://${REBOUND}:${port}/page`, here, true],
    ]) {
        await check(`${title}: in the sandbox's own browser, ${what} reads nothing and runs nothing`, async () => {
            same("what it read", await attacked(url, target, made), {});
            same("whether something ran", existsSync(marker), false);
        });
    }
    await check(`${title}: in the sandbox's own browser, a page reaches no file`, async () => {
        const secret = join(place.root, "a file.html");
        writeFileSync(secret, "<!DOCTYPE html><title>a file</title>the content of a file");
        const file = `file://${encodeURI(secret)}`;
        const opened = await driver.contexts()[0].newPage();
        try {
            await opened.goto(page.url);
            const read = await opened.evaluate(async (file) => {
                const read = [];
                if (await fetch(file).then(() => true, () => false)) read.push("fetch");
                const frame = Object.assign(document.createElement("iframe"), { src: file });
                const loaded = new Promise((resolve) => { frame.onload = resolve; setTimeout(resolve, 1000); });
                document.body.append(frame);
                await loaded;
                if (frame.contentDocument?.body?.textContent.includes("the content")) read.push("frame");
                const opened = window.open(file);
                await new Promise((resolve) => setTimeout(resolve, 500));
                try {
                    if (opened?.document.body.textContent.includes("the content")) read.push("window");
                } catch {
                    read.push("window of another origin");
                }
                opened?.close();
                location.href = file;
                await new Promise((resolve) => setTimeout(resolve, 500));
                return read;
            }, file);
            same("what it read", read, []);
            same("where it is", opened.url(), page.url);
            const frames = opened.frames().filter((frame) => frame.url().startsWith("file:"));
            same("frames with files", frames.length, 0);
            const tree = await (await fetch(`${at}/page`, { headers })).text();
            same("whether a file is shown", tree.includes("the content of a file"), false);
        } finally {
            await opened.close();
        }
    });
    await driver?.close();
    await page.close();
}
