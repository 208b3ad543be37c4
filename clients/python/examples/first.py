"""A repository is made, tested, and its report is read, in a sandbox that ends with the program."""

from gloveport import CommandFailedError, Sandbox


def main() -> None:
    with Sandbox() as box:
        box.run("mkdir project && cd project && git init -q").check()
        box.path("project/test.sh").write_text("echo all is well > report.txt\n")
        try:
            box.run("sh test.sh", timeout=60).check()
        except CommandFailedError as error:
            print(error.result.output)
        print(box.path("project/report.txt").read_text(), end="")


if __name__ == "__main__":
    main()
