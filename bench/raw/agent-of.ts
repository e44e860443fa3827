import { AgentClient } from "../../packages/server/src/backends/agent/agent-client.ts";
import type { RawContainer } from "./raw-container.ts";

/** Talks to the agent that is PID 1 of a raw container. */
export function agentOf(container: RawContainer): AgentClient {
  return new AgentClient(container.input, container.output, {
    users: { rootInside: false },
    baseEnv: { PATH: "/usr/local/bin:/usr/bin:/bin", LANG: "C.UTF-8" },
    env: {},
    heartbeatMs: 0,
    onFailure: () => {},
    onEnd: () => {},
    chunksLast: false,
  });
}
