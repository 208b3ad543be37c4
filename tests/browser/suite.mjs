// The checks: what pages of each origin reach of each server. See `run` for the usage.

import { createServer } from "node:http";
import { createRequire } from "node:module";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { Place, Server, freePort } from "../vscode/servers.mjs";
import { sandboxBrowser } from "./sandbox.mjs";

const [vscode, binary] = process.argv.slice(2);
const ATTACK = readFileSync(join(dirname(fileURLToPath(import.meta.url)), "attacks.js"), "utf8");
const SECRET = "the-secret-of-the-workspace";
const KEY = "key-of-the-session";
const EVIL = "evil.test";
const DOT = Buffer.from("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==", "base64");
const FILES = {
    "secret.txt": SECRET,
    "leak.js": `self.leaked = "${SECRET}"`,
    "leak.css": `body { --leaked: "${SECRET}" }`,
    "leak.html": `<!DOCTYPE html><body>${SECRET}<script>new Image().src = "/v1/files/content?path=from-the-frame"</script>`,
    "dot.png": DOT,
};
const FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    // Newer browsers ask before a page of the network reaches this machine; older ones do not.
    "--disable-features=LocalNetworkAccessChecks,PrivateNetworkAccessSendPreflights,PrivateNetworkAccessRespectPreflightResults",
    // A name that was made to lead to this machine; nobody else is asked for it.
    `--host-resolver-rules=MAP ${EVIL} 127.0.0.1`,
];
/** A plugin whose answers try to act on the whole origin. */
const PLUGIN = `
import http.server, sys

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        path = self.path.split("?")[0]
        kind = "text/javascript" if path.endswith(".js") else "text/html"
        body = b"self.addEventListener('fetch', () => {})" if path.endswith(".js") else b"<!DOCTYPE html><body>the page of a plugin"
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Service-Worker-Allowed", "/")
        self.send_header("Clear-Site-Data", '"*"')
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass

http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
`;

let passed = 0;
let failed = 0;
let context;
let chromium;

async function check(name, body) {
    try {
        await body();
        passed += 1;
        console.log(`ok      ${name}`);
    } catch (error) {
        failed += 1;
        console.log(`FAILED  ${name}\n  ${error.message}`);
    }
}

function same(what, got, wanted) {
    const [one, two] = [JSON.stringify(got), JSON.stringify(wanted)];
    if (one !== two) throw new Error(`${what}: got ${one}, wanted ${two}`);
}

/** Gives an HTTP server on loopback that answers with `answer`, and its port. */
async function listening(answer) {
    const server = createServer(answer);
    await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
    return { server, port: server.address().port, close: () => new Promise((resolve) => { server.closeAllConnections(); server.close(resolve); }) };
}

/** The page of an attacker. */
const HOSTILE = `<!DOCTYPE html><meta charset="utf-8"><body><script>${ATTACK}</script>`;

/** What `attack` reads in a page at `url`. With `made` the page is the attacker's, whoever answers at its address. */
async function attacked(url, target, marker, { made = false, frame = false } = {}) {
    const page = await context.newPage();
    try {
        if (made) await page.route(url, (route) => route.fulfill({ contentType: "text/html", body: HOSTILE }));
        await page.goto(url);
        const place = frame ? page.frames().find((one) => one.name() === "sandboxed") : page.mainFrame();
        if (!made) await place.addScriptTag({ content: ATTACK });
        return await place.evaluate(([target, marker]) => attack(target, marker), [target, marker]);
    } finally {
        await page.close();
    }
}

/** A workspace with what there is to read, and a terminal to attach to. */
function prepare(place) {
    for (const [name, content] of Object.entries(FILES)) writeFileSync(join(place.workspace, name), content);
    const folder = join(place.root, "plugins");
    for (const name of ["one", "two"]) {
        mkdirSync(join(folder, name), { recursive: true });
        writeFileSync(join(folder, name, "server.py"), PLUGIN);
        writeFileSync(join(folder, name, "plugin.toml"), `name = "${name}"\n[service]\ncommand = ["python3", "./server.py", "{port}"]\n`);
    }
    return folder;
}

/** Runs `body` while `command` serves, and tells what the server said if something failed. */
async function serving(title, place, command, environment, body) {
    const server = new Server(place, command, environment);
    const before = failed;
    try {
        await body(server);
    } finally {
        await check(`${title}: nothing is left when the server has ended`, () => server.end());
        if (failed > before) console.log(`  the server said last:\n${server.lastWords().replaceAll(/^/gm, "    ")}`);
        place.remove();
    }
}

/** Pages of every other origin reach nothing of the server at `port`. */
async function foreignPages(title, port, place, pages) {
    const marker = join(place.workspace, "MARKER");
    const here = `http://127.0.0.1:${port}`;
    for (const [what, url, target, options] of [
        ["a page of another site", `http://${EVIL}:${pages}/`, here, {}],
        ["a page of another port", `http://127.0.0.1:${pages}/`, here, {}],
        ["a page of localhost", `http://localhost:${pages}/`, `http://localhost:${port}`, {}],
        ["a page without an origin", `http://127.0.0.1:${pages}/sandboxed`, here, { frame: true }],
        ["a page of a name that was made to lead to the server", `http://${EVIL}:${port}/page`, `http://${EVIL}:${port}`, { made: true }],
        ["a page of such a name, by the server's address", `http://${EVIL}:${port}/page`, here, { made: true }],
    ]) {
        await check(`${title}: ${what} reads nothing and runs nothing`, async () => {
            same("what it read", await attacked(url, target, marker, options), {});
            same("whether something ran", existsSync(marker), false);
        });
    }
}

/** Pages of a plugin reach neither the interface nor, unless it was opened, another plugin. */
async function pluginPages(title, port, place, url) {
    const marker = join(place.workspace, "MARKER");
    const here = `http://127.0.0.1:${port}`;
    await check(`${title}: the page of a plugin opens, and reads nothing and runs nothing`, async () => {
        same("what it read", await attacked(`${here}${url}`, here, marker), {});
        same("whether something ran", existsSync(marker), false);
    });
    const page = await context.newPage();
    await check(`${title}: the page of a plugin uses its own service and no other`, async () => {
        await page.goto(`${here}${url}`);
        const status = (path) => page.evaluate(async (path) => (await fetch(path, { credentials: "include" })).status, path);
        same("its own", await status("/plugins/one/data"), 200);
        same("another one", await status("/plugins/two/data"), 403);
        const frame = await page.evaluate(() => new Promise((resolve) => {
            const frame = Object.assign(document.createElement("iframe"), { src: "/plugins/two/" });
            frame.onload = () => resolve(frame.contentDocument?.body?.textContent ?? "");
            document.body.append(frame);
        }));
        same("another one in a frame", frame.includes("the page of a plugin"), false);
    });
    await check(`${title}: a plugin's worker controls nothing but the plugin, and its answers clear nothing`, async () => {
        const scope = (scope) => page.evaluate(async (scope) => {
            try {
                return new URL((await navigator.serviceWorker.register("/plugins/one/worker.js", { scope })).scope).pathname;
            } catch (error) {
                return error.name;
            }
        }, scope);
        same("the whole origin", await scope("/"), "SecurityError");
        same("another plugin", await scope("/plugins/two/"), "SecurityError");
        same("its own path", await scope("/plugins/one/"), "/plugins/one/");
        await page.evaluate(() => localStorage.setItem("kept", "yes"));
        await page.goto(`${here}/plugins/one/again`);
        same("what was stored", await page.evaluate(() => localStorage.getItem("kept")), "yes");
    });
    await page.close();
}

async function withoutKey(pages) {
    const place = new Place();
    const port = await freePort();
    const plugins = prepare(place);
    const words = ["--port", String(port), "--workspace", place.workspace, "--plugin", "one", "--plugin", "two"];
    const title = "serve --no-key";
    await serving(title, place, [binary, "serve", "--no-key", ...words], { GLOVEPORT_PLUGINS: plugins }, async (server) => {
        const here = `http://127.0.0.1:${port}`;
        await check(`${title}: programs read and run`, async () => {
            await server.answers(`${here}/alive`);
            same("file", await (await fetch(`${here}/v1/files/content?path=secret.txt`)).text(), SECRET);
            const terminal = { id: "open", argv: ["bash"] };
            const made = await fetch(`${here}/v1/terminals`, { method: "POST", body: JSON.stringify(terminal) });
            same("status", made.status, 201);
        });
        await check(`${title}: a person opens the page of the documents, which is shown alone`, async () => {
            const page = await context.newPage();
            const answer = await page.goto(`${here}/docs`);
            same("status", answer.status(), 200);
            const policy = await answer.headerValue("content-security-policy");
            if (!/default-src 'none'.*sandbox/.test(policy)) throw new Error(`the policy is ${policy}`);
            await page.close();
        });
        await foreignPages(title, port, place, pages);
        await pluginPages(title, port, place, "/plugins/one/");
        const browser = { here, port, place, headers: {}, person: context, hostile: pages, attack: ATTACK };
        await sandboxBrowser({ check, same, chromium }, title, browser);
    });
}

async function withKey(pages) {
    const place = new Place();
    const port = await freePort();
    const plugins = prepare(place);
    const words = ["--port", String(port), "--workspace", place.workspace, "--plugin", "one", "--plugin", "two"];
    const environment = { GLOVEPORT_PLUGINS: plugins, GLOVEPORT_KEY: KEY };
    const title = "serve with a key";
    await serving(title, place, [binary, "serve", ...words], environment, async (server) => {
        const here = `http://127.0.0.1:${port}`;
        const headers = { "X-Session-API-Key": KEY };
        let token = "";
        await check(`${title}: programs read and run`, async () => {
            await server.answers(`${here}/alive`);
            const made = await fetch(`${here}/v1/terminals`, { method: "POST", headers, body: JSON.stringify({ id: "open", argv: ["bash"] }) });
            same("status", made.status, 201);
            const all = await (await fetch(`${here}/v1/plugins`, { headers })).json();
            ({ token } = all.plugins.find(({ name }) => name === "one"));
        });
        await foreignPages(title, port, place, pages);
        await pluginPages(title, port, place, `/plugins/one/?tkn=${token}`);
        const browser = { here, port, place, headers, person: context, hostile: pages, attack: ATTACK };
        await sandboxBrowser({ check, same, chromium }, title, browser);
    });
}

/** The file viewer shows a file to a person who has its address, and nothing to a page, even to one that has it. */
async function viewer(title, port, place, pages) {
    const address = readFileSync("/tmp/oh-server-url", "utf8");
    const path = new URL(address).pathname;
    const file = (base) => `${base}${path}/view?path=${encodeURIComponent(join(place.workspace, "dot.png"))}`;
    await check(`${title}: a person with the address of the viewer sees a picture, on a page without an origin`, async () => {
        same("its server", address.startsWith(`http://localhost:${port}/viewer/`), true);
        const page = await context.newPage();
        const answer = await page.goto(file(`http://localhost:${port}`));
        same("status", answer.status(), 200);
        same("width", await page.evaluate(() => document.querySelector("img").decode().then(() => document.querySelector("img").naturalWidth)), 1);
        same("origin", await page.evaluate(() => self.origin), "null");
        await page.close();
    });
    for (const [what, url, target, made] of [
        ["a page of another site", `http://${EVIL}:${pages}/`, `http://localhost:${port}`, false],
        ["a page of localhost", `http://localhost:${pages}/`, `http://localhost:${port}`, false],
        ["a page of a name that was made to lead to the server", `http://${EVIL}:${port}/page`, `http://${EVIL}:${port}`, true],
    ]) {
        await check(`${title}: ${what} gets nothing from the viewer, also with its address`, async () => {
            const page = await context.newPage();
            if (made) await page.route(url, (route) => route.fulfill({ contentType: "text/html", body: HOSTILE }));
            await page.goto(url);
            const read = await page.evaluate(async (file) => {
                const read = [];
                const answer = await fetch(file, { credentials: "include" }).catch(() => undefined);
                if (answer?.ok) read.push("fetch");
                for (const [tag, attributes] of [["img", { src: file }], ["iframe", { src: file }], ["script", { src: file }]]) {
                    const element = Object.assign(document.createElement(tag), attributes);
                    await new Promise((resolve) => {
                        element.onload = element.onerror = resolve;
                        document.body.append(element);
                        setTimeout(resolve, 1500);
                    });
                    if (element.naturalWidth || element.contentDocument?.title?.includes("dot.png")) read.push(tag);
                }
                return read;
            }, file(target));
            await page.close();
            same("what it read", read, []);
        });
    }
}

async function compatible(pages) {
    const place = new Place();
    const port = await freePort();
    prepare(place);
    const title = "action-execution-server without a key";
    const command = [
        binary, "action-execution-server", String(port), "--working-dir", place.workspace, "--username", "root",
        "--user-id", "0", "--no-enable-browser",
    ];
    await serving(title, place, command, {}, async (server) => {
        const here = `http://127.0.0.1:${port}`;
        await check(`${title}: programs run, by whatever name they ask`, async () => {
            await server.answers(`${here}/alive`);
            const request = createRequire(import.meta.url)("node:http").request;
            const status = await new Promise((resolve, reject) => {
                const headers = { host: `host.docker.internal:${port}`, "content-type": "application/json" };
                const asked = request(`${here}/list_files`, { method: "POST", headers }, (answer) => resolve(answer.statusCode));
                asked.on("error", reject).end("{}");
            });
            same("status", status, 200);
        });
        await foreignPages(title, port, place, pages);
        await viewer(title, port, place, pages);
    });
}

/** A server that checks nothing is read and runs commands, so a page that reaches something is noticed. */
async function attacksWork(pages) {
    const marked = [];
    const open = await listening((request, response) => {
        const name = new URL(request.url, "http://x").searchParams.get("path");
        const kinds = { js: "text/javascript", css: "text/css", png: "image/png", html: "text/html" };
        if (request.url.startsWith("/execute_action") && request.method === "POST") marked.push(request.headers["content-type"] ?? "none");
        response.setHeader("content-type", kinds[name?.split(".").pop()] ?? "text/plain");
        response.end(FILES[name] ?? "{}");
    });
    try {
        const target = `http://127.0.0.1:${open.port}`;
        await check("a server that checks nothing is read and used by a page of another site", async () => {
            const read = await attacked(`http://${EVIL}:${pages}/`, target, "/nowhere/MARKER");
            same("what it read", Object.keys(read).filter((way) => ["script", "style", "picture"].includes(way)).sort(), ["picture", "script", "style"]);
            // As text without a preflight: fetch, XMLHttpRequest, a beacon and a form.
            if (marked.length < 4) throw new Error(`only ${marked.length} actions came: ${marked}`);
        });
        await check("a server that checks nothing is read and used by a page of a name that was made to lead to it", async () => {
            const url = `http://${EVIL}:${open.port}`;
            const read = await attacked(`${url}/page`, url, "/nowhere/MARKER", { made: true });
            for (const way of ["fetch of a file", "script", "frame", "window", "worker", "XMLHttpRequest"]) {
                if (!read[way]) throw new Error(`${way} read nothing; ${Object.keys(read)} did`);
            }
        });
    } finally {
        await open.close();
    }
}

async function main() {
    const profile = mkdtempSync(join(tmpdir(), "gloveport-browser-"));
    ({ chromium } = createRequire(join(vscode, "package.json"))("playwright-core"));
    context = await chromium.launchPersistentContext(profile, {
        executablePath: process.env.GLOVEPORT_TEST_CHROMIUM ?? "/usr/bin/chromium",
        args: FLAGS,
        headless: true,
    });
    const hostile = await listening((request, response) => {
        response.setHeader("content-type", "text/html");
        const framed = `<!DOCTYPE html><iframe name="sandboxed" sandbox="allow-scripts allow-forms allow-popups" src="/"></iframe>`;
        response.end(request.url === "/sandboxed" ? framed : HOSTILE);
    });
    try {
        await attacksWork(hostile.port);
        await withoutKey(hostile.port);
        await withKey(hostile.port);
        await compatible(hostile.port);
    } finally {
        await hostile.close();
        await context.close();
        rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
    }
}

await main();
console.log(`${passed} passed, ${failed} failed, 0 skipped`);
process.exit(failed > 0 ? 1 : 0);
