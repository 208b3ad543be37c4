"""What both are asked for."""

SID = "wish"
COMMAND = "echo said $((6 * 7))"
# What it says, and its exit code.
SAID = ["said 42", 0]
# Where an image is a part of the wish: a snapshot at Daytona, and one of a registry at Modal.
IMAGES = {"daytona": "daytonaio/sandbox", "modal": "debian:13"}
