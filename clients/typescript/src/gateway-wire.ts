// The bodies of requests and answers, as a gateway describes them.
//
// Made by `generate.mjs` from its openapi.json. Do not change it by hand.

export interface Capabilities {
    /** The version of the native API. */
    api: string;
    gateway_version: string;
    /** The name of the runtime. */
    runtime: string;
    /** The tenant of the key. */
    tenant: string;
    capabilities: CapabilitySet;
}

export interface CapabilitySet {
    /** What keeps a sandbox apart from the machine. */
    isolation: "none" | "process" | "container" | "virtual-machine";
    /** Which runtime of OpenHands it stands for. */
    stands_for: string | null;
    images: boolean;
    commands: boolean;
    host_directories: boolean;
    volumes: boolean;
    limit_cpus: boolean;
    limit_memory: boolean;
    limit_disk: boolean;
    limit_processes: boolean;
    resource_factor: boolean;
    gpus: boolean;
    network_policy: boolean;
    ports: boolean;
    labels: boolean;
    users: boolean;
    confine: boolean;
    edge_secrets: boolean;
    audit: boolean;
    runtime_classes: boolean;
    pause: boolean;
    pause_keeps_processes: boolean;
    logs: boolean;
    follow_logs: boolean;
    time_to_live: boolean;
    idle_stop: boolean;
    keep_alive: boolean;
    orphans: boolean;
    snapshots: boolean;
    warm: boolean;
}

/** A sandbox that is wanted. What the runtime cannot do is refused with 501. */
export interface CreateRequest {
    /** The session it is for; a new one by default. A session has one sandbox. */
    session_id?: string | null;
    /** The image; the runtime's own by default. */
    image?: string | null;
    /** A program instead of the server of gloveport, where the runtime can. */
    command?: string[] | null;
    /** Directory in which the command starts. */
    working_dir?: string | null;
    /** Variables of the server and its tools. */
    environment?: Record<string, string>;
    /** More variables, which are never logged, shown or stored where others can read them. */
    secrets?: Record<string, string>;
    /** The key of its server; one is made by default. */
    session_api_key?: string | null;
    /** Where the work is. Others than `temporary` are refused. */
    workspace?: "temporary" | "directory" | "volume";
    /**
     * Labels to find it by. Names that begin with gloveport-gateway, gloveport-tenant or gloveport-session are the
     * gateway's.
     */
    labels?: Record<string, string>;
    /** Plugins of the server: jupyter, agent_skills, vscode. */
    plugins?: string[];
    /** What it may use up. What is not set has no limit of its own. */
    resources?: Record<string, unknown>;
    /** Whom it may talk to. */
    network?: null | "full" | "none" | Record<string, unknown>;
    /** Ports of programs that get URLs. */
    ports?: (Record<string, unknown>)[];
    user?: Record<string, unknown> | null;
    /** How it is kept apart, for engines with several ways. */
    runtime_class?: string | null;
    /** It is deleted this long after it was made. The limits of the gateway and of the tenant may be shorter. */
    ttl_seconds?: number | null;
    /** It is stopped when nobody has asked it anything for this long. */
    idle_seconds?: number | null;
    /** False for one that its client ends. */
    kept?: boolean | null;
}

/** An error of the native API. */
export interface Error {
    error: Record<string, unknown>;
}

export interface ExtendRequest {
    /** How long it shall live from now on. */
    ttl_seconds: number;
}

export interface ForkRequest {
    /** The session of the new sandbox; a new one by default. */
    session_id?: string | null;
}

export interface KeptSnapshot {
    /** The name under which the engine knows it, for `image`. */
    image: string;
    /** The name that it was asked for. */
    name: string;
    /** The session whose files they are, where that is known. */
    session_id: string | null;
    /** When it was made, where that is known. */
    created_at: string | null;
}

export interface Port {
    name: string;
    /** The port in the sandbox. */
    port: number | null;
    /** Where clients reach it. */
    url: string | null;
}

export interface Sandbox {
    /** The id of the sandbox. */
    id: string;
    /** The session it is for, as its tenant calls it. */
    session_id: string;
    /** What it does. */
    state: "pending" | "running" | "paused" | "stopped" | "failed" | "crash_looping" | "unknown";
    /** Why it is so; empty where there is nothing to say. */
    reason: string;
    /** The URL of its server. */
    url: string;
    /** The key that its server asks for, as X-Session-API-Key. */
    session_api_key: string | null;
    /** Ports of programs that have URLs. */
    ports: Port[];
    /** Its labels. */
    labels: Record<string, string>;
    /** The image it was made from. */
    image: string | null;
    /** Where the work is, as a path in the sandbox. */
    workspace: string | null;
    /** False for one that its client ends. */
    kept: boolean;
    /** When it was made. */
    created_at: string | null;
    /** When it ends by itself. */
    expires_at: string | null;
    /** How often the engine has started it anew, and why. */
    restarts: Record<string, unknown>;
}

export interface SandboxList {
    /** The oldest first. */
    sandboxes: Sandbox[];
    /** Where the next page begins; null on the last one. */
    next_cursor: string | null;
}

export interface Snapshot {
    /** The name under which the engine knows it, for `image`. */
    image: string;
}

export interface SnapshotRequest {
    /** Name of the snapshot. */
    name: string;
}

export interface Snapshots {
    snapshots: KeptSnapshot[];
}
