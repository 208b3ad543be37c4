"""A root to throw away: an overlay of this machine's, with a `/workspace` of its own. Everything that a server or a client
writes there is gone afterwards, and what they have started ends with it."""

import os
import subprocess
import sys

INSIDE = "BROWSERGYM_INSIDE"
ROOT = """
set -e
mount -t tmpfs none /mnt
mkdir /mnt/changes /mnt/work /mnt/root
mount -t overlay overlay -o lowerdir=/,upperdir=/mnt/changes,workdir=/mnt/work /mnt/root
for place in proc sys dev; do mount --rbind /$place /mnt/root/$place; done
mkdir -p /mnt/root/workspace
"""


def enter(program):
    """Begins the program again in such a root, once, with the same arguments. False where there cannot be one."""
    if INSIDE in os.environ:
        return True
    if subprocess.run(["unshare", "--mount", "--propagation", "private", "sh", "-c", ROOT], capture_output=True).returncode:
        return False
    os.environ[INSIDE] = "1"
    script = f'{ROOT}\nhere=$1; shift\nexec chroot /mnt/root sh -c \'cd "$0" && exec "$@"\' "$here" "$@"'
    words = [sys.executable, os.path.abspath(program), *sys.argv[1:]]
    os.execvp("unshare", [
        "unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--propagation", "private",
        "sh", "-c", script, "sh", os.getcwd(), *words,
    ])
