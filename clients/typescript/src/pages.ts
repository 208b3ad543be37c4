// The browser of a sandbox, and its pages.

import { countOf } from "./checks.js";
import type { Connection, Request } from "./connection.js";
import { BrowserFailedError } from "./errors.js";
import { Fields, foreign, parsed } from "./fields.js";
import type * as wire from "./wire.js";

/**
 * An element of a page: by its id in the tree of the page (there in brackets); by a text that it shows, or its label;
 * by its role for assistive technology, such as `button`, and a part of its name; or by a selector of CSS.
 */
export type ElementTarget =
    | { readonly bid: string }
    | { readonly text: string }
    | { readonly role: string; readonly name?: string | undefined }
    | { readonly selector: string };

/** How something is done in a browser. */
export interface BrowserOptions {
    /** Gives the call up, and throws its reason. What was asked for may be done nevertheless. */
    signal?: AbortSignal | undefined;
}

/** A page, or tab. */
export interface PageInfo {
    /** What names it. */
    readonly id: string;
    /** Its address. */
    readonly url: string;
    /** Its title. */
    readonly title: string;
    /** Whether it is the one that actions are for. */
    readonly active: boolean;
}

/** How a browser stands. */
export interface BrowserStatus {
    /** `idle`, `starting`, `ready`, `failed` or `closed`. */
    readonly state: wire.BrowserActivity;
    /** Which browser it is, once it is up. */
    readonly version?: string;
    /** The number of its first process, once it is up. */
    readonly pid?: number;
    /** Whether Chromium's own sandbox keeps pages apart from the rest, once it is up. */
    readonly sandboxed?: boolean;
    /** Its pages. */
    readonly pages: readonly PageInfo[];
    /** Why it cannot be used; empty if it can. */
    readonly reason: string;
    /** What can be done about that; may be empty. */
    readonly remedy: string;
}

/** A line of a page's console. */
export interface ConsoleEntry {
    /** `log`, `info`, `warning`, `error`, `exception` and others. */
    readonly level: string;
    /** What was written. */
    readonly text: string;
    /** The address of the page or the script. */
    readonly url: string;
}

/** Something that a page fetched. */
export interface NetworkEntry {
    /** `GET` and others. */
    readonly method: string;
    /** Its address. */
    readonly url: string;
    /** What it is for: `Document`, `Script`, `XHR` and others. */
    readonly kind: string;
    /** The status of the answer. */
    readonly status?: number;
    /** Why it failed. */
    readonly error?: string;
}

/** What there is since a question before. */
export interface Entries<T> {
    /** The entries, oldest first. Those that are no longer kept are left out. */
    readonly entries: readonly T[];
    /** The `since` of the next question. */
    readonly next: number;
}

/** What is known of a page. */
export interface PageDetails {
    readonly url: string;
    readonly title: string;
    readonly tree: string;
    readonly pages: readonly PageInfo[];
    readonly focused: string | undefined;
    readonly dialogs: readonly string[];
    readonly downloads: readonly string[];
    readonly error: string | undefined;
}

/** What the active page is like. */
export class Page implements PageDetails {
    /** Its address. */
    readonly url: string;
    /** Its title. */
    readonly title: string;
    /** The tree of its elements as text, with their ids in brackets. */
    readonly tree: string;
    /** All pages. */
    readonly pages: readonly PageInfo[];
    /** The id of the element that has the focus. */
    readonly focused: string | undefined;
    /** Questions of the page that were answered meanwhile. */
    readonly dialogs: readonly string[];
    /** Files that were downloaded meanwhile, as paths in the sandbox. */
    readonly downloads: readonly string[];
    /** Why what was asked for failed. */
    readonly error: string | undefined;

    /** @internal */
    constructor(details: PageDetails) {
        this.url = details.url;
        this.title = details.title;
        this.tree = details.tree;
        this.pages = details.pages;
        this.focused = details.focused;
        this.dialogs = details.dialogs;
        this.downloads = details.downloads;
        this.error = details.error;
    }

    /**
     * This page, if what was asked for was done.
     *
     * @throws {@link BrowserFailedError} otherwise.
     */
    check(): this {
        if (this.error === undefined) return this;
        throw new BrowserFailedError(this.error);
    }
}

/** A text means the element that shows it. */
function targetOf(element: string | ElementTarget): wire.ElementTarget {
    return typeof element === "string" ? { text: element } : (element as wire.ElementTarget);
}

function infoOf(value: unknown): PageInfo {
    const told = new Fields<wire.PageInfo>(value, "a page");
    const title = told.maybeText("title") ?? "";
    return { id: told.text("id"), url: told.text("url"), title, active: told.flag("active") };
}

function statusOf(value: unknown): BrowserStatus {
    const told = new Fields<wire.BrowserStatus>(value, "the state of the browser");
    const [version, pid] = [told.maybeText("version"), told.maybeCount("pid")];
    return {
        state: told.word("state", "idle", "starting", "ready", "failed", "closed"),
        ...(version === undefined ? {} : { version }),
        ...(pid === undefined ? {} : { pid }),
        ...(told.has("sandboxed") ? { sandboxed: told.flag("sandboxed") } : {}),
        pages: told.has("pages") ? told.list("pages").map(infoOf) : [],
        reason: told.maybeText("reason") ?? "",
        remedy: told.maybeText("remedy") ?? "",
    };
}

function pageOf(value: unknown): Page {
    const told = new Fields<wire.PageView>(value, "the page");
    return new Page({
        url: told.text("url"),
        title: told.text("title"),
        tree: told.text("tree"),
        pages: told.list("pages").map(infoOf),
        focused: told.maybeText("focused"),
        dialogs: told.has("dialogs") ? told.texts("dialogs") : [],
        downloads: told.has("downloads") ? told.texts("downloads") : [],
        error: told.maybeText("error"),
    });
}

function consoleOf(value: unknown): ConsoleEntry {
    const told = new Fields<wire.BrowserConsoleEntry>(value, "a line of the console");
    return { level: told.text("level"), text: told.text("text"), url: told.text("url") };
}

function networkOf(value: unknown): NetworkEntry {
    const told = new Fields<wire.BrowserNetworkEntry>(value, "what was fetched");
    const [status, error] = [told.maybeCount("status"), told.maybeText("error")];
    return {
        method: told.text("method"),
        url: told.text("url"),
        kind: told.text("kind"),
        ...(status === undefined ? {} : { status }),
        ...(error === undefined ? {} : { error }),
    };
}

/** An object as it is. */
function recordOf(value: unknown): Record<string, unknown> {
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return { ...value };
    throw foreign("it is no object");
}

/**
 * The browser of a sandbox, which starts with its first use and needs Chromium in the sandbox.
 *
 * It has pages, one of which is the active one. Each method that acts returns what that page is like then, whose
 * `check()` throws what failed. What acts is sent once.
 */
export class Browser {
    readonly #connection: Connection;

    /** @internal */
    constructor(connection: Connection) {
        this.#connection = connection;
    }

    /** How it stands. This does not start it. */
    async status(): Promise<BrowserStatus> {
        return statusOf(parsed(await this.#get("/v1/browser")));
    }

    /** Starts it, as its first use does. Twice is not an error. */
    async start(options: BrowserOptions = {}): Promise<BrowserStatus> {
        return statusOf(parsed(await this.#asked("/v1/browser/start", undefined, options, true)));
    }

    /**
     * Leads the active page to an address with a scheme, or `back`, `forward` or `reload`.
     *
     * @param options - `newPage` opens another page for it; `wait` is what is waited for, which is `load` by default.
     */
    async navigate(
        url: string,
        options: BrowserOptions & { newPage?: boolean | undefined; wait?: wire.NavigateWait | undefined } = {},
    ): Promise<Page> {
        const json: wire.NavigateRequest = { url, new_page: options.newPage ?? false, wait: options.wait ?? "load" };
        return pageOf(parsed(await this.#asked("/v1/browser/navigate", json, options)));
    }

    /** What the active page is like. */
    async page(): Promise<Page> {
        return pageOf(parsed(await this.#get("/v1/browser/page")));
    }

    /** The active page as text. */
    async markdown(): Promise<string> {
        return new TextDecoder().decode(await this.#get("/v1/browser/markdown"));
    }

    /**
     * A picture, as PNG: of what is in view, of an element, or of the whole page.
     *
     * @param options - `element` is one of the page; `fullPage` takes all of it.
     */
    async screenshot(
        options: BrowserOptions & {
            element?: string | ElementTarget | undefined;
            fullPage?: boolean | undefined;
        } = {},
    ): Promise<Uint8Array> {
        const json: wire.ScreenshotRequest = { full_page: options.fullPage ?? false };
        if (options.element !== undefined) json.target = targetOf(options.element);
        return this.#asked("/v1/browser/screenshot", json, options, true);
    }

    /**
     * The active page as PDF.
     *
     * @param options - `background` prints what is behind texts; `landscape` makes broad pages; `pages` are some, such
     * as `1-3, 5`; `scale` is from 0.1 to 2.
     */
    async pdf(
        options: BrowserOptions & {
            background?: boolean | undefined;
            landscape?: boolean | undefined;
            pages?: string | undefined;
            scale?: number | undefined;
        } = {},
    ): Promise<Uint8Array> {
        const json: wire.PdfRequest = {
            background: options.background ?? false,
            landscape: options.landscape ?? false,
            pages: options.pages ?? null,
            scale: options.scale ?? null,
        };
        return this.#asked("/v1/browser/pdf", json, options, true);
    }

    /**
     * Clicks on an element: one that shows a text, or that is described otherwise.
     *
     * @param options - `button` is the left one by default; `double` clicks twice.
     */
    async click(
        element: string | ElementTarget,
        options: BrowserOptions & {
            button?: "left" | "middle" | "right" | undefined;
            double?: boolean | undefined;
        } = {},
    ): Promise<Page> {
        const { button = "left", double = false } = options;
        return this.#act({ action: "click", target: targetOf(element), button, double }, options);
    }

    /**
     * Puts a text in the place of what a field contains.
     *
     * @param options - `submit` presses Enter then.
     */
    async fill(
        element: string | ElementTarget,
        text: string,
        options: BrowserOptions & { submit?: boolean | undefined } = {},
    ): Promise<Page> {
        const submit = options.submit ?? false;
        return this.#act({ action: "fill", target: targetOf(element), text, submit }, options);
    }

    /** Types a text key by key where the focus is. */
    async type(text: string, options: BrowserOptions = {}): Promise<Page> {
        return this.#act({ action: "type", text }, options);
    }

    /**
     * Presses keys such as `Control+a` where the focus is.
     *
     * @param options - `element` is one that gets them instead.
     */
    async press(
        keys: string,
        options: BrowserOptions & { element?: string | ElementTarget | undefined } = {},
    ): Promise<Page> {
        const target = options.element === undefined ? null : targetOf(options.element);
        return this.#act({ action: "press", keys, target }, options);
    }

    /** Chooses options of a list, by value or label. */
    async select(
        element: string | ElementTarget,
        choices: readonly string[],
        options: BrowserOptions = {},
    ): Promise<Page> {
        return this.#act({ action: "select", target: targetOf(element), options: [...choices] }, options);
    }

    /** Moves the mouse to an element. */
    async hover(element: string | ElementTarget, options: BrowserOptions = {}): Promise<Page> {
        return this.#act({ action: "hover", target: targetOf(element) }, options);
    }

    /** Turns the wheel: pixels to the right, and down. */
    async scroll(x: number, y: number, options: BrowserOptions = {}): Promise<Page> {
        return this.#act({ action: "scroll", x, y }, options);
    }

    /** Chooses files for a field, by their paths in the sandbox. */
    async upload(
        element: string | ElementTarget,
        files: readonly string[],
        options: BrowserOptions = {},
    ): Promise<Page> {
        return this.#act({ action: "upload", target: targetOf(element), files: [...files] }, options);
    }

    /** Makes a page the active one, by its id in `pages`. */
    async activatePage(id: string, options: BrowserOptions = {}): Promise<Page> {
        return this.#act({ action: "activate-page", id }, options);
    }

    /** Closes a page. */
    async closePage(id: string, options: BrowserOptions = {}): Promise<Page> {
        return this.#act({ action: "close-page", id }, options);
    }

    /** What pages wrote to their consoles, from the beginning or since a question before. */
    async console(since = 0): Promise<Entries<ConsoleEntry>> {
        return this.#entries("/v1/browser/console", since, consoleOf);
    }

    /** What pages fetched, from the beginning or since a question before. */
    async network(since = 0): Promise<Entries<NetworkEntry>> {
        return this.#entries("/v1/browser/network", since, networkOf);
    }

    /** What the last action fetched, as an HTTP archive without the values of secret headers. */
    async har(): Promise<Record<string, unknown>> {
        return recordOf(parsed(await this.#get("/v1/browser/har")));
    }

    /** Cookies and local storage, in the form that Playwright calls a storage state. They are secrets. */
    async storage(): Promise<Record<string, unknown>> {
        return recordOf(parsed(await this.#get("/v1/browser/storage")));
    }

    /** Sets cookies and local storage to what `storage` returned, so that a login need not be repeated. */
    async setStorage(state: Readonly<Record<string, unknown>>): Promise<void> {
        await this.#connection.perform({ method: "PUT", path: "/v1/browser/storage", json: state, repeatable: true });
    }

    async #get(path: string, query?: Record<string, string>): Promise<Uint8Array> {
        const request: Request = { method: "GET", path, repeatable: true, ...(query === undefined ? {} : { query }) };
        return (await this.#connection.perform(request)).body;
    }

    async #asked(
        path: string,
        json: object | undefined,
        { signal }: BrowserOptions,
        repeatable = false,
    ): Promise<Uint8Array> {
        const request: Request = { method: "POST", path, repeatable, signal, ...(json === undefined ? {} : { json }) };
        return (await this.#connection.perform(request)).body;
    }

    async #act(json: wire.BrowserAct, options: BrowserOptions): Promise<Page> {
        return pageOf(parsed(await this.#asked("/v1/browser/act", json, options)));
    }

    async #entries<T>(path: string, since: number, entryOf: (value: unknown) => T): Promise<Entries<T>> {
        const body = await this.#get(path, { since: String(countOf("since", since)) });
        const told = new Fields<wire.BrowserConsole>(parsed(body), "the entries");
        return { entries: told.list("entries").map(entryOf), next: told.count("next") };
    }
}
