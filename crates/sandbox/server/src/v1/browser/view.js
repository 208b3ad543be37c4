
"use strict";
// Shows the pictures of the live view on a canvas, and sends what is done there.
(() => {
    const protocols = document.currentScript.dataset.protocols.split(" ");
    document.currentScript.remove();
    const [canvas, address, state, reload] = ["picture", "address", "state", "reload"].map((id) => document.getElementById(id));
    const context = canvas.getContext("2d", { alpha: false });
    const BUTTONS = ["left", "middle", "right"];
    const LONGEST_PAUSE = 10000;
    let socket;
    let url = "";
    let pause = 500;
    /** The newest picture that is not drawn yet, and whether one is being drawn. */
    let waiting = null;
    let drawing = false;
    /** Where the mouse went since the last frame of this page. */
    let moved = null;

    function tell(text) {
        state.textContent = text;
        state.title = text;
    }

    function connect() {
        const target = new URL("live", location.href);
        target.protocol = target.protocol === "https:" ? "wss:" : "ws:";
        target.search = target.hash = "";
        socket = new WebSocket(target, protocols);
        socket.binaryType = "blob";
        socket.onopen = () => {
            pause = 500;
            tell("connected");
        };
        socket.onmessage = ({ data }) => (typeof data === "string" ? told(JSON.parse(data)) : shown(data));
        socket.onclose = ({ reason }) => {
            tell(reason ? `closed: ${reason}` : "closed");
            setTimeout(connect, pause);
            pause = Math.min(pause * 2, LONGEST_PAUSE);
        };
    }

    function told(message) {
        if (message.error !== undefined) {
            tell(String(message.error));
            return;
        }
        if (canvas.width !== message.width || canvas.height !== message.height) {
            canvas.width = message.width;
            canvas.height = message.height;
        }
        url = message.url;
        if (document.activeElement !== address) address.value = url;
    }

    async function shown(picture) {
        waiting = picture;
        if (drawing) return;
        drawing = true;
        while (waiting) {
            const next = waiting;
            waiting = null;
            try {
                const bitmap = await createImageBitmap(next);
                context.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
                bitmap.close();
                canvas.dataset.shown = String(Number(canvas.dataset.shown ?? 0) + 1);
            } catch (error) {
                tell(`a picture cannot be shown: ${error.message}`);
            }
        }
        drawing = false;
    }

    function send(message) {
        if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message));
    }

    function mouse(kind, event, more = {}) {
        const place = canvas.getBoundingClientRect();
        const x = ((event.clientX - place.left) * canvas.width) / place.width;
        const y = ((event.clientY - place.top) * canvas.height) / place.height;
        send({ type: "mouse", kind, x: Math.round(x * 10) / 10, y: Math.round(y * 10) / 10, ...more });
    }

    canvas.addEventListener("pointermove", (event) => {
        if (!moved) {
            requestAnimationFrame(() => {
                mouse("move", moved, { button: "none" });
                moved = null;
            });
        }
        moved = event;
    });
    canvas.addEventListener("pointerdown", (event) => {
        canvas.focus();
        canvas.setPointerCapture(event.pointerId);
    });
    for (const [kind, name] of [["down", "mousedown"], ["up", "mouseup"]]) {
        canvas.addEventListener(name, (event) => {
            const button = BUTTONS[event.button];
            if (button) mouse(kind, event, { button, clicks: Math.min(Math.max(event.detail, 1), 3) });
            event.preventDefault();
        });
    }
    canvas.addEventListener("contextmenu", (event) => event.preventDefault());
    canvas.addEventListener("wheel", (event) => {
        const unit = [1, 40, canvas.height][event.deltaMode] ?? 1;
        mouse("wheel", event, { delta_x: event.deltaX * unit, delta_y: event.deltaY * unit });
        event.preventDefault();
    }, { passive: false });

    const modifiers = (event) => event.altKey * 1 + event.ctrlKey * 2 + event.metaKey * 4 + event.shiftKey * 8;
    for (const [kind, name] of [["down", "keydown"], ["up", "keyup"]]) {
        canvas.addEventListener(name, (event) => {
            // What is being composed comes as a whole; what is pasted does, too.
            if (event.isComposing || event.key === "Process" || event.key === "Dead" || event.key === "Unidentified") return;
            if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "v") return;
            send({ type: "key", kind, key: event.key, code: event.code, modifiers: modifiers(event) });
            event.preventDefault();
        });
    }
    canvas.addEventListener("compositionend", (event) => send({ type: "text", text: event.data }));
    document.addEventListener("paste", (event) => {
        if (document.activeElement !== canvas) return;
        const text = event.clipboardData.getData("text/plain");
        if (text) send({ type: "text", text });
        event.preventDefault();
    });

    address.addEventListener("keydown", (event) => {
        if (event.key !== "Enter") return;
        const text = address.value.trim();
        if (text) send({ type: "navigate", url: /^[a-z][a-z0-9+.-]*:/i.test(text) && !/^[^/]*:\d/.test(text) ? text : `http${/^(localhost|[\d.]+|\[)/.test(text) ? "" : "s"}:\/\/${text}` });
        canvas.focus();
        event.preventDefault();
    });
    reload.addEventListener("click", () => url && send({ type: "navigate", url }));
    connect();
})();
