"""Makes processes until there can be no more of them. Ends with 0 if it made a lot.

Who runs it must be bounded, or the machine has that many.
"""

import os
import signal
import sys

A_LOT = 6000
made = []
code = 0
signal.signal(signal.SIGCHLD, signal.SIG_DFL)
try:
    while len(made) < A_LOT:
        child = os.fork()
        if child == 0:
            signal.pause()
        made.append(child)
except BlockingIOError:
    code = 1
finally:
    for child in made:
        os.kill(child, signal.SIGKILL)
    for child in made:
        os.waitpid(child, 0)
sys.exit(code)
