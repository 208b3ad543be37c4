// The checks: VS Code in a browser, through the binary or alone. See `run` for the usage.

import { mkdtempSync, readFileSync, rmdirSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Place, Server, freePort, waitFor } from "./servers.mjs";
import { editFile, openBrowser } from "./workbench.mjs";

const [vscode, binary] = process.argv.slice(2);
const pictures = mkdtempSync(join(tmpdir(), "gloveport-vscode-pictures-"));
const KEY = "key-of-the-session";
let passed = 0;
let failed = 0;
let browser;

/** Runs a check. One that others build on gives what they need, or undefined when it failed. */
async function check(name, body) {
    try {
        const value = await body();
        passed += 1;
        console.log(`ok      ${name}`);
        return value ?? true;
    } catch (error) {
        failed += 1;
        console.log(`FAILED  ${name}\n  ${error.message}`);
        return undefined;
    }
}

function same(what, got, wanted) {
    const [one, two] = [JSON.stringify(got), JSON.stringify(wanted)];
    if (one !== two) throw new Error(`${what}: got ${one}, wanted ${two}`);
}

async function status(url, headers = {}) {
    return (await fetch(url, { headers, redirect: "manual" })).status;
}

/** The file on disk gets the text that is typed in a browser at `url`. */
async function edited(name, place, url, text) {
    await check(name, async () => {
        const before = place.content();
        const picture = join(pictures, `${name.replaceAll(/\W+/g, "-")}.png`);
        const saved = () =>
            waitFor("the file on disk does not have the text", 10_000, () => place.content() === `${text}\n${before}`);
        await editFile(browser.context, { url, file: place.file, text: `${text}\n`, saved, picture });
    });
}

/** Serves with `command`, does `body`, and sees that nothing of it is left. */
async function serving(title, place, command, environment, body) {
    const server = new Server(place, command, environment);
    const before = failed;
    try {
        await body(server);
    } finally {
        const ended = () => server.end();
        // Alone they leave processes behind for a while; the binary must not.
        if (binary) await check(`${title}: nothing is left when the server has ended`, ended);
        else await ended().catch(() => {});
        if (failed > before) console.log(`  the server said last:\n${server.lastWords().replaceAll(/^/gm, "    ")}`);
        place.remove();
    }
}

async function alone(title, command, url) {
    const place = new Place();
    const port = await freePort();
    await serving(title, place, command(port), {}, async (server) => {
        await check(`${title} starts`, () => server.answers(`http://localhost:${port}/`));
        await edited(`${title} saves what is typed`, place, url(port, encodeURI(place.workspace)), "typed 1");
    });
}

/** As callers of OpenHands use it: a port of its own, and the token that the server tells to whoever has the key. */
async function onItsPort(program) {
    const place = new Place();
    const [port, codePort] = [await freePort(), await freePort()];
    const words = ["--working-dir", place.workspace, "--username", "root", "--user-id", "0", "--no-enable-browser"];
    const environment = {
        SESSION_API_KEY: KEY, VSCODE_PORT: String(codePort), WORKSPACE_BASE: place.workspace,
        WORKSPACE_MOUNT_PATH_IN_SANDBOX: place.workspace, GLOVEPORT_VSCODE: join(vscode, "bin", program),
    };
    const title = `${program} on its own port`;
    const command = [binary, "action-execution-server", String(port), ...words, "--plugins", "vscode"];
    await serving(title, place, command, environment, async (server) => {
        const [api, page] = [`http://127.0.0.1:${port}`, `http://localhost:${codePort}`];
        if (!(await check(`${title}: the server starts`, () => server.answers(`${api}/alive`)))) return;
        await check(`${title}: the token is not told without the key of the session`, async () =>
            same("status", await status(`${api}/vscode/connection_token`), 403));
        const token = await check(`${title}: the token is told to whoever has the key`, async () => {
            const answer = await fetch(`${api}/vscode/connection_token`, { headers: { "X-Session-API-Key": KEY } });
            const { token } = await answer.json();
            if (!/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(token)) throw new Error(`the token is ${JSON.stringify(token)}`);
            return token;
        });
        await check(`${title}: whoever has no token or another one is refused`, async () => {
            const folder = `folder=${encodeURI(place.workspace)}`;
            for (const query of ["", "?tkn=", "?tkn=00000000-0000-4000-8000-000000000000", `?${folder}`]) {
                same(`status of /${query}`, await status(`${page}/${query}`), 403);
            }
        });
        await check(`${title}: the settings of the workspace are there for all`, () => {
            const path = join(place.workspace, ".vscode", "settings.json");
            const wanted = { "workbench.colorTheme": "Default Dark Modern", "workbench.startupEditor": "none", "chat.commandCenter.enabled": false };
            const got = JSON.parse(readFileSync(path, "utf8"));
            same("settings", got, { ...got, ...wanted });
            same("mode", statSync(path).mode & 0o777, 0o666);
        });
        if (!token) return;
        const url = `${page}/?tkn=${token}&folder=${place.workspace}`;
        await edited(`${title}: what is typed is saved`, place, url, "typed on its own port");
    });
}

/** On the one port of `serve`, below a path. */
async function onTheOnePort(program) {
    const place = new Place();
    const port = await freePort();
    const title = `${program} on the one port`;
    const environment = { SESSION_API_KEY: KEY, WORKSPACE_BASE: place.workspace, GLOVEPORT_VSCODE: join(vscode, "bin", program) };
    const command = [binary, "serve", "--port", String(port), "--workspace", place.workspace, "--plugin", "vscode"];
    await serving(title, place, command, environment, async (server) => {
        const page = `http://localhost:${port}/plugins/vscode/`;
        const key = { "X-Session-API-Key": KEY };
        if (!(await check(`${title}: the server starts`, () => server.answers(`http://localhost:${port}/alive`)))) return;
        await check(`${title}: whoever has no token or another one is refused`, async () => {
            for (const query of ["", "?tkn=", "?tkn=00000000-0000-4000-8000-000000000000"]) {
                same(`status of /plugins/vscode/${query}`, await status(`${page}${query}`), 403);
            }
        });
        const token = await check(`${title}: path and token are told to whoever has the key`, async () => {
            const answer = await fetch(`http://localhost:${port}/v1/plugins`, { headers: key });
            const plugin = (await answer.json()).plugins.find(({ name }) => name === "vscode");
            same("path", plugin.path, "/plugins/vscode/");
            if (!/^\S{16,}$/.test(plugin.token)) throw new Error(`the token is ${JSON.stringify(plugin.token)}`);
            return plugin.token;
        });
        await check(`${title}: the key of the session lets in`, async () => {
            // code-server leads to the directory that it opened last.
            const got = await status(page, key);
            if (got !== 200 && got !== 302) throw new Error(`it is answered with ${got}`);
        });
        if (!token) return;
        const url = `${page}?tkn=${token}&folder=${place.workspace}`;
        await edited(`${title}: what is typed is saved`, place, url, "typed on the one port");
    });
}

/** On the one port of a server without a key, by the address that a person types. */
async function withoutKey(program) {
    const place = new Place();
    const port = await freePort();
    const title = `${program} without a key`;
    const command = [binary, "serve", "--no-key", "--port", String(port), "--workspace", place.workspace, "--plugin", "vscode"];
    await serving(title, place, command, { GLOVEPORT_VSCODE: join(vscode, "bin", program) }, async (server) => {
        if (!(await check(`${title}: the server starts`, () => server.answers(`http://localhost:${port}/alive`)))) return;
        const url = `http://localhost:${port}/plugins/vscode/?folder=${encodeURI(place.workspace)}`;
        await edited(`${title}: what is typed is saved`, place, url, "typed without a key");
    });
}

/** Through a gateway, at the URL that a client of OpenHands makes: below the path of its sandbox, or at a host of its own. */
async function throughGateway(program, domain) {
    const place = new Place();
    const port = await freePort();
    const title = `${program} through a gateway, ${domain ? "at a host of its own" : "below a path"}`;
    const keys = join(place.root, "key");
    writeFileSync(keys, KEY, { mode: 0o600 });
    const command = [binary, "gateway", "--runtime", "local", "--port", String(port), "--key-file", keys];
    if (domain) command.push("--domain", domain);
    const environment = { GLOVEPORT_VSCODE: join(vscode, "bin", program), XDG_RUNTIME_DIR: "", XDG_STATE_HOME: join(place.root, "state") };
    await serving(title, place, command, environment, async (server) => {
        const gateway = `http://localhost:${port}`;
        const ask = async (path, body) => {
            const headers = { "X-API-Key": KEY, "Content-Type": "application/json" };
            const answer = await fetch(`${gateway}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
            if (!answer.ok) throw new Error(`${path} is answered with ${answer.status}: ${await answer.text()}`);
            return answer.json();
        };
        if (!(await check(`${title}: it starts`, () => server.answers(`${gateway}/healthz`)))) return;
        const words = ["python", "-u", "-m", "openhands.runtime.action_execution_server", "60000", "--plugins", "vscode"];
        const sandbox = await check(`${title}: a sandbox is started`, () => ask("/start", { session_id: "code", command: words }));
        if (!sandbox) return;
        try {
            const { runtime_id: id, url, session_api_key: key } = sandbox;
            const token = await check(`${title}: the token is told`, async () => {
                const host = new URL(url).host;
                // The name of the host is one that only browsers know to be this machine.
                const path = domain ? `/${id}` : new URL(url).pathname;
                const asked = () => fetch(`${gateway}${path}/vscode/connection_token`, { headers: { "X-Session-API-Key": key } });
                await waitFor("the server does not answer", 30_000, async () => (await asked()).ok);
                if (domain) same("host", host, `${id}.${domain}:${port}`);
                return (await (await asked()).json()).token;
            });
            if (!token) return;
            const query = `tkn=${token}&folder=${encodeURI(place.workspace)}`;
            const page = domain ? `http://vscode-${new URL(url).host}/?${query}` : `${gateway}/${id}/vscode?${query}`;
            await edited(`${title}: what is typed is saved`, place, page, "typed through a gateway");
        } finally {
            await check(`${title}: the sandbox is stopped`, () => ask("/stop", { runtime_id: sandbox.runtime_id }));
        }
    });
}

async function main() {
    browser = await openBrowser(vscode);
    try {
        if (binary) {
            for (const program of ["openvscode-server", "code-server"]) {
                await onItsPort(program);
                await onTheOnePort(program);
            }
            await withoutKey("openvscode-server");
            for (const domain of [undefined, "sandboxes.localhost"]) await throughGateway("openvscode-server", domain);
            await throughGateway("code-server", undefined);
        } else {
            const bin = join(vscode, "bin");
            await alone("openvscode-server alone", (port) => [
                join(bin, "openvscode-server"), "--host", "127.0.0.1", "--port", String(port),
                "--connection-token", "secret", "--disable-workspace-trust",
            ], (port, folder) => `http://localhost:${port}/?tkn=secret&folder=${folder}`);
            await alone("code-server alone", (port) => [
                join(bin, "code-server"), "--auth", "none", "--bind-addr", `127.0.0.1:${port}`,
                "--disable-telemetry", "--disable-update-check", "--disable-workspace-trust",
            ], (port, folder) => `http://localhost:${port}/?folder=${folder}`);
        }
    } finally {
        await browser.close();
        // It stays if there are pictures in it.
        try {
            rmdirSync(pictures);
        } catch (error) {
            if (error.code !== "ENOTEMPTY") throw error;
        }
    }
}

await main();
console.log(`${passed} passed, ${failed} failed, 0 skipped`);
process.exit(failed > 0 ? 1 : 0);
