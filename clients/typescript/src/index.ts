/**
 * Sandboxes of gloveport: a shell, files, processes and IPython for an agent.
 *
 * ```ts
 * import { Sandbox } from "gloveport";
 *
 * await using box = await Sandbox.start();
 * console.log((await box.run("uname -a")).check().output);
 * ```
 *
 * @packageDocumentation
 */

export * from "./exports.js";
export { type AskedHost, type EventsOptions, Network, type NetworkState, type SessionEvent } from "./node/manage.js";
export { Gateway } from "./node/gateway.js";
export { findProgram } from "./node/program.js";
export { Sandbox, type StartOptions } from "./node/sandbox.js";
