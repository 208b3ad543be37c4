// Keeps the last bytes of something that may have any number of them.

/** Most bytes that are kept, unless the caller says something else. */
export const KEPT = 16 * 1024 * 1024;

/** The last bytes of an output. */
export class Collector {
    /** Bytes that were left out at the beginning. */
    dropped = 0;
    readonly #keep: number;
    #buffer = new Uint8Array(1024);
    #size = 0;

    constructor(keep: number) {
        this.#keep = keep;
    }

    take(data: Uint8Array): void {
        if (this.#size + data.length > this.#buffer.length) {
            this.#trim();
            // Twice the size, so that no byte is moved often.
            const room = 2 * (this.#size + data.length);
            if (room > this.#buffer.length) {
                const larger = new Uint8Array(room);
                larger.set(this.#buffer.subarray(0, this.#size));
                this.#buffer = larger;
            }
        }
        this.#buffer.set(data, this.#size);
        this.#size += data.length;
    }

    /** What is kept. */
    bytes(): Uint8Array {
        this.#trim();
        return this.#buffer.slice(0, this.#size);
    }

    /** The same as text. */
    text(): string {
        this.#trim();
        return new TextDecoder("utf-8", { ignoreBOM: true }).decode(this.#buffer.subarray(0, this.#size));
    }

    #trim(): void {
        const extra = this.#size - this.#keep;
        if (extra <= 0) return;
        this.#buffer.copyWithin(0, extra, this.#size);
        this.#size = this.#keep;
        this.dropped += extra;
    }
}
