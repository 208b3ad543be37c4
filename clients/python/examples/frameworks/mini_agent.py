"""mini-swe-agent: an agent with a scripted model works in a sandbox."""

from minisweagent.agents.default import DefaultAgent
from minisweagent.models.test_models import DeterministicModel, make_output

from gloveport.minisweagent import GloveportEnvironment

STEPS = ["echo 42 >answer", "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; cat answer"]


def main() -> None:
    model = DeterministicModel(outputs=[make_output(step, [{"command": step}]) for step in STEPS])
    environment = GloveportEnvironment()
    try:
        agent = DefaultAgent(model, environment, system_template="You work.", instance_template="{{task}}")
        print(agent.run("What is the answer?")["submission"], end="")
    finally:
        environment.cleanup()


if __name__ == "__main__":
    main()
