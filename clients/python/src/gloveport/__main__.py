"""`python -m gloveport` is the program `gloveport`."""

import os
import sys

from ._errors import ProgramMissingError
from ._program import find_program


def main() -> None:
    try:
        program = find_program()
    except ProgramMissingError as error:
        sys.exit(f"gloveport: {error}")
    os.execv(program, ["gloveport", *sys.argv[1:]])


if __name__ == "__main__":
    main()
