"""OpenHands' SDK 1.x: a workspace that is a sandbox."""

from gloveport.openhands_sdk import GloveportWorkspace


def main() -> None:
    with GloveportWorkspace() as workspace:
        print(workspace.execute_command("uname -s").stdout, end="")


if __name__ == "__main__":
    main()
