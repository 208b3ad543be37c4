"""The bodies of requests and answers, as a gateway describes them.

Made by `generate.py` from its openapi.json. Do not change it by hand.
"""

from __future__ import annotations

from typing import Literal, TypedDict


class Capabilities(TypedDict):
    api: str
    gateway_version: str
    runtime: str
    tenant: str
    capabilities: CapabilitySet


class CapabilitySet(TypedDict):
    isolation: Literal["none", "process", "container", "virtual-machine"]
    stands_for: str | None
    images: bool
    commands: bool
    host_directories: bool
    volumes: bool
    limit_cpus: bool
    limit_memory: bool
    limit_disk: bool
    limit_processes: bool
    resource_factor: bool
    gpus: bool
    network_policy: bool
    ports: bool
    labels: bool
    users: bool
    confine: bool
    edge_secrets: bool
    audit: bool
    runtime_classes: bool
    pause: bool
    pause_keeps_processes: bool
    logs: bool
    follow_logs: bool
    time_to_live: bool
    idle_stop: bool
    keep_alive: bool
    orphans: bool
    snapshots: bool
    warm: bool


class CreateRequest(TypedDict, total=False):
    """A sandbox that is wanted. What the runtime cannot do is refused with 501."""

    session_id: str | None
    image: str | None
    command: list[str] | None
    working_dir: str | None
    environment: dict[str, str]
    secrets: dict[str, str]
    session_api_key: str | None
    workspace: Literal["temporary", "directory", "volume"]
    labels: dict[str, str]
    plugins: list[str]
    resources: dict[str, object]
    network: Literal["full", "none"] | dict[str, object] | None
    ports: list[dict[str, object]]
    user: dict[str, object] | None
    runtime_class: str | None
    ttl_seconds: int | None
    idle_seconds: int | None
    kept: bool | None


class Error(TypedDict):
    """An error of the native API."""

    error: dict[str, object]


class ExtendRequest(TypedDict):
    ttl_seconds: int


class ForkRequest(TypedDict, total=False):
    session_id: str | None


class KeptSnapshot(TypedDict):
    image: str
    name: str
    session_id: str | None
    created_at: str | None


class Port(TypedDict):
    name: str
    port: int | None
    url: str | None


class Sandbox(TypedDict):
    id: str
    session_id: str
    state: Literal["pending", "running", "paused", "stopped", "failed", "crash_looping", "unknown"]
    reason: str
    url: str
    session_api_key: str | None
    ports: list[Port]
    labels: dict[str, str]
    image: str | None
    workspace: str | None
    kept: bool
    created_at: str | None
    expires_at: str | None
    restarts: dict[str, object]


class SandboxList(TypedDict):
    sandboxes: list[Sandbox]
    next_cursor: str | None


class Snapshot(TypedDict):
    image: str


class SnapshotRequest(TypedDict):
    name: str


class Snapshots(TypedDict):
    snapshots: list[KeptSnapshot]
