// Follows a command to its end.
//
// A command has an id that this side chooses, and its output has offsets. When the connection breaks, the command is
// asked for by its id, from the offset that was reached: it is never sent a second time once it may have arrived.

import { countOf, segment } from "./checks.js";
import { Collector } from "./collector.js";
import { type Connection, type Request, Retry } from "./connection.js";
import { ConnectionLostError, NotFoundError, ServerFailedError, UnreachableError } from "./errors.js";
import { EventParser } from "./events.js";
import type { Answer } from "./exchange.js";
import type { Fields } from "./fields.js";
import { Result, type Usage } from "./values.js";
import type * as wire from "./wire.js";

/** How a stream of a command ends. */
export type End = Fields<wire.ExecStatus>;

/** What is being followed: from where, and what is known of it. */
export class Progress {
    offset: number;
    missing = 0;
    readonly collector: Collector;

    constructor(offset: number, keep: number) {
        this.offset = offset;
        this.collector = new Collector(countOf("keep", keep));
    }
}

/** The path of a command, or of a part of it. */
export const pathOf = (id: string, what = ""): string => `/v1/exec/${segment(id)}${what}`;

/**
 * Follows a command to its end, from an offset, and hands out its output as text. `first` is the request that starts
 * it.
 */
export async function* follow(
    connection: Connection,
    id: string,
    progress: Progress,
    signal: AbortSignal | undefined,
    first?: Request,
): AsyncGenerator<string, End> {
    const retry = new Retry();
    const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
    let start = first;
    let isKnown = first === undefined;
    for (;;) {
        let answer: Answer | undefined;
        try {
            answer = await connection.open(start ?? following(id, progress.offset, signal));
            isKnown = true;
            retry.opened();
            const parser = new EventParser();
            for (let piece = await answer.read(); piece !== undefined; piece = await answer.read()) {
                for (const { name, data } of parser.feed(piece)) {
                    if (name === "output") {
                        const bytes = data.bytes("text", "base64");
                        retry.progressed();
                        progress.offset = data.count("offset") + bytes.length;
                        progress.collector.take(bytes);
                        const text = decoder.decode(bytes, { stream: true });
                        if (text !== "") yield text;
                    } else if (name === "gap") {
                        const to = data.count("to");
                        progress.missing += Math.max(0, to - progress.offset);
                        progress.offset = to;
                    } else if (name === "error") {
                        throw new ServerFailedError(data.text("message"), { code: "output_unreadable" });
                    } else if (name === "exit") {
                        const text = decoder.decode();
                        if (text !== "") yield text;
                        await answer.rest();
                        return data as Fields<unknown> as End;
                    }
                }
            }
            throw new ConnectionLostError("the server ended the stream of a command that has not ended");
        } catch (error) {
            if (error instanceof NotFoundError && !isKnown) throw maybeRun(id, error);
            if (!(error instanceof UnreachableError || error instanceof ConnectionLostError)) throw error;
            // What was not sent is sent the next time.
            if (error instanceof ConnectionLostError) start = undefined;
            await retry.wait(error, connection, signal);
        } finally {
            answer?.close();
        }
    }
}

function following(id: string, offset: number, signal: AbortSignal | undefined): Request {
    const query = { offset: String(offset) };
    return { method: "GET", path: pathOf(id, "/output"), query, headers: { Accept: "text/event-stream" }, signal };
}

export function maybeRun(id: string, cause: unknown): ConnectionLostError {
    return new ConnectionLostError(
        `the connection broke while the command \`${id}\` was sent, and the server does not know it: ` +
            "it did not arrive, or the server has been started anew",
        { remedy: "find out whether it ran before you run it again", cause },
    );
}

export function resultOf(id: string, command: string, end: End, progress: Progress): Result {
    const usage = end.maybeFields<wire.ExecUsage>("usage");
    const output = progress.collector.text();
    return new Result({
        id,
        command,
        output,
        exitCode: end.maybeNumber("exit_code"),
        reason: reasonOf(end.text("reason")),
        message: end.maybeText("message") ?? "",
        cwd: end.maybeText("cwd"),
        usage: usage === undefined ? undefined : usageOf(usage),
        dropped: progress.collector.dropped,
        missing: progress.missing,
    });
}

/** A newer server may have other reasons, and a program that shows them needs no newer client. */
export const reasonOf = (text: string): wire.ExecReason => text as wire.ExecReason;

function usageOf(told: Fields<wire.ExecUsage>): Usage {
    const peakMemoryBytes = told.maybeCount("peak_memory_bytes");
    const writtenBytes = told.maybeCount("written_bytes");
    return {
        wallMs: told.number("wall_seconds") * 1000,
        cpuMs: told.number("cpu_seconds") * 1000,
        ...(peakMemoryBytes === undefined ? {} : { peakMemoryBytes }),
        ...(writtenBytes === undefined ? {} : { writtenBytes }),
    };
}
