// A person in front of VS Code: a browser, its window, and what is done in it.

import { createRequire } from "node:module";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const START_LIMIT = 60_000;
const STEP_LIMIT = 30_000;

// Nothing but the pages that are opened is asked for over the network.
const FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
];

/** A browser with an empty profile; `close` ends it and removes the profile. */
export async function openBrowser(vscode) {
    const { chromium } = createRequire(join(vscode, "package.json"))("playwright-core");
    const profile = mkdtempSync(join(tmpdir(), "gloveport-browser-"));
    const context = await chromium.launchPersistentContext(profile, {
        executablePath: process.env.GLOVEPORT_TEST_CHROMIUM ?? "/usr/bin/chromium",
        args: FLAGS,
        headless: true,
        viewport: { width: 1280, height: 800 },
    });
    return {
        context,
        close: async () => {
            await context.close();
            rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
        },
    };
}

/** Opens `url` and `file` in its explorer, writes `text` at its beginning, saves it and waits for `saved`. */
export async function editFile(context, { url, file, text, saved, picture }) {
    const page = await context.newPage();
    const said = [];
    page.on("console", (message) => message.type() === "error" && said.push(message.text()));
    page.on("requestfailed", (request) => said.push(`${request.url()}: ${request.failure()?.errorText}`));
    try {
        const answer = await page.goto(url, { timeout: START_LIMIT });
        if (!answer.ok()) throw new Error(`the page was answered with ${answer.status()}: ${(await answer.text()).slice(0, 300)}`);
        await page.locator(".monaco-workbench").waitFor({ timeout: START_LIMIT });
        // The row of the file says that the workspace was read through the connection to the server.
        await page.locator(".explorer-folders-view").getByText(file, { exact: true }).waitFor({ timeout: START_LIMIT });
        await openFile(page, file);
        await writeAndSave(page, text);
        await saved();
    } catch (error) {
        await page.screenshot({ path: picture }).catch(() => {});
        throw new Error(`${error.message}\n  picture: ${picture}\n  the browser said: ${said.slice(0, 10).join("\n    ") || "nothing"}`);
    } finally {
        await page.close();
    }
}

async function openFile(page, file) {
    await page.locator(".explorer-folders-view").getByText(file, { exact: true }).dblclick({ timeout: STEP_LIMIT });
    await page.locator(`.tab.active[data-resource-name="${file}"]`).waitFor({ timeout: STEP_LIMIT });
}

async function writeAndSave(page, text) {
    const editor = page.locator(".editor-instance .view-lines");
    await editor.first().click({ timeout: STEP_LIMIT });
    await page.keyboard.press("Control+Home");
    await page.keyboard.insertText(text);
    await page.locator(".view-line").filter({ hasText: text.trim() }).first().waitFor({ timeout: STEP_LIMIT });
    await page.keyboard.press("Control+S");
}
