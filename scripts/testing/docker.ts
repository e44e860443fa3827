import { prepareAgent, withSetupLock } from "@sandboxer/server/setup";
import { whyNoServices } from "../../test/kit/services/debian-programs.ts";
import { context, type Planned } from "./engines.ts";
import { inOwnNetwork } from "./own-network.ts";
import { vitestSuite } from "./suite.ts";

const DOCKER_TIMEOUT_MS = 15 * 60_000;

/** The Docker suite, with the newest runsc of the gVisor suites as one of its runtimes, if there is one. */
export async function planDockerSuite(gvisorSuites: readonly Planned[]): Promise<Planned> {
  const missing = whyNoServices();
  if (missing !== undefined) return { name: "docker", on: "an engine", skippedBecause: missing };
  const engine = gvisorSuites.findLast((suite) => "env" in suite);
  if (engine !== undefined && "env" in engine) {
    return inOwnNetwork(vitestSuite("docker", DOCKER_TIMEOUT_MS, `runc and ${engine.on}`, engine.env));
  }
  try {
    const agent = await withSetupLock(context, () => prepareAgent(context));
    return inOwnNetwork(vitestSuite("docker", DOCKER_TIMEOUT_MS, "runc", { SANDBOXER_TEST_AGENT: agent.path }));
  } catch (thrown) {
    return { name: "docker", on: "an engine", skippedBecause: (thrown as Error).message };
  }
}
