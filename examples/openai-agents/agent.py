"""A sandbox agent of the OpenAI Agents SDK that breaks its workspace, and rewinds it. It follows a script, so it needs
no model.

python examples/openai-agents/agent.py

SANDBOXER_URL and SANDBOXER_API_KEY name the server. Needs ``pip install "sandboxer[openai-agents]"``.
"""

import asyncio
import os
import re
from collections.abc import AsyncIterator
from typing import Any

from agents import RunConfig, Runner, ToolCallOutputItem
from agents.sandbox import SandboxAgent, SandboxRunConfig
from agents.sandbox.capabilities import Capabilities
from agents.testing import ModelCall, ModelStep, ScriptedModel, assistant_message, function_call

from sandboxer import AsyncSandboxer
from sandboxer.openai_agents import Checkpoints, SandboxerClient

SCRIPT = [
    ("exec_command", {"cmd": "echo 42 > answer.txt"}),
    ("checkpoint", {"note": "the answer is written"}),
    ("exec_command", {"cmd": "rm answer.txt; ls | wc -l"}),
    ("diff", {"checkpoint_id": "CHECKPOINT"}),
    ("rewind", {"checkpoint_id": "CHECKPOINT"}),
    ("exec_command", {"cmd": "cat answer.txt"}),
]


def step(number: int) -> ModelStep:
    """Calls a tool of the script, with the id of the checkpoint that the model was told."""
    name, arguments = SCRIPT[number]

    def respond(call: ModelCall) -> list[Any]:
        told = [str(item.get("output", "")) for item in call.input if isinstance(item, dict)]
        checkpoint = next((found[1] for text in told if (found := re.match(r"Saved as ([^:]+)", text))), "")
        filled = {key: value.replace("CHECKPOINT", checkpoint) for key, value in arguments.items()}
        return [function_call(name, filled, call_id=f"call-{number}")]

    return ModelStep.respond(respond)


async def outputs_of_run(client: AsyncSandboxer) -> AsyncIterator[str]:
    model = ScriptedModel([*(step(number) for number in range(len(SCRIPT))), [assistant_message("It was 42.")]])
    agent = SandboxAgent(name="agent", model=model, capabilities=[*Capabilities.default(), Checkpoints()])
    config = RunConfig(sandbox=SandboxRunConfig(client=SandboxerClient(client=client)), tracing_disabled=True)
    result = await Runner.run(agent, "What is the answer?", run_config=config)
    names = iter(name for name, _ in SCRIPT)
    for item in result.new_items:
        if isinstance(item, ToolCallOutputItem):
            yield f"{next(names)}: {str(item.output).strip()}"
    yield str(result.final_output)


async def main() -> None:
    url = os.environ.get("SANDBOXER_URL", "http://127.0.0.1:8080")
    async with AsyncSandboxer(url=url, api_key=os.environ.get("SANDBOXER_API_KEY")) as client:
        async for line in outputs_of_run(client):
            print(line)


if __name__ == "__main__":
    asyncio.run(main())
