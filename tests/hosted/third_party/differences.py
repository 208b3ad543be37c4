"""What differs between what OpenHands 0.62's own runtimes leave in a service and what ours do, with the reason.

By field: what theirs has, what ours has, why. `None` is nothing, `...` is a value that is not told here, as it is new each time or long.
A field may be a pattern. A difference that is not listed fails, and so does a listed one that is no more. `STEP sandboxes` is the
number of sandboxes after a step: made, kept (somebody else has used it and gone), rests, resumed, closed.
"""

BOX = "an environment of Python in the image serves theirs; ours brings one program along, whatever the image has"
PLACE = "the port of the server; ours is a setting"
MARKS = "what a list, another backend and the garbage collection know ours by"
PORTS = "ports for programs of the agent are named, and told to them"
KEY = "our server asks for a key; theirs is open to everybody who knows its URL"
LIMIT = "one that nobody holds ends, or rests, after a time that is a setting"

DIFFERENCES = {
    "e2b": {
        "templateID": ("code-interpreter-v1", "base", BOX + "; the template is a setting"),
        "alias": ("code-interpreter-v1", "base", "as the template"),
        "metadata.gloveport.*": (None, ..., MARKS),
        "limit": (300, 900, "theirs ends five minutes after it was made, used or not; ours is held, and " + LIMIT),
        "lifecycle.onTimeout": ("kill", "pause", "what is kept rests at its limit, with memory and processes"),
        "closed sandboxes": (1, 0, "their close is a coroutine for which no caller waits, so it never runs; ours is deleted"),
    },
    "daytona": {
        "name": (..., "wish", "the name is the session, so Daytona itself refuses a second sandbox for it"),
        "labels.OpenHands_SID": ("wish", None, "the name and our labels have the session"),
        "labels.gloveport.*": (None, ..., MARKS),
        "env.port": ("4444", None, "our variables are in a file that removes itself: Daytona tells `env` to every holder of the key"),
        "env.PYTHONUNBUFFERED": ("1", None, "as `env.port`"),
        "env.VSCODE_PORT": ("4445", None, "VS Code is a plugin of ours, whose port is told to the server"),
        "public": (True, False, KEY + ". Ports of ours ask for Daytona's token, too; `traffic` is a setting"),
        "autoStopInterval": (60, 15, "minutes: " + LIMIT + "; while it is held it never is idle"),
        "sessions": (["action-execution-server"], ["gloveport-server"], "the name of the session of processes in which the server is"),
    },
    "runloop": {
        "prebuilt": ("openhands", None, BOX + ". Newer releases of the API have no prebuilt images"),
        "entrypoint": (..., None, "ours is started by a launch command, which Runloop runs again after a rest"),
        "launch_parameters.launch_commands": (["mkdir -p /workspace"], ..., "as `entrypoint`"),
        "launch_parameters.available_ports": ([4444, 4445], None, "newer releases of the API ignore it: a tunnel leads to all ports"),
        "launch_parameters.lifecycle.after_idle.idle_time_seconds": (None, 900, LIMIT + "; theirs lives for Runloop's hour"),
        "launch_parameters.lifecycle.after_idle.on_idle": (None, "suspend", "what is kept rests"),
        "mounts": (None, ..., BOX + ", an object of the account that is uploaded once"),
        "environment_variables.port": (None, "60000", PLACE),
        "environment_variables.OPENHANDS_SESSION_ID": (None, "wish", "programs can know their session"),
        "environment_variables.SESSION_API_KEY": (None, ..., KEY),
        "environment_variables.P[IY]*": (None, "1", "as the server of OpenHands has them in its images"),
        "environment_variables.*_PORT_[12]": (None, ..., PORTS),
        "metadata.container-name": ("openhands-runtime-wish", None, "the name has the session"),
        "metadata.gloveport.*": (None, ..., MARKS),
        "tunnel.auth_mode": ("open", "authenticated", "ports of ours ask for Runloop's token; `tunnel` is a setting"),
    },
    "modal": {
        "entrypoint": (..., ..., BOX),
        "mounts": (False, True, BOX + ", which is mounted"),
        "workdir": ("/openhands/code", None, "where the server of OpenHands is in its images"),
        "image": (..., ["FROM debian:13"], "theirs has one layer more, about bracketed paste; our terminal sets that for itself"),
        "name": (None, "wish", "the name is the session, so Modal itself refuses a second sandbox for it"),
        "ports": ([3000, 4445], [12000, 12001, 60000], PLACE + "; " + PORTS),
        "readiness.*": (None, ..., "Modal tells when the server answers; theirs sleeps for 20 seconds"),
        "resources.*": (None, ..., "processors and memory are settings, with defaults"),
        "timeout": (3600, 86400, "seconds that it lives at most: Modal has no later change; a setting"),
        "secrets": (True, False, "variables are a stored secret in the first generation of the API, and part of the call in the second"),
        "environment.port": ("3000", "60000", PLACE),
        "environment.VSCODE_PORT": ("4445", None, "VS Code is a plugin of ours, whose port is told to the server"),
        "environment.OPENHANDS_SESSION_ID": (None, "wish", "programs can know their session"),
        "environment.PIP_BREAK_SYSTEM_PACKAGES": (None, "1", "packages can be installed into the Python of any image"),
        "environment.SESSION_API_KEY": (None, ..., KEY),
        "environment.*_PORT_[12]": (None, ..., PORTS),
        "tags.gloveport.*": (None, ..., MARKS),
    },
}

# What is kept beside sandboxes.
KEPT = {
    "e2b": {},
    "daytona": {},
    "runloop": {"objects": (None, ..., "our program, once for each release")},
    "modal": {
        "images": (..., [["FROM debian:13"]], "as the field `image` of a sandbox"),
        "mounts": ([], ..., "our program, once for each release"),
        "secrets": ([["PYTHONUNBUFFERED", "VSCODE_PORT", "port"]], [], "as the field `secrets` of a sandbox"),
    },
}

NOT_COMPARED = [
    "e2b: variables, which the API never tells, and a rest, which theirs has not",
    "runloop, modal: a close that keeps: theirs keeps what it has attached to, and that alone",
    "modal: the two generations of the API have the same messages by other names; theirs speaks the first, ours the second",
]
