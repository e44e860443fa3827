/**
 * `npm run test:kubernetes`: a real Kubernetes with two nodes on this machine, the chart of deploy/helm/sandboxer with the image of
 * deploy/Dockerfile and MinIO on it, and clients that must lose nothing while servers are added, replaced, evicted, drained and
 * killed. Needs Linux, root, Go and Debian's archive; the programs are built or fetched once into the cache. Everything runs in
 * namespaces of its own and ends with them. `--backend fake` does without gVisor, `--images FILE` takes the archive of an earlier
 * run's `--keep-images FILE`, `--only-prepare` stops before the cluster is started, and `--log` writes the outcome into
 * docs/reference/kubernetes-runs.md.
 */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { copyFile, link, mkdtemp, readFile, rm } from "node:fs/promises";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { removeCgroups } from "../packages/server/src/backends/gvisor/cgroups.ts";
import { eventually } from "../test/kit/eventually.ts";
import { withProgress } from "../test/kit/progress.ts";
import { prepareDebianPrograms } from "../test/kit/services/debian-programs.ts";
import { prepareDeployPrograms } from "../test/kit/services/deploy-programs.ts";
import { prepareGvisorTools } from "../test/kit/services/gvisor-tools.ts";
import { whyNoServerImage } from "../test/kit/services/server-image.ts";
import { minio } from "../test/kit/store-servers/minio.ts";
import { whyMissing } from "../test/kit/store-servers/test-server.ts";
import { saveImages } from "./kubernetes/images.ts";
import { writeLog } from "./kubernetes/log-page.ts";
import type { Outcome } from "./kubernetes/outcome.ts";
import { buildKubernetes, getDebianPrograms } from "./kubernetes/programs.ts";

const LIMIT_MS = 3 * 60 * 60_000;
const { values } = parseArgs({
  options: {
    backend: { type: "string", default: "gvisor" },
    images: { type: "string" },
    "keep-images": { type: "string" },
    "only-prepare": { type: "boolean", default: false },
    log: { type: "boolean", default: false },
  },
});
const report = (line: string): void => void process.stdout.write(`${line}\n`);

await prepareDebianPrograms(report);
await prepareDeployPrograms(report);
await prepareGvisorTools(report);
await withProgress(report, "getting containerd, etcd and CNI plugins from Debian", getDebianPrograms);
await withProgress(report, "building Kubernetes and helm with Go", buildKubernetes);
if (whyMissing(minio) !== undefined) {
  await withProgress(report, "building MinIO with Go", () => minio.prepare(AbortSignal.timeout(LIMIT_MS)));
}
const missing = whyNoServerImage();
if (missing !== undefined) throw new Error(`The image of deploy/Dockerfile cannot be built: ${missing}`);
if (!values["only-prepare"]) process.exitCode = await runCluster();

/** Gives the exit code. */
async function runCluster(): Promise<number> {
  const folder = await mkdtemp(join(tmpdir(), "sandboxer-kubernetes-"));
  const cgroup = `/${folder.split("/").at(-1)}`;
  try {
    const archive = join(folder, "images.tar");
    const { images, "keep-images": kept } = values;
    if (images === undefined) {
      await withProgress(report, "building the server's image", () => saveImages(archive));
    } else await link(images, archive).catch(() => copyFile(images, archive));
    if (kept !== undefined) await copyFile(archive, kept);
    const code = await inNamespaces([join(import.meta.dirname, "kubernetes/run.ts"), folder, values.backend, cgroup]);
    const outcome = JSON.parse(await readFile(join(folder, "outcome.json"), "utf8")) as Outcome;
    if (outcome.failure !== undefined) tellLogs(folder);
    if (values.log) await writeLog(outcome, { backend: values.backend, load: loadavg()[2] ?? 0 });
    return code;
  } finally {
    await eventually(`the cgroup ${cgroup} is unused`, () => removeCgroups(cgroup));
    await rm(folder, { recursive: true, force: true });
  }
}

/** Runs a script of Node as the only visitor of new namespaces. Whatever it leaves, mounts and interfaces too, ends with it. */
async function inNamespaces(argv: readonly string[]): Promise<number> {
  // The shell is the first process, and takes in what loses its parent.
  const script = '"$@"; exit $?';
  const unshare = ["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"];
  const child = spawn("unshare", [...unshare, "sh", "-c", script, "sh", process.execPath, ...argv], {
    stdio: ["ignore", "inherit", "inherit"],
  });
  // Ctrl-C ends the script, and what it leaves is removed here.
  process.on("SIGINT", () => {});
  const [code] = (await once(child, "exit")) as [number | null];
  return code ?? 1;
}

function tellLogs(folder: string): void {
  spawnSync("sh", ["-c", `tail -n 20 "$1"/logs/* "$1"/node-*/pod-logs/*/*/*`, "sh", folder], {
    stdio: ["ignore", "inherit", "inherit"],
  });
}
