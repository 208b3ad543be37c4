"""Tells what an interpreter is, as one line of JSON behind a mark."""

import json
import os
import sys

# What lies in the current directory is no part of the interpreter.
sys.path[:] = [entry for entry in sys.path if entry]


def kernel():
    """Version of the `ipykernel` that would be imported."""
    try:
        from importlib import metadata, util

        if all(util.find_spec(name) for name in ("ipykernel", "IPython", "zmq", "jupyter_client")):
            return metadata.version("ipykernel")
    except Exception:
        pass
    return None


print(
    "gloveport-probe "
    + json.dumps(
        {
            "version": list(sys.version_info[:3]),
            "program": os.path.realpath(sys.executable),
            "prefix": sys.prefix,
            "kernel": kernel(),
        }
    )
)
