import { AgentClient } from "../../packages/server/src/backends/agent/agent-client.ts";
import type { RawContainer } from "./raw-container.ts";

/** Talks to the agent that is PID 1 of a raw container. */
export function agentOf(container: RawContainer): AgentClient {
  return new AgentClient(container.input, container.output, {
    user: { uid: 1000, gid: 1000 },
    env: { PATH: "/usr/local/bin:/usr/bin:/bin", HOME: "/workspace", LANG: "C.UTF-8" },
    workingFolder: "/workspace",
    heartbeatMs: 0,
    onFailure: () => {},
    onEnd: () => {},
    chunksLast: false,
  });
}
