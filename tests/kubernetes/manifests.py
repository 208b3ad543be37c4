"""Compares what Kustomize, Helm, the provider and the documentation say; see `manifests`.

usage: manifests.py same ONE OTHER          two files with objects; Helm's own labels and annotations do not count
       manifests.py role FILE RUST DOCS     the role has what the provider asks for, and the documentation lists each right
       manifests.py rules FILE GRANTED      what a cluster grants (a SelfSubjectRulesReview as JSON) is what the role has
       manifests.py nothing GRANTED         the same where nothing is granted
       manifests.py changes ONE OTHER       prints the path of each value that differs
       manifests.py restricted FILE         all pods in it keep to the pod security standard `restricted`

Exit codes: 0 so it is, 1 it is not, with the difference.
"""

import json
import re
import sys
from pathlib import Path

import yaml

# What API servers ask for besides the rights that `doctor` checks, or what a backend can do without.
MORE = {
    ("", "configmaps/finalizers"): {"update"},
    ("", "events"): {"list"},
    ("networking.k8s.io", "ingresses"): {"create", "patch"},
}


def objects(file):
    """The objects of a file by kind, namespace and name."""
    found = {}
    for one in yaml.safe_load_all(Path(file).read_text()):
        if one is None:
            continue
        meta = one["metadata"]
        key = (one["kind"], meta.get("namespace", ""), meta["name"])
        if key in found:
            raise SystemExit(f"{file} has {key} twice")
        found[key] = one
    return found


def without_helm(one):
    """An object without what Helm writes for itself."""
    meta = dict(one["metadata"])
    own = re.compile(r"helm\.sh/|meta\.helm\.sh/|app\.kubernetes\.io/(instance|managed-by)$")
    for kind in ("labels", "annotations"):
        left = {key: value for key, value in meta.pop(kind, {}).items() if not own.match(key)}
        if left:
            meta[kind] = left
    return {**one, "metadata": meta}


def differences(one, other, path=""):
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted(one.keys() | other.keys(), key=str):
            yield from differences(one.get(key), other.get(key), f"{path}.{key}".lstrip("."))
    elif one != other:
        yield f"{path}: {json.dumps(one)} is not {json.dumps(other)}"


def named(found):
    return {"/".join(key): without_helm(one) for key, one in found.items()}


def same(one, other):
    return list(differences(named(objects(one)), named(objects(other))))


def changes(one, other):
    for line in same(one, other):
        print(line.split(": ", 1)[0])
    return []


def rights_of(rules):
    """Verbs by group and resource; a rule for single objects or with a wildcard is none of ours."""
    rights = {}
    for rule in rules:
        if rule.get("resourceNames"):
            raise SystemExit(f"a rule for single objects: {rule}")
        for group in rule.get("apiGroups") or [""]:
            for resource in rule["resources"]:
                rights.setdefault((group, resource), set()).update(rule["verbs"])
    return rights


def role_rights(file):
    roles = [one for (kind, _, _), one in objects(file).items() if kind == "Role"]
    if len(roles) != 1:
        raise SystemExit(f"{file} has {len(roles)} roles")
    return rights_of(roles[0]["rules"])


def compare(what, one, other):
    for key in sorted(one.keys() | other.keys()):
        missing, more = other.get(key, set()) - one.get(key, set()), one.get(key, set()) - other.get(key, set())
        for verbs, word in ((missing, "lacks"), (more, "has beside")):
            if verbs:
                yield f"{what} {word}: {', '.join(sorted(verbs))} {key[1]} ({key[0] or 'core'})"


def role(file, rust, docs):
    have = role_rights(file)
    wanted = {}
    entry = re.compile(r'\("([a-z0-9.]*)", "([a-z/]+)", &\[([^\]]*)\]\)')
    for group, resource, verbs in entry.findall(Path(rust).read_text()):
        wanted.setdefault((group, resource), set()).update(re.findall(r'"([a-z]+)"', verbs))
    if not wanted:
        raise SystemExit(f"{rust} names no right in a way that is understood here")
    for key, verbs in MORE.items():
        wanted.setdefault(key, set()).update(verbs)
    found = list(compare("the role", have, wanted))
    # | `configmaps` | create, get | what for |
    told = {}
    row = re.compile(r"^\| `([a-z/]+)`(?: \(`([a-z0-9.]+)`\))? \| ([a-z, ]+) \| .+ \|$", re.MULTILINE)
    for resource, group, verbs in row.findall(Path(docs).read_text()):
        told.setdefault((group, resource), set()).update(verbs.split(", "))
    return found + list(compare("the documentation", told, have))


def granted(file):
    """What a review grants, without what every user of a cluster may ask about itself."""
    status = json.loads(Path(file).read_text())["status"]
    rules = [rule for rule in status["resourceRules"] if "authorization.k8s.io" not in rule.get("apiGroups", [])]
    rules = [rule for rule in rules if "authentication.k8s.io" not in rule.get("apiGroups", [])]
    return rights_of(rules)


def rules(file, review):
    return list(compare("the account", granted(review), role_rights(file)))


def nothing(review):
    return list(compare("the account", granted(review), {}))


def templates(found):
    for (kind, _, name), one in found.items():
        if kind == "Pod":
            yield name, one["spec"]
        elif "template" in one.get("spec", {}):
            yield name, one["spec"]["template"]["spec"]


def restricted(file):
    """The standard of https://kubernetes.io/docs/concepts/security/pod-security-standards, for the fields that are used."""
    found, count = [], 0
    volumes = {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret"}
    for name, spec in templates(objects(file)):
        count += 1
        pod = spec.get("securityContext", {})
        for field in ("hostNetwork", "hostPID", "hostIPC"):
            if spec.get(field):
                found.append(f"{name}: {field}")
        for volume in spec.get("volumes", []):
            if not set(volume) - {"name"} <= volumes:
                found.append(f"{name}: volume {volume}")
        for one in spec.get("initContainers", []) + spec["containers"]:
            own = one.get("securityContext", {})
            wanted = {
                "runAsNonRoot": (own.get("runAsNonRoot", pod.get("runAsNonRoot")), True),
                "runAsUser 0": (own.get("runAsUser", pod.get("runAsUser")) == 0, False),
                "allowPrivilegeEscalation": (own.get("allowPrivilegeEscalation"), False),
                "privileged": (own.get("privileged", False), False),
                "capabilities": (own.get("capabilities", {}), {"drop": ["ALL"]}),
                "seccompProfile": (
                    own.get("seccompProfile", pod.get("seccompProfile", {})).get("type"),
                    "RuntimeDefault",
                ),
                "hostPort": (any("hostPort" in port for port in one.get("ports", [])), False),
            }
            found += [f"{name}/{one['name']}: {key} is {is_}" for key, (is_, want) in wanted.items() if is_ != want]
    return found if count else [f"{file} has no pods"]


def main():
    tasks = {task.__name__: task for task in (same, role, rules, nothing, changes, restricted)}
    if len(sys.argv) < 2 or sys.argv[1] not in tasks:
        print(__doc__, file=sys.stderr)
        return 2
    found = tasks[sys.argv[1]](*sys.argv[2:])
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
