"""mini-swe-agent: many tasks at once, each in an environment of its own, on this machine.

parallel.py [--tasks 100] [--at-once 16] [--kinds KIND …] [--image IMAGE] [--plot FILE]

A kind is what the environments are: `local`, `container`, `files` or `none` (sandboxes of gloveport on this machine,
the first with the strongest isolation that it has), `docker` (sandboxes of gloveport in Docker), `mini-docker` (the
framework's own containers) or `mini-local` (no sandbox: its own subprocesses, in a directory for each task).

The model is scripted: each task writes a small program and its test, runs the test, mends the program and hands in what
it prints. Prints how long it took, and draws when each was done. The exit code is 1 if a task has a wrong answer.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

os.environ.setdefault("MSWEA_SILENT_STARTUP", "1")

from minisweagent.agents.default import DefaultAgent
from minisweagent.environments import get_environment
from minisweagent.models.test_models import DeterministicModel, make_output

OURS = "gloveport.minisweagent.GloveportEnvironment"
TEST = 'test "$(sh task.sh)" = {answer}'
#: Colours that are told apart without red and green.
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")


def steps(number: int) -> tuple[list[str], str]:
    """What an agent does in a task, and what it hands in."""
    answer = str(number * number)
    return [
        f"mkdir -p work && cd work && echo 'echo $(({number} + {number}))' >task.sh",
        f"cd work && {TEST.format(answer=answer)} || echo it fails",
        f"cd work && sed -i 's/+/*/' task.sh && {TEST.format(answer=answer)}",
        "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; sh work/task.sh",
    ], answer


@contextlib.contextmanager
def environment(kind: str, image: str) -> Iterator[Any]:
    """An environment for one task, which ends with the block."""
    if kind == "mini-local":
        with tempfile.TemporaryDirectory() as directory:
            yield get_environment({"environment_class": "local", "cwd": directory})
        return
    if kind == "mini-docker":
        config = {"environment_class": "docker", "image": image, "cwd": "/tmp"}
    elif kind == "docker":
        config = {"environment_class": OURS, "runtime": "docker", "image": image}
    else:
        config = {"environment_class": OURS, "isolation": None if kind == "local" else kind}
    made = get_environment(config)
    try:
        yield made
    finally:
        made.cleanup()


@dataclass
class Course:
    """How the tasks of one kind went."""

    kind: str
    #: Seconds that each task took.
    took: list[float] = field(default_factory=list)
    #: When each was done, in seconds from the beginning.
    done: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


def run(kind: str, tasks: int, at_once: int, image: str) -> Course:
    course = Course(kind)
    began = time.perf_counter()

    def one(number: int) -> None:
        commands, answer = steps(number)
        outputs = [make_output(each, [{"command": each}], cost=0) for each in commands]
        start = time.perf_counter()
        try:
            with environment(kind, image) as made:
                agent = DefaultAgent(
                    DeterministicModel(outputs=outputs), made, system_template="You work.", instance_template="{{task}}"
                )
                found = agent.run(f"task {number}")["submission"]
        except Exception as error:
            found = f"{type(error).__name__}: {error}"
        now = time.perf_counter()
        if found != f"{answer}\n":
            course.wrong.append(f"task {number} of {kind}: {found!r}, and not {answer!r}")
        course.took.append(now - start)
        course.done.append(now - began)

    with ThreadPoolExecutor(at_once) as threads:
        list(threads.map(one, range(1, tasks + 1)))
    return course


def told(course: Course) -> str:
    whole, middle = max(course.done), statistics.median(course.took)
    rate = len(course.done) / whole
    return f"{course.kind:<12} {whole:8.1f} s  {rate:6.1f} tasks/s  {middle * 1000:7.0f} ms p50 of a task"


def plot(courses: list[Course], path: Path) -> None:
    """Draws how many tasks were done when, as SVG."""
    width, height, left, top = 720, 360, 60, 30
    longest, most = max(max(each.done) for each in courses), max(len(each.done) for each in courses)

    def at(seconds: float, count: int) -> str:
        return f"{left + width * seconds / longest:.1f},{top + height * (1 - count / most):.1f}"

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + width + 20} {top + height + 50}" '
        'font-family="sans-serif" font-size="13">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<path d="M{left},{top}V{top + height}H{left + width}" fill="none" stroke="#888"/>',
        f'<text x="{left - 8}" y="{top + 5}" text-anchor="end">{most}</text>',
        f'<text x="{left - 8}" y="{top + height}" text-anchor="end">0</text>',
        f'<text x="{left + width}" y="{top + height + 20}" text-anchor="end">{longest:.1f} s</text>',
        f'<text x="{left}" y="{top + height + 40}">tasks done, of {most}, on {os.cpu_count()} processors</text>',
    ]
    for number, course in enumerate(courses):
        colour = COLOURS[number % len(COLOURS)]
        points = " ".join(at(second, count) for count, second in enumerate([0.0, *sorted(course.done)]))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        place = f'x="{left + width - 10}" y="{top + height - 20 * (len(courses) - number)}" text-anchor="end"'
        parts.append(f'<text {place} fill="{colour}">{course.kind}: {max(course.done):.1f} s</text>')
    path.write_text("\n".join([*parts, "</svg>", ""]), encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description="Many tasks of mini-swe-agent at once.")
    parser.add_argument("--tasks", type=int, default=100, metavar="COUNT")
    parser.add_argument("--at-once", type=int, default=16, metavar="COUNT")
    parser.add_argument("--kinds", nargs="+", default=["local", "mini-local"], metavar="KIND")
    parser.add_argument("--image", default="debian:13", help="for the kinds with Docker")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="write an SVG picture here")
    arguments = parser.parse_args()
    if min(arguments.tasks, arguments.at_once) < 1:
        parser.error("at least one task, and one at once")
    known = {"local", "container", "files", "none", "docker", "mini-docker", "mini-local"}
    if unknown := set(arguments.kinds) - known:
        parser.error(f"no such kind: {', '.join(sorted(unknown))}; there are {', '.join(sorted(known))}")
    courses = []
    for kind in arguments.kinds:
        course = run(kind, arguments.tasks, arguments.at_once, arguments.image)
        print(told(course), flush=True)
        courses.append(course)
    if arguments.plot is not None:
        plot(courses, arguments.plot)
    wrong = [each for course in courses for each in course.wrong]
    print("\n".join(wrong[:10]), end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
