"""A program that asks is answered on a terminal, and what it changes is watched."""

from gloveport import Sandbox

ASKS = """read -p "What is your name? " name && echo "$name" > name.txt && echo "Hello, $name."
"""


def main() -> None:
    with Sandbox() as box, box.watch(".", timeout=30) as changes:
        with box.terminal(["bash", "-c", ASKS], cols=100) as terminal:
            print(terminal.read_until("name? "), end="")
            terminal.write("Ada\n")
            print(terminal.read_until("Ada."))
            print("It ended with", terminal.wait(timeout=10).exit_code)
        print("Changed:", next(change.path.rsplit("/", 1)[-1] for change in changes if change.kind == "modified"))


if __name__ == "__main__":
    main()
