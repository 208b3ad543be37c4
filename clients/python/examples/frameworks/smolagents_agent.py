"""smolagents: an agent with a scripted model runs its code in a kernel of a sandbox.

The active environment needs ipykernel; otherwise it is installed into the sandbox first, over the network.
"""

from typing import Any

from smolagents import ChatMessage, CodeAgent, LogLevel, MessageRole, Model

from gloveport import Sandbox
from gloveport.smolagents import GloveportExecutor

STEPS = ["<code>answer = 6 * 7\nprint(answer)</code>", "<code>final_answer(answer)</code>"]


class Scripted(Model):
    def __init__(self) -> None:
        super().__init__(model_id="scripted")
        self.steps = iter(STEPS)

    def generate(self, *arguments: Any, **named: Any) -> ChatMessage:
        return ChatMessage(role=MessageRole.ASSISTANT, content=next(self.steps))


def main() -> None:
    with Sandbox(plugins=["jupyter"]) as box:
        executor = GloveportExecutor(box)
        agent = CodeAgent(tools=[], model=Scripted(), executor=executor, verbosity_level=LogLevel.OFF)
        print(agent.run("What is the answer?"))


if __name__ == "__main__":
    main()
