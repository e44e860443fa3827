import type { Lab } from "../lab.ts";
import { contest, reason } from "../peers/contest.ts";
import { openDocker } from "../peers/docker-peer.ts";
import { TASKS, type Peer, type TaskName } from "../peers/peer.ts";
import { openPodman } from "../peers/podman-peer.ts";
import { preparePodman, whyNoCriu } from "../peers/podman-programs.ts";
import { openRunsc } from "../peers/runsc-peer.ts";
import { openSandboxer } from "../peers/sandboxer-peer.ts";
import { startBenchDocker } from "../peers/start-docker.ts";
import type { Contest, Findings, Skipped } from "../result.ts";

/** The same work by every available participant, in the same rounds. */
export async function measurePeers(lab: Lab): Promise<Partial<Findings>> {
  const skipped: Skipped[] = [];
  const peers = await openPeers(lab, skipped);
  const contests: Contest[] = [];
  for (const task of Object.keys(TASKS) as TaskName[]) contests.push(...(await contest(lab, peers, task, skipped)));
  return { contests, skipped };
}

async function openPeers(lab: Lab, skipped: Skipped[]): Promise<Peer[]> {
  const peers: Peer[] = [];
  const add = async (name: string, open: () => Promise<Peer>): Promise<void> => {
    lab.progress(`Preparing ${name}`);
    try {
      peers.push(await open());
    } catch (error) {
      skipped.push({ what: name, why: reason(error) });
    }
  };
  await add("sandboxer", () => openSandboxer(lab));
  await add("raw runsc", () => openRunsc(lab));
  const podman = await preparePodman(lab).catch(reason);
  const criu = typeof podman === "string" ? [] : [podman.criuFolder];
  const docker = await startBenchDocker(lab, criu).catch(reason);
  if (typeof docker === "string") skipped.push({ what: "Docker", why: docker });
  else {
    const explain = async (error: unknown): Promise<Error> => {
      const ofCriu = typeof podman !== "string" && /criu/i.test(String(error)) ? `${await whyNoCriu(podman)}; ` : "";
      return new Error(`${ofCriu}${reason(error)}`, { cause: error });
    };
    await add("Docker (runc)", () => openDocker("Docker (runc)", docker, "runc", explain));
    await add("Docker (runsc)", () => openDocker("Docker (runsc)", docker, docker.runscRuntime, explain));
  }
  if (typeof podman === "string") skipped.push({ what: "podman", why: podman });
  else await add("podman (runc)", () => openPodman(lab, podman));
  return peers;
}
