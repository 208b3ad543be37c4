// The official SDKs for Node use a sandbox as an MCP server: the one of today in each of its ways to begin, and the one
// before it; over HTTP, and over standard input and output.
//
//     computer.mjs URL KEY PACKAGES BINARY
//
// PACKAGES is the `node_modules` that has them. Prints one line a check: `ok NAME` or `FAILED NAME: DETAIL`.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [url, key, packages, binary] = process.argv.slice(2);
const find = createRequire(`${packages}/`);
const load = (name) => import(pathToFileURL(find.resolve(name)).href);
const headers = { Authorization: `Bearer ${key}` };

const check = (name, holds, detail) =>
    console.log(holds ? `ok ${name}` : `FAILED ${name}: ${JSON.stringify(detail)}`);

async function use(name, client) {
    const isBefore = name.endsWith("before");
    const call = (tool, args, options) =>
        isBefore ? client.callTool({ name: tool, arguments: args }, undefined, options) : client.callTool({ name: tool, arguments: args }, options);
    const { tools } = await client.listTools();
    check(`${name}: tools`, tools.length === 12 && tools.every((tool) => tool.outputSchema?.type === "object"), tools);
    check(`${name}: instructions`, client.getInstructions().includes("The work is in /"), client.getInstructions());
    const steps = [];
    const options = { onprogress: (step) => steps.push(step.message), timeout: 30000 };
    const ran = await call("shell", { command: "echo one; sleep 0.6; echo two" }, options);
    check(`${name}: shell`, ran.structuredContent.output === "one\ntwo" && ran.structuredContent.exit_code === 0, ran);
    check(`${name}: progress`, steps.length > 0 && steps[0].includes("one"), steps);
    const giveUp = new AbortController();
    setTimeout(() => giveUp.abort(), 500);
    const given = await call("shell", { command: "sleep 60" }, { signal: giveUp.signal }).catch((error) => String(error));
    const after = await call("shell", { command: "echo free" });
    check(`${name}: a call that is given up`, typeof given === "string" && after.structuredContent.output === "free", after);
    await call("write_file", { path: "node.txt", content: "text of node\n" });
    const { resources } = await client.listResources();
    const { uri } = resources.find((one) => one.name === "node.txt");
    const read = await client.readResource({ uri });
    check(`${name}: a resource`, read.contents[0].text === "text of node\n", read);
    const cell = await call("python", { code: "6 * 7" });
    check(`${name}: python`, cell.structuredContent.output === "42", cell);
    const wrong = await call("shell", { command: 7 });
    check(`${name}: wrong arguments`, wrong.isError && wrong.content[0].text.includes("command"), wrong);
    const unknown = await call("nowhere", {}).catch((error) => String(error));
    check(`${name}: unknown tool`, JSON.stringify(unknown).includes("there is no tool `nowhere`"), unknown);
}

async function connect(name, Client, transport, options) {
    const client = new Client({ name: "test", version: "1" }, { capabilities: {}, ...options });
    await client.connect(transport);
    await use(name, client);
    await client.close();
}

const today = await load("@modelcontextprotocol/client");
const { StdioClientTransport: Stdio } = await load("@modelcontextprotocol/client/stdio").catch(() => today);
const { Client } = await load("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport: StdioBefore } = await load("@modelcontextprotocol/sdk/client/stdio.js");
const before = await load("@modelcontextprotocol/sdk/client/streamableHttp.js");

const http = (sdk) => new sdk.StreamableHTTPClientTransport(new URL(`${url}/mcp`), { requestInit: { headers } });
const stdio = (Transport) => new Transport({ command: binary, args: ["mcp"], env: process.env });
for (const [kind, make] of Object.entries({ HTTP: () => http(today), stdio: () => stdio(Stdio) })) {
    for (const mode of ["legacy", "auto", { pin: "2026-07-28" }]) {
        await connect(`${kind}, ${mode.pin ?? mode}`, today.Client, make(), { versionNegotiation: { mode } });
    }
}
await connect("HTTP, the SDK before", Client, http(before));
await connect("stdio, the SDK before", Client, stdio(StdioBefore));
