// Says that the client of a sandbox is still there, as long as it is.
//
// A program that is killed and a page that is left cannot end what they have started. So their sandboxes end when nobody
// has used them for a while, and a client that is there uses them now and then.

/** How often it is said in the time after which the sandbox would end, and how much sooner if it could not be said. */
const [TIMES, SOONER] = [5, 4];
/** Milliseconds between two times, at least and at most, and for one attempt. */
const [SHORTEST, LONGEST, PATIENCE] = [100, 3_600_000, 30_000];

const EVERY = new Set<Presence>();
/** One for all of them. */
let timer: ReturnType<typeof setTimeout> | undefined;

/** A timer that keeps no program running. */
function quietTimer(milliseconds: number, fire: () => void): ReturnType<typeof setTimeout> {
    const made = setTimeout(fire, milliseconds);
    // A browser's has none.
    (made as unknown as { unref?: () => void }).unref?.();
    return made;
}

function plan(): void {
    clearTimeout(timer);
    let next = Number.POSITIVE_INFINITY;
    for (const each of EVERY) next = Math.min(next, each.due);
    if (next === Number.POSITIVE_INFINITY) return;
    timer = quietTimer(Math.max(next - performance.now(), 0), () => {
        const now = performance.now();
        for (const each of EVERY) if (each.due <= now) each.say();
        plan();
    });
}

/** Says it for one sandbox, until it is stopped or the sandbox is gone. */
export class Presence {
    /** When it is said next. */
    due: number;
    readonly #pause: number;
    readonly #patience: number;
    readonly #say: (signal: AbortSignal) => Promise<boolean>;
    #attempt: AbortController | undefined;
    #isOver: Promise<void> = Promise.resolve();
    /** How many want that nobody uses it now. */
    #holders = 0;

    /**
     * @param limitMs - for how long nobody may use the sandbox.
     * @param say - uses it; false if it has ended.
     */
    constructor(limitMs: number, say: (signal: AbortSignal) => Promise<boolean>) {
        this.#pause = Math.min(Math.max(limitMs / TIMES, SHORTEST), LONGEST);
        // So that there is time for another attempt.
        this.#patience = Math.min(Math.max(2 * this.#pause, 1000), PATIENCE);
        this.#say = say;
        this.due = performance.now() + this.#pause;
        EVERY.add(this);
        plan();
    }

    stop(): void {
        EVERY.delete(this);
        this.#attempt?.abort();
        plan();
    }

    /** Does something while it is not said: some gateways would wake what is being paused. */
    async without<T>(work: () => Promise<T>): Promise<T> {
        this.#holders += 1;
        try {
            await this.#isOver;
            return await work();
        } finally {
            this.#holders -= 1;
        }
    }

    /** Says it now. What fails is tried again soon. */
    say(): void {
        if (this.#holders > 0) {
            this.due = performance.now() + this.#pause / SOONER;
        } else {
            // Until it is done.
            this.due = Number.POSITIVE_INFINITY;
            this.#isOver = this.#once();
        }
    }

    async #once(): Promise<void> {
        const attempt = new AbortController();
        this.#attempt = attempt;
        const limit = quietTimer(this.#patience, () => attempt.abort());
        let pause = this.#pause;
        try {
            if (!(await this.#say(attempt.signal))) EVERY.delete(this);
        } catch {
            pause /= SOONER;
        }
        clearTimeout(limit);
        this.due = performance.now() + pause;
        plan();
    }
}
