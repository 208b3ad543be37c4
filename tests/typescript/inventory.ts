// Which public functions there are, and which were used.

import * as gloveport from "gloveport";

export class Inventory {
    readonly there = new Set<string>();
    readonly #used = new Set<string>();

    constructor() {
        for (const [name, value] of Object.entries(gloveport)) {
            if (typeof value !== "function" || value.prototype === undefined || value.prototype instanceof Error)
                continue;
            this.#watch(`${name}.prototype`, value.prototype as object, ["constructor"]);
            this.#watch(name, value, ["length", "name", "prototype"]);
        }
    }

    missing(): string[] {
        return [...this.there].filter((label) => !this.#used.has(label)).sort();
    }

    #watch(owner: string, object: object, leaveOut: readonly string[]): void {
        for (const member of Reflect.ownKeys(object)) {
            if (leaveOut.includes(String(member))) continue;
            const label = `${owner}.${String(member)}`;
            const found = Object.getOwnPropertyDescriptor(object, member) ?? {};
            const used = this.#used;
            const { value, get } = found as { value?: unknown; get?: () => unknown };
            if (typeof value === "function") {
                found.value = function (this: unknown, ...given: unknown[]): unknown {
                    used.add(label);
                    return Reflect.apply(value, this, given);
                };
            } else if (get !== undefined) {
                found.get = function (this: unknown): unknown {
                    used.add(label);
                    return Reflect.apply(get, this, []);
                };
            } else {
                continue;
            }
            this.there.add(label);
            Object.defineProperty(object, member, found);
        }
    }
}
