"""A deep agent of LangChain that breaks its workspace, and rewinds it. It follows a script, so it needs no model.

python examples/deep-agents/agent.py

SANDBOXER_URL and SANDBOXER_API_KEY name the server. Needs ``pip install "sandboxer[langchain]"``.
"""

import os
import re
from collections.abc import Iterator, Sequence
from typing import Any

from deepagents import create_deep_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from sandboxer import Sandbox
from sandboxer.langchain import SandboxerBackend, checkpoint_tools

SCRIPT = [
    ("write_file", {"file_path": "/workspace/answer.txt", "content": "42"}),
    ("checkpoint", {"note": "the answer is written"}),
    ("execute", {"command": "rm -r /workspace/*; ls /workspace | wc -l"}),
    ("diff", {"checkpoint_id": "CHECKPOINT"}),
    ("rewind", {"checkpoint_id": "CHECKPOINT"}),
    ("execute", {"command": "cat /workspace/answer.txt"}),
]


class ScriptedModel(BaseChatModel):
    """Calls the tools of the script one after the other, with the id of the checkpoint that it was told."""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **options: Any) -> "ScriptedModel":
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **options: Any) -> ChatResult:
        told = [message.text for message in messages if isinstance(message, ToolMessage)]
        if len(told) == len(SCRIPT):
            return _said(AIMessage(f"The answer is {told[-1].split()[0]}."))
        name, arguments = SCRIPT[len(told)]
        checkpoint = next((found[1] for text in told if (found := re.match(r"Saved as ([^:]+)", text))), "")
        filled = {key: value.replace("CHECKPOINT", checkpoint) for key, value in arguments.items()}
        return _said(AIMessage("", tool_calls=[{"name": name, "args": filled, "id": f"call-{len(told)}"}]))


def _said(message: AIMessage) -> ChatResult:
    return ChatResult(generations=[ChatGeneration(message=message)])


def messages_of_run(sandbox: Sandbox) -> Iterator[str]:
    backend = SandboxerBackend(sandbox)
    agent = create_deep_agent(model=ScriptedModel(), backend=backend, tools=checkpoint_tools(backend))
    for message in agent.invoke({"messages": [{"role": "user", "content": "What is the answer?"}]})["messages"]:
        if isinstance(message, ToolMessage):
            yield f"{message.name}: {message.text.strip()}"
        elif isinstance(message, AIMessage) and message.text:
            yield message.text


if __name__ == "__main__":
    url = os.environ.get("SANDBOXER_URL", "http://127.0.0.1:8080")
    with Sandbox.create(url=url, api_key=os.environ.get("SANDBOXER_API_KEY")) as sandbox:
        for line in messages_of_run(sandbox):
            print(line)
