import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { eventually } from "../../test/kit/eventually.ts";
import type { ClientKind } from "./clients.ts";
import { type Deployment, NAMESPACE } from "./deployment.ts";
import { output, type Programs } from "./processes.ts";

const PATIENCE_MS = 20 * 60_000;

export interface Disturbance {
  readonly name: string;
  /** The clients that must survive it. */
  readonly clients: readonly ClientKind[];
  /** Returns a sentence on the outcome. */
  readonly run: (cluster: DisturbedCluster) => Promise<string>;
}

interface DisturbedCluster {
  readonly deployment: Deployment;
  readonly programs: Programs;
  /** Of the clients that must survive. */
  readonly sandboxIds: ReadonlySet<string>;
}

const BOTH: readonly ClientKind[] = ["count", "calls"];

/** In the order in which they are tried. A kill loses what is not saved, so only clients that save survive it. */
export const DISTURBANCES: readonly Disturbance[] = [
  { name: "2 → 4 replicas", clients: BOTH, run: scaleUp },
  { name: "rolling restart", clients: BOTH, run: restart },
  { name: "eviction of a server", clients: BOTH, run: evict },
  { name: "drain of a node", clients: BOTH, run: drainNode },
  { name: "4 → 2 replicas", clients: BOTH, run: scaleDown },
  { name: "kill -9 of a server", clients: ["calls"], run: killServer },
  { name: "kill of a Pod, without grace", clients: ["calls"], run: killPod },
];

async function scaleUp({ deployment }: DisturbedCluster): Promise<string> {
  await deployment.scale(4);
  return placesOf(deployment);
}

async function scaleDown({ deployment }: DisturbedCluster): Promise<string> {
  await deployment.scale(2);
  return placesOf(deployment);
}

async function restart({ deployment }: DisturbedCluster): Promise<string> {
  const before = await deployment.pods();
  await deployment.kubectl("rollout", "restart", "deployment");
  await deployment.rolledOut();
  const names = new Set((await deployment.pods()).map(({ name }) => name));
  const stayed = before.filter(({ name }) => names.has(name));
  if (stayed.length > 0) throw new Error(`${stayed.length} servers were not replaced.`);
  return `${before.length} servers replaced`;
}

/** The second of two evictions at once is refused by the budget. */
async function evict({ deployment, programs: { folder }, sandboxIds }: DisturbedCluster): Promise<string> {
  const first = await deployment.busiest(sandboxIds);
  const others = (await deployment.pods()).filter(({ name }) => name !== first.name);
  await requestEviction(deployment, folder, first.name);
  const refusal = await requestEviction(deployment, folder, others[0]?.name ?? "").then(
    () => "",
    (error: unknown) => String((error as { stderr?: string }).stderr),
  );
  if (!refusal.includes("disruption budget")) throw new Error(`A second server was evicted too: ${refusal}`);
  await gone(deployment, first.name);
  await deployment.rolledOut();
  return `the server with ${first.sandboxes} of ${sandboxIds.size} sandboxes; the budget refused a second one meanwhile`;
}

async function requestEviction(deployment: Deployment, folder: string, name: string): Promise<void> {
  const file = join(folder, "eviction.json");
  const metadata = { name, namespace: NAMESPACE };
  await writeFile(file, JSON.stringify({ apiVersion: "policy/v1", kind: "Eviction", metadata }));
  const path = `/api/v1/namespaces/${NAMESPACE}/pods/${name}/eviction`;
  await deployment.kubectl("create", "--raw", path, "--filename", file);
}

async function drainNode({ deployment, sandboxIds }: DisturbedCluster): Promise<string> {
  const { node } = await deployment.busiest(sandboxIds);
  const there = (await deployment.pods()).filter((pod) => pod.node === node).length;
  await deployment.kubectl("drain", node, "--delete-emptydir-data", "--ignore-daemonsets", "--timeout=20m");
  await deployment.rolledOut();
  const left = (await deployment.pods()).filter((pod) => pod.node === node);
  if (left.length > 0) throw new Error(`${left.length} servers are still on ${node}.`);
  await deployment.kubectl("uncordon", node);
  return `${there} servers on ${node}, one after the other`;
}

/** The process itself; its container is started again in the same Pod, with the same data. */
async function killServer({ deployment, programs, sandboxIds }: DisturbedCluster): Promise<string> {
  const { name, node, containerId, restarts, sandboxes } = await deployment.busiest(sandboxIds);
  const ctr = ["ctr", "--address", join(programs.folder, node, "containerd.sock"), "--namespace", "k8s.io"];
  const tasks = await output([...ctr, "tasks", "list"], programs.env);
  const first = tasks
    .split("\n")
    .find((line) => line.startsWith(containerId))
    ?.split(/\s+/)[1];
  if (first === undefined) throw new Error(`containerd on ${node} does not know ${containerId}.`);
  // The container's first process is tini, the server is its child.
  const server = (await output(["cat", `/proc/${first}/task/${first}/children`])).trim().split(" ")[0];
  process.kill(Number(server), "SIGKILL");
  await eventually(
    `the container of ${name} is started again`,
    async () => (await deployment.pods()).some((pod) => pod.name === name && pod.restarts === restarts + 1),
    PATIENCE_MS,
  );
  await deployment.rolledOut();
  return `the server with ${sandboxes} of ${sandboxIds.size} sandboxes; its container was started again`;
}

async function killPod({ deployment, sandboxIds }: DisturbedCluster): Promise<string> {
  const { name, sandboxes } = await deployment.busiest(sandboxIds);
  await deployment.kubectl("delete", "pod", name, "--grace-period=0", "--force");
  await gone(deployment, name);
  await deployment.rolledOut();
  return `the server with ${sandboxes} of ${sandboxIds.size} sandboxes; another Pod took its place`;
}

async function gone(deployment: Deployment, name: string): Promise<void> {
  const isGone = async (): Promise<boolean> => (await deployment.pods()).every((pod) => pod.name !== name);
  await eventually(`${name} has gone`, isGone, PATIENCE_MS);
}

async function placesOf(deployment: Deployment): Promise<string> {
  const counts = new Map<string, number>();
  for (const { node } of await deployment.pods()) counts.set(node, (counts.get(node) ?? 0) + 1);
  return [...counts]
    .toSorted()
    .map(([node, count]) => `${count} on ${node}`)
    .join(", ");
}
