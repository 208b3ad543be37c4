// Checks: one line each, and the last line.

import { inspect } from "node:util";

const counts = { passed: 0, FAILED: 0, skipped: 0 };

export function tell(word: keyof typeof counts, what: string): void {
    counts[word] += 1;
    process.stdout.write(`${word.padEnd(7)} typescript: ${what}\n`);
}

export function check(what: string, isSo: boolean, told: unknown = ""): void {
    const shown = typeof told === "string" ? told : inspect(told, { depth: 4 });
    tell(isSo ? "passed" : "FAILED", isSo ? what : `${what}: ${shown.slice(-1500)}`);
}

/** A check that has failed if it throws, or takes longer than so many seconds. */
export async function attempt(what: string, body: () => Promise<void>, seconds = 60): Promise<void> {
    const begun = performance.now();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<never>((_, reject) => {
        timer = setTimeout(() => reject(new Error(`it takes longer than ${seconds} s`)), seconds * 1000);
    });
    try {
        await Promise.race([body(), late]);
        check(what, true);
        const took = (performance.now() - begun) / 1000;
        if (took > 5) measured(`in ${took.toFixed(1)} s`);
    } catch (error) {
        tell("FAILED", `${what}\n${inspect(error).slice(0, 3000)}`);
    } finally {
        clearTimeout(timer);
    }
}

export function measured(what: string): void {
    process.stdout.write(`        ${what}\n`);
}

export function finish(): never {
    process.stdout.write(`${counts.passed} passed, ${counts.FAILED} failed, ${counts.skipped} skipped\n`);
    process.exit(counts.FAILED > 0 ? 1 : 0);
}
