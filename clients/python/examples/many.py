"""Sandboxes work side by side in one event loop."""

import asyncio

from gloveport import AsyncSandbox


async def work(number: int) -> str:
    async with AsyncSandbox() as box:
        result = await box.run(f"echo sandbox {number} is in $PWD")
        return result.check().output


async def main() -> None:
    for line in await asyncio.gather(*(work(number) for number in range(4))):
        print(line, end="")


if __name__ == "__main__":
    asyncio.run(main())
