// The official SDKs for Node as clients: the one of today in each of its ways to begin, and the one before it.
//
//     client.mjs URL KEY PACKAGES
//
// PACKAGES is the `node_modules` that has them. Prints one line a check: `ok NAME` or `FAILED NAME: DETAIL`.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [url, key, packages] = process.argv.slice(2);
const find = createRequire(`${packages}/`);
const load = (name) => import(pathToFileURL(find.resolve(name)).href);
const headers = { Authorization: `Bearer ${key}`, "X-Session-API-Key": key };

const check = (name, holds, detail) =>
    console.log(holds ? `ok ${name}` : `FAILED ${name}: ${JSON.stringify(detail)}`);

async function use(name, client) {
    const tools = (await client.listTools()).tools.map((tool) => tool.name);
    check(`${name}: tools`, tools.includes("every_echo") && tools.includes("time_convert_time"), tools);
    const called = await client.callTool({ name: "every_echo", arguments: { message: "hi" } });
    check(`${name}: call`, called.content[0].text === "Echo: hi", called);
    const picture = await client.callTool({ name: "every_get-tiny-image", arguments: {} });
    check(`${name}: picture`, picture.content.some((part) => part.type === "image" && part.data.length > 100), picture);
    const steps = [];
    const long = { name: "every_trigger-long-running-operation", arguments: { duration: 0.2, steps: 4 } };
    const options = { onprogress: (step) => steps.push(step.progress), timeout: 30000 };
    await (name.endsWith("before") ? client.callTool(long, undefined, options) : client.callTool(long, options));
    // The SDK before forgets whom to tell as soon as the result is there, so it may lose a step that comes with it.
    const isTold = steps.join() === "1,2,3,4" || (name.endsWith("before") && steps.join() === "1,2,3");
    check(`${name}: progress`, isTold, steps);
    const prompt = await client.getPrompt({ name: "every_simple-prompt" });
    check(`${name}: prompt`, prompt.messages.length > 0, prompt);
    const { resources } = await client.listResources();
    const read = await client.readResource({ uri: resources[0].uri });
    check(`${name}: resources`, resources[0].uri.startsWith("demo://every/") && read.contents.length === 1, resources);
    const unknown = await client.callTool({ name: "nowhere", arguments: {} }).catch((error) => String(error));
    check(`${name}: unknown tool`, JSON.stringify(unknown).includes("Unknown tool: nowhere"), unknown);
    const level = await client.setLoggingLevel?.("error").then(() => "set", String);
    const isOld = !String(level).includes("2026-07-28");
    check(`${name}: level of lines`, level === "set" || !isOld, level);
}

async function connect(name, Client, transport, options) {
    const client = new Client({ name: "test", version: "1" }, { capabilities: {}, ...options });
    await client.connect(transport);
    await use(name, client);
    await client.close();
}

const today = await load("@modelcontextprotocol/client");
const http = (sdk) => new sdk.StreamableHTTPClientTransport(new URL(`${url}/mcp/proxy`), { requestInit: { headers } });
const modes = { "revisions with initialize": "legacy", "what is newest": "auto" };
for (const [name, mode] of Object.entries(modes)) {
    await connect(`streamable HTTP, ${name}`, today.Client, http(today), { versionNegotiation: { mode } });
}
await connect("streamable HTTP, 2026-07-28", today.Client, http(today), { versionNegotiation: { mode: { pin: "2026-07-28" } } });

const { Client } = await load("@modelcontextprotocol/sdk/client/index.js");
const { SSEClientTransport } = await load("@modelcontextprotocol/sdk/client/sse.js");
const before = await load("@modelcontextprotocol/sdk/client/streamableHttp.js");
await connect("streamable HTTP, the SDK before", Client, http(before));
await connect("sse, the SDK before", Client, new SSEClientTransport(new URL(`${url}/mcp/sse`), { requestInit: { headers } }));
