// Cells in IPython kernels.

import { countOf, secondsOf, segment } from "./checks.js";
import { Collector, KEPT } from "./collector.js";
import type { Connection } from "./connection.js";
import { ConnectionLostError, GloveportError, ServerFailedError } from "./errors.js";
import { type Event, EventParser } from "./events.js";
import type { Answer } from "./exchange.js";
import { foreign } from "./fields.js";
import { LIMITS } from "./limits.js";
import { Cell, type CellError, type Display } from "./values.js";
import type * as wire from "./wire.js";

/** How a cell is run. */
export interface CellOptions {
    /** The kernel to run it in; one of a new name is started. `default` by default. */
    kernel?: string | undefined;
    /** Milliseconds after which the cell is interrupted; its `reason` is then `timed_out`. */
    timeoutMs?: number | undefined;
    /** Gets what the cell shows as text, as it comes. If it throws, the cell is interrupted. */
    onOutput?: ((text: string) => void) | undefined;
    /** Interrupts the cell, and throws its reason. */
    signal?: AbortSignal | undefined;
    /** Bytes of `stdout` and of `stderr` that are kept at most, the last ones: 16 MiB by default. */
    keep?: number | undefined;
}

const pathOf = (kernel: string, what: string): string => `/v1/kernels/${segment(kernel)}/${what}`;

/** What a cell has shown so far. */
class Shown {
    readonly #stdout: Collector;
    readonly #stderr: Collector;
    #result: Display | undefined;
    readonly #displays: Display[] = [];
    #size = 0;
    #error: CellError | undefined;

    constructor(keep: number) {
        this.#stdout = new Collector(keep);
        this.#stderr = new Collector(keep);
    }

    /** Keeps what an event shows, and returns its text. */
    take({ name, data }: Event): string {
        if (name === "stream") {
            const text = data.text("text");
            const stream = data.word("stream", "stdout", "stderr") === "stderr" ? this.#stderr : this.#stdout;
            stream.take(new TextEncoder().encode(text));
            return text;
        }
        if (name === "display") {
            const display: Display = data.record("data");
            this.#size += JSON.stringify(display).length;
            if (this.#size > LIMITS.answer) throw foreign(`a cell displays more than ${LIMITS.answer} bytes`);
            if (data.flag("is_result")) this.#result = display;
            else this.#displays.push(display);
            const text = display["text/plain"];
            return typeof text === "string" ? text : "";
        }
        if (name === "raised") {
            this.#error = { name: data.text("name"), value: data.text("value"), traceback: data.texts("traceback") };
            return this.#error.traceback.join("\n");
        }
        return "";
    }

    cell({ data }: Event): Cell {
        return new Cell({
            stdout: this.#stdout.text(),
            stderr: this.#stderr.text(),
            result: this.#result,
            displays: this.#displays,
            error: this.#error,
            reason: data.text("end") as wire.CellOutcome,
            kernelLostBefore: data.flag("kernel_lost_before"),
            dropped: this.#stdout.dropped + this.#stderr.dropped,
        });
    }
}

/** Runs a cell. It has no id by which it could be found, so it is sent only once. */
export async function run(connection: Connection, code: string, options: CellOptions): Promise<Cell> {
    const kernel = options.kernel ?? "default";
    const json: wire.CellRequest = { code };
    if (options.timeoutMs !== undefined) json.timeout = secondsOf("timeoutMs", options.timeoutMs);
    const query = { follow: "true", detail: "true" };
    const path = pathOf(kernel, "execute");
    const shown = new Shown(countOf("keep", options.keep ?? KEPT));
    options.signal?.throwIfAborted();
    let answer: Answer | undefined;
    try {
        answer = await connection.openPatiently({ method: "POST", path, query, json, signal: options.signal });
        const parser = new EventParser();
        for (let piece = await answer.read(); piece !== undefined; piece = await answer.read()) {
            for (const event of parser.feed(piece)) {
                if (event.name === "end") {
                    await answer.rest();
                    return shown.cell(event);
                }
                if (event.name === "failed") {
                    throw new ServerFailedError(event.data.text("message"), { code: "kernel_failed" });
                }
                const text = shown.take(event);
                if (text !== "") options.onOutput?.(text);
            }
        }
        throw new ConnectionLostError("the server ended the stream of a cell that has not ended");
    } catch (error) {
        if (!(error instanceof GloveportError) || options.signal?.aborted === true) await giveUp(connection, kernel);
        throw error;
    } finally {
        answer?.close();
    }
}

/** Interrupts the cell that runs, without patience: for who leaves. */
async function giveUp(connection: Connection, kernel: string): Promise<void> {
    try {
        const signal = AbortSignal.timeout(LIMITS.leaving);
        await connection.once({ method: "POST", path: pathOf(kernel, "interrupt"), signal });
    } catch {
        // It has ended, or nobody is there who could be told.
    }
}

/** Interrupts the cell that runs. */
export async function interrupt(connection: Connection, kernel: string): Promise<void> {
    await connection.perform({ method: "POST", path: pathOf(kernel, "interrupt") });
}

/** Ends a kernel, and starts another one of its name. */
export async function restart(connection: Connection, kernel: string): Promise<void> {
    await connection.perform({ method: "POST", path: pathOf(kernel, "restart") });
}
