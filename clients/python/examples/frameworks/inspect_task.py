"""Inspect: a scripted model looks at a file of its sample's sandbox. `inspect eval` runs the task with another one."""

import inspect_ai
from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import includes
from inspect_ai.solver import generate, use_tools
from inspect_ai.tool import bash


@task
def answer() -> Task:
    sample = Sample(input="What is in the file `answer`?", target="42", files={"answer": "42"})
    return Task(dataset=[sample], solver=[use_tools(bash()), generate()], scorer=includes(), sandbox="gloveport")


def main() -> None:
    steps = [
        ModelOutput.for_tool_call("mockllm/model", "bash", {"command": "cat answer"}),
        ModelOutput.from_content("mockllm/model", "It is 42."),
    ]
    for step in steps:
        step.usage = ModelUsage()
    model = get_model("mockllm/model", custom_outputs=steps)
    log = inspect_ai.eval(answer(), model=model, display="none")[0]
    assert log.results is not None
    print(log.status, log.results.scores[0].metrics["accuracy"].value)


if __name__ == "__main__":
    main()
