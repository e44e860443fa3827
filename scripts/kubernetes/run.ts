/**
 * The cluster and everything that is tried on it. `scripts/kubernetes.ts` starts it in namespaces of its own, with which all of it
 * ends: `run.ts FOLDER BACKEND CGROUP`. The folder has the images; the outcome is written there.
 */
import { randomBytes } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { eventually } from "../../test/kit/eventually.ts";
import { debianPrograms } from "../../test/kit/services/debian-programs.ts";
import { withGvisorTools } from "../../test/kit/services/gvisor-tools.ts";
import { minio } from "../../test/kit/store-servers/minio.ts";
import { S3_KEY_ID, S3_SECRET } from "../../test/kit/store-servers/s3-buckets.ts";
import { validateChart } from "./chart.ts";
import { Client, type ClientKind } from "./clients.ts";
import { type ControlPlane, startControlPlane } from "./control-plane.ts";
import { Deployment, NAMESPACE } from "./deployment.ts";
import { DISTURBANCES } from "./disturbances.ts";
import { PAUSE_IMAGE, SERVER_IMAGE } from "./images.ts";
import { connectNodes, CONTROL_ADDRESS, nodeNetworks } from "./network.ts";
import { startNode, startProxy } from "./node.ts";
import type { Outcome, Step } from "./outcome.ts";
import { output, type Programs } from "./processes.ts";
import { clusterPrograms } from "./programs.ts";

const [folder = "", backend = "gvisor", cgroup = ""] = process.argv.slice(2);
const CLIENTS: Readonly<Record<ClientKind, number>> = { count: 2, calls: 2 };
/** Numbers that each client must get after a disturbance. `calls` saves after each. */
const ADVANCE: Readonly<Record<ClientKind, number>> = { count: 30, calls: 3 };
const NODES = 2;
const START_MS = 10 * 60_000;
const SECRET = "bucket";

const path = [...clusterPrograms.folders, debianPrograms.bin, withGvisorTools(process.env["PATH"] ?? "")];
process.env["PATH"] = path.join(delimiter);
const programs: Programs = { folder, env: {} };
const steps: Step[] = [];
let failure: string | undefined;
try {
  await run();
} catch (error) {
  failure = error instanceof Error ? `${error.message}\n${(error as { stderr?: string }).stderr ?? ""}` : String(error);
  console.error(failure);
}
const outcome: Outcome = { steps, ...(failure === undefined ? {} : { failure }) };
await writeFile(join(folder, "outcome.json"), JSON.stringify(outcome));
// The first process of the namespace ends with this one, and with it everything else.
process.exit(failure === undefined ? 0 : 1);

async function run(): Promise<void> {
  // Programs write to these places, and the namespace's end must remove all of it.
  for (const place of ["/run", "/var/lib", "/var/log"]) await output(["mount", "-t", "tmpfs", "tmpfs", place]);
  const nodes = nodeNetworks(NODES);
  await connectNodes(nodes);
  const control = await step("control plane", async () => {
    const started = await startControlPlane(programs, nodes);
    return { value: started, text: `Kubernetes ${await serverVersion(started)}` };
  });
  await step("chart", async () => ({ value: undefined, text: await validateChart(control, folder) }));
  await step("nodes", async () => {
    const images = join(folder, "images.tar");
    const common = { programs, control, cgroup, images, pauseImage: PAUSE_IMAGE };
    await Promise.all(nodes.map((network) => startNode({ ...common, network })));
    const list = (): Promise<string> => control.kubectl("get", "nodes", "--no-headers");
    const ready = async (): Promise<boolean> => ((await list()).match(/ Ready /g) ?? []).length === nodes.length;
    await eventually("all nodes are ready", ready, START_MS);
    for (const network of nodes) await startProxy({ ...common, network });
    const runtime = "jsonpath={.items[0].status.nodeInfo.containerRuntimeVersion}";
    return { value: undefined, text: `${nodes.length}, ${await control.kubectl("get", "nodes", "--output", runtime)}` };
  });
  const key = randomBytes(16).toString("hex");
  const deployment = new Deployment(control, key);
  await step("helm install", () => install(control, deployment, key));
  const clients = await step("clients", async () => ({
    value: await startClients(deployment, nodes[0]?.name ?? "", key),
    text: Object.entries(CLIENTS)
      .map(([kind, count]) => `${count} × ${kind}`)
      .join(", "),
  }));
  await advance(clients);
  await disturb(deployment, clients);
  for (const client of clients) client.stop();
  await step("helm uninstall", async () => {
    await deployment.uninstall();
    return { value: undefined, text: "every server ended within its grace period" };
  });
}

async function serverVersion({ kubectl }: ControlPlane): Promise<string> {
  return (JSON.parse(await kubectl("get", "--raw", "/version")) as { gitVersion: string }).gitVersion;
}

async function install(
  control: ControlPlane,
  deployment: Deployment,
  key: string,
): Promise<{ value: undefined; text: string }> {
  const store = await minio.start(CONTROL_ADDRESS);
  await control.kubectl("create", "namespace", NAMESPACE);
  const credentials = { AWS_ACCESS_KEY_ID: S3_KEY_ID, AWS_SECRET_ACCESS_KEY: S3_SECRET, AWS_REGION: "us-east-1" };
  const literals = Object.entries(credentials).map(([name, value]) => `--from-literal=${name}=${value}`);
  await deployment.kubectl("create", "secret", "generic", SECRET, ...literals);
  await deployment.install(folder, {
    backend,
    image: { ...SERVER_IMAGE, pullPolicy: "Never" },
    store: { url: await store.newStore(), existingSecret: SECRET },
    apiKeys: { values: [key] },
    // Two nodes share two cores, and nobody else's sandboxes are to be started ahead.
    config: { warm_pool_max: 0, log_level: "info" },
    resources: { requests: { cpu: "100m", memory: "512Mi" }, limits: { memory: "3Gi" } },
  });
  const pods = await deployment.pods();
  return { value: undefined, text: pods.map(({ name, node }) => `${name} on ${node}`).join(", ") };
}

/** One after the other, so that it is known whose sandbox is whose. */
async function startClients(deployment: Deployment, node: string, key: string): Promise<Client[]> {
  const options = { node, address: await deployment.address(), key };
  const clients: Client[] = [];
  for (const [kind, count] of Object.entries(CLIENTS) as [ClientKind, number][]) {
    for (let index = 1; index <= count; index += 1) {
      const client = new Client(kind, index, options);
      await client.advance(1);
      const others = new Set(clients.map(({ sandboxId }) => sandboxId));
      client.sandboxId = (await deployment.sandboxIds()).find((id) => !others.has(id)) ?? "";
      clients.push(client);
    }
  }
  return clients;
}

async function disturb(deployment: Deployment, clients: readonly Client[]): Promise<void> {
  for (const { name, clients: kinds, run: cause } of DISTURBANCES) {
    for (const client of clients.filter(({ kind }) => !kinds.includes(kind))) client.stop();
    const surviving = clients.filter(({ kind }) => kinds.includes(kind));
    const before = new Map(surviving.map((client) => [client, { number: client.number, moves: client.moves }]));
    await step(name, async () => {
      const sandboxIds = new Set(surviving.map(({ sandboxId }) => sandboxId));
      const text = await cause({ deployment, programs, sandboxIds });
      await advance(surviving);
      const numbers = surviving.map((client) => client.number - (before.get(client)?.number ?? 0));
      const moved = surviving.map((client) => client.moves - (before.get(client)?.moves ?? 0));
      const again = moved.reduce((sum, each) => sum + each, 0);
      const gained = numbers.reduce((sum, each) => sum + each, 0);
      return {
        value: undefined,
        text: `${text}; ${surviving.length} clients got ${gained} numbers, none lost or repeated; reconnected ${again} times`,
      };
    });
  }
}

async function advance(clients: readonly Client[]): Promise<void> {
  await Promise.all(clients.map((client) => client.advance(ADVANCE[client.kind])));
}

async function step<Value>(name: string, work: () => Promise<{ value: Value; text: string }>): Promise<Value> {
  const startMs = performance.now();
  console.log(`${name} …`);
  const { value, text } = await work();
  const seconds = Math.round((performance.now() - startMs) / 1000);
  steps.push({ name, text, seconds });
  console.log(`  ${seconds} s: ${text}`);
  return value;
}
