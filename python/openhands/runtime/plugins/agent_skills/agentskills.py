"""AgentSkills under the module name that OpenHands gives them.

The directories that lead here have no ``__init__.py``: so they add to an ``openhands`` package that is installed, or
give way to it, and never take its place.
"""

from gloveport.skills import *  # noqa: F401, F403
from gloveport.skills import __all__  # noqa: F401
