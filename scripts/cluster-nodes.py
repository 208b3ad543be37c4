#!/usr/bin/env python3
"""Simulated nodes for scripts/cluster, which calls this.

usage: cluster-nodes.py SERVER KEYS run           keep the nodes alive, and their pods running, until ended
       cluster-nodes.py SERVER KEYS set N [open]  have N nodes, sim-1 to sim-N; without `open` they have a taint

SERVER is HOST:PORT of the API server, KEYS the directory with ca.crt, admin.crt and admin.key. A node is simulated if
it has the label `gloveport-test/node=simulated`. While it has the label `gloveport-test/lost` it is silent, and what
its pods should do does not happen.

Exit codes: 0 done, 1 failed, 2 wrong usage.
"""

import http.client
import itertools
import json
import queue
import ssl
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote, urlencode

LABEL = {"gloveport-test/node": "simulated"}
SELECTOR = "gloveport-test/node=simulated"
LOST = "gloveport-test/lost"
TAINT = {"key": "gloveport-test/simulated", "value": "true", "effect": "NoSchedule"}
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
LEASE_SECONDS = 40
RENEW_SECONDS = 10
WORKERS = 8
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"


class Refused(Exception):
    """The API server answered with an error."""

    def __init__(self, status, text):
        super().__init__(f"{status}: {text}")
        self.status = status


class Api:
    """Requests to the API server, over one connection for each thread."""

    def __init__(self, server, keys):
        self.server = server
        self.tls = ssl.create_default_context(cafile=f"{keys}/ca.crt")
        self.tls.load_cert_chain(f"{keys}/admin.crt", f"{keys}/admin.key")
        self.local = threading.local()

    def connect(self, limit):
        return http.client.HTTPSConnection(self.server, timeout=limit, context=self.tls)

    def request(self, method, path, body=None, kind="application/json"):
        data = None if body is None else json.dumps(body)
        connection = getattr(self.local, "connection", None)
        if connection is None:
            connection = self.local.connection = self.connect(30)
        try:
            connection.request(method, path, data, {"Content-Type": kind} if data else {})
            response = connection.getresponse()
            text = response.read()
        except (OSError, http.client.HTTPException):
            connection.close()
            self.local.connection = None
            raise
        if response.status >= 300:
            raise Refused(response.status, text.decode(errors="replace")[:300])
        return json.loads(text)

    def nodes(self):
        return self.request("GET", "/api/v1/nodes?" + urlencode({"labelSelector": SELECTOR}))["items"]

    def watch(self, path, version):
        """Yields the events of a watch until the server ends it."""
        connection = self.connect(90)
        try:
            parameters = {"watch": 1, "resourceVersion": version, "timeoutSeconds": 60}
            connection.request("GET", f"{path}?{urlencode(parameters)}")
            response = connection.getresponse()
            if response.status >= 300:
                raise Refused(response.status, response.read().decode(errors="replace")[:300])
            while line := response.readline():
                yield json.loads(line)
        finally:
            connection.close()


def now():
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def pod_path(pod):
    return f"/api/v1/namespaces/{quote(pod['metadata']['namespace'])}/pods/{quote(pod['metadata']['name'])}"


# --- set: which nodes there are ------------------------------------------------------------------------------------


def node_status(condition="True"):
    reason = {"True": "KubeletReady", "Unknown": "NodeStatusUnknown"}[condition]
    moment = now()
    return {
        "status": {
            "conditions": [
                {"type": kind, "status": status, "reason": why, "lastHeartbeatTime": moment, "lastTransitionTime": moment}
                for kind, status, why in [
                    ("Ready", condition, reason),
                    ("MemoryPressure", "False", "KubeletHasSufficientMemory"),
                    ("DiskPressure", "False", "KubeletHasNoDiskPressure"),
                    ("PIDPressure", "False", "KubeletHasSufficientPID"),
                ]
            ]
        }
    }


def create_node(api, name, taints):
    node = {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", **LABEL}},
        "spec": {"taints": taints},
    }
    try:
        api.request("POST", "/api/v1/nodes", node)
    except Refused as refused:
        if refused.status != 409:
            raise
        # It is there, with the taints of the last call and what the cluster added.
        node = api.request("GET", f"/api/v1/nodes/{name}")
        kept = [taint for taint in node["spec"].get("taints", []) if taint["key"] != TAINT["key"]]
        api.request("PATCH", f"/api/v1/nodes/{name}", {"spec": {"taints": kept + taints}}, MERGE)
        return
    amounts = {"cpu": "256", "memory": "1Ti", "ephemeral-storage": "1Ti", "pods": "1000"}
    status = node_status()
    status["status"] |= {
        "capacity": amounts,
        "allocatable": amounts,
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}, {"type": "Hostname", "address": name}],
        "nodeInfo": {
            key: "simulated"
            for key in ("machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "containerRuntimeVersion")
        }
        | {"kubeletVersion": "v1.20.2", "kubeProxyVersion": "v1.20.2", "operatingSystem": "linux", "architecture": "amd64"},
    }
    api.request("PATCH", f"/api/v1/nodes/{name}/status", status, STRATEGIC)


def delete(api, path):
    try:
        api.request("DELETE", path, {"gracePeriodSeconds": 0})
    except Refused as refused:
        if refused.status != 404:
            raise


def set_nodes(api, count, open_to_all):
    wanted = {f"sim-{number}" for number in range(1, count + 1)}
    surplus = {node["metadata"]["name"] for node in api.nodes()} - wanted
    for name in surplus:
        # No pod is placed on it any more.
        api.request("PATCH", f"/api/v1/nodes/{name}", {"spec": {"unschedulable": True}}, MERGE)
    with ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(lambda name: create_node(api, name, [] if open_to_all else [TAINT]), wanted))
        pods = api.request("GET", "/api/v1/pods")["items"] if surplus else []
        gone = [pod_path(pod) for pod in pods if pod["spec"].get("nodeName") in surplus]
        list(pool.map(lambda path: delete(api, path), gone))
        list(pool.map(lambda name: delete(api, f"/api/v1/nodes/{name}"), surplus))


# --- run: what nodes do --------------------------------------------------------------------------------------------


class Nodes:
    """All simulated nodes and their pods."""

    def __init__(self, api):
        self.api = api
        self.lock = threading.Lock()
        # The names of those that are alive, and when the lease of each is to be renewed; the names of the others.
        self.alive = {}
        self.lost = set()
        # Pods that are bound to any node, by their path.
        self.pods = {}
        # What is being done to which pod; it is done once at a time.
        self.busy = set()
        self.work = queue.SimpleQueue()
        self.addresses = itertools.count(1)

    def renew(self, node):
        name = node["metadata"]["name"]
        owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": node["metadata"]["uid"]}
        moment = time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime())
        spec = {"holderIdentity": name, "leaseDurationSeconds": LEASE_SECONDS, "renewTime": moment}
        lease = {"metadata": {"name": name, "ownerReferences": [owner]}, "spec": spec}
        try:
            self.api.request("PATCH", f"{LEASES}/{name}", lease, MERGE)
        except Refused as refused:
            if refused.status != 404:
                raise
            self.api.request("POST", LEASES, lease)

    def round(self):
        """Renews what is due, and takes up nodes that are new, lost, or found."""
        alive = {}
        lost = set()
        for node in self.api.nodes():
            name = node["metadata"]["name"]
            conditions = {entry["type"]: entry["status"] for entry in node["status"].get("conditions", [])}
            condition = "True"
            if LOST in node["metadata"]["labels"]:
                condition = "Unknown"
                lost.add(name)
            else:
                alive[name] = self.alive.get(name, 0)
                if alive[name] <= time.monotonic():
                    self.renew(node)
                    alive[name] = time.monotonic() + RENEW_SECONDS
            if conditions.get("Ready", condition) != condition:
                self.api.request("PATCH", f"/api/v1/nodes/{name}/status", node_status(condition), STRATEGIC)
        with self.lock:
            self.alive = alive
            self.lost = lost
            for path in self.pods:
                self.attend(path)

    def attend(self, path):
        """Has done what a pod needs; the lock is held."""
        if path not in self.busy and self.needs(self.pods[path]) is not None:
            self.busy.add(path)
            self.work.put(path)

    def needs(self, pod):
        """What is to be done with a pod, as a method, if anything; the lock is held."""
        node = pod["spec"]["nodeName"]
        ready = any(entry["type"] == "Ready" and entry["status"] == "True" for entry in pod["status"].get("conditions", []))
        if pod["status"].get("phase", "Pending") not in ("Pending", "Running"):
            ready = None
        if node in self.lost and ready:
            return self.lose
        if node in self.alive and "deletionTimestamp" in pod["metadata"]:
            return self.end
        if node in self.alive and ready is False:
            return self.start
        return None

    def serve(self):
        """Does what is to be done, in each of the worker threads."""
        while True:
            path = self.work.get()
            with self.lock:
                pod = self.pods.get(path)
                method = self.needs(pod) if pod else None
            try:
                if method is not None:
                    method(path, pod)
            except Refused as refused:
                # Another one was faster.
                if refused.status not in (404, 409):
                    print(f"{path}: {refused}", flush=True)
            except (OSError, http.client.HTTPException) as error:
                print(f"{path}: {error}", flush=True)
            finally:
                with self.lock:
                    self.busy.discard(path)

    def end(self, path, pod):
        preconditions = {"uid": pod["metadata"]["uid"]}
        self.api.request("DELETE", path, {"gracePeriodSeconds": 0, "preconditions": preconditions})

    def lose(self, path, pod):
        # The cluster does this for nodes that it finds lost, and not for those that say so.
        self.change(path, pod, {"conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": now()}]})

    def change(self, path, pod, status):
        # A pod of the same name that came since is another one.
        body = {"metadata": {"uid": pod["metadata"]["uid"]}, "status": status}
        # The watch may take a while.
        pod["status"] = self.api.request("PATCH", f"{path}/status", body, STRATEGIC)["status"]

    def start(self, path, pod):
        moment = pod["status"].get("startTime", now())
        number = next(self.addresses)
        address = pod["status"].get("podIP", f"127.{64 + (number >> 16) % 64}.{number >> 8 & 255}.{number & 255}")

        def containers(kind, state, ready):
            return [
                {
                    "name": container["name"],
                    "image": container.get("image", ""),
                    "imageID": "",
                    "containerID": f"simulated://{pod['metadata']['uid']}/{container['name']}",
                    "restartCount": 0,
                    "ready": True,
                    "started": ready,
                    "state": state,
                }
                for container in pod["spec"].get(kind, [])
            ]

        ended = {"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": moment, "finishedAt": moment}}
        status = {
            "phase": "Running",
            "podIP": address,
            "podIPs": [{"ip": address}],
            "hostIP": "127.0.0.1",
            "startTime": moment,
            "conditions": [
                {"type": kind, "status": "True", "lastTransitionTime": moment}
                for kind in ("PodScheduled", "Initialized", "ContainersReady", "Ready")
            ],
            "initContainerStatuses": containers("initContainers", ended, False),
            "containerStatuses": containers("containers", {"running": {"startedAt": moment}}, True),
        }
        self.change(path, pod, status)

    def keep(self, pod):
        """Takes up the state of a pod; the lock is held."""
        if "nodeName" in pod["spec"]:
            path = pod_path(pod)
            self.pods[path] = {key: pod[key] for key in ("metadata", "spec", "status")}
            self.attend(path)

    def follow(self):
        """Follows the pods, from a list on."""
        pods = self.api.request("GET", "/api/v1/pods")
        with self.lock:
            self.pods.clear()
            for pod in pods["items"]:
                self.keep(pod)
        version = pods["metadata"]["resourceVersion"]
        while True:
            for event in self.api.watch("/api/v1/pods", version):
                pod = event["object"]
                if event["type"] == "ERROR":
                    # What the watch should begin with is too old.
                    return
                version = pod["metadata"]["resourceVersion"]
                with self.lock:
                    if event["type"] == "DELETED":
                        self.pods.pop(pod_path(pod), None)
                    else:
                        self.keep(pod)

    def forever(self, what):
        while True:
            try:
                what()
            except (Refused, OSError, http.client.HTTPException, ValueError) as error:
                print(f"{what.__name__}: {error}", flush=True)
            time.sleep(1)

    def run(self):
        for _ in range(WORKERS):
            threading.Thread(target=self.serve, daemon=True).start()
        threading.Thread(target=self.forever, args=(self.follow,), daemon=True).start()
        self.forever(self.round)


def main(arguments):
    if len(arguments) == 3 and arguments[2] == "run":
        Nodes(Api(*arguments[:2])).run()
    elif len(arguments) in (4, 5) and arguments[2] == "set" and arguments[3].isdecimal() and arguments[4:] in ([], ["open"]):
        set_nodes(Api(*arguments[:2]), int(arguments[3]), bool(arguments[4:]))
    else:
        print(__doc__, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except (Refused, OSError) as error:
        sys.exit(f"cluster-nodes: failed: {error}")
