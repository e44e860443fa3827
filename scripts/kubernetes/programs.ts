/**
 * The programs of a cluster, kept in the cache: containerd, etcd and the CNI plugins as Debian has built them; Kubernetes and
 * helm built with Go, because no archive here has them.
 */
import { existsSync } from "node:fs";
import { copyFile, mkdir, mkdtemp, readFile, rename, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { findGo, tellingLine } from "../../packages/server/src/setup/index.ts";
import { runCommand } from "../../packages/server/src/setup/run-command.ts";
import { unpackSuite } from "../../test/kit/services/debian-programs.ts";
import { SERVERS_FOLDER } from "../../test/kit/store-servers/test-server.ts";

export const KUBERNETES_VERSION = "1.36.3";
/** The newest with the libraries of this Kubernetes. */
const HELM_VERSION = "4.2.4";
const LIMIT_MS = 3 * 60 * 60_000;

const DEBIAN_FOLDER = join(SERVERS_FOLDER, "kubernetes-debian-1");
const BUILT_FOLDER = join(SERVERS_FOLDER, `kubernetes-${KUBERNETES_VERSION}-helm-${HELM_VERSION}`);

export const clusterPrograms = {
  /** For `PATH`. */
  folders: [join(DEBIAN_FOLDER, "usr/bin"), BUILT_FOLDER],
  /** CNI plugins. */
  plugins: join(DEBIAN_FOLDER, "usr/lib/cni"),
};

/** By the suite: newer ones than bookworm's, whose containerd is too old for this Kubernetes. They run on its C library. */
const DEBIAN_PACKAGES = { sid: ["containerd", "etcd-server"], bookworm: ["containernetworking-plugins"] };
const NAMES = [
  "kube-apiserver",
  "kube-controller-manager",
  "kube-scheduler",
  "kubelet",
  "kube-proxy",
  "kubectl",
  "helm",
];

/** From Debian: some seconds. */
export async function getDebianPrograms(): Promise<void> {
  if (existsSync(DEBIAN_FOLDER)) return;
  await inScratchFolder(async (scratch) => {
    for (const [suite, names] of Object.entries(DEBIAN_PACKAGES)) {
      await unpackSuite(join(scratch, suite), suite, names, AbortSignal.timeout(LIMIT_MS));
    }
    const all = join(scratch, "all");
    for (const suite of Object.keys(DEBIAN_PACKAGES)) {
      await run(["cp", "-a", `${join(scratch, suite, "unpacked")}/.`, all], {});
    }
    await rename(all, DEBIAN_FOLDER);
  });
}

/** With Go: about ten minutes on two idle cores. */
export async function buildKubernetes(): Promise<void> {
  if (existsSync(BUILT_FOLDER)) return;
  const go = findGo(process.env["PATH"] ?? "");
  if (go === undefined) throw new Error("Kubernetes is built with Go, and there is no Go here. Install it.");
  await inScratchFolder(async (scratch) => {
    const asked = [go, "mod", "download", "-json", `k8s.io/kubernetes@v${KUBERNETES_VERSION}`] as const;
    const { GoMod } = JSON.parse(await run([...asked], {})) as { GoMod: string };
    await writeFile(join(scratch, "go.mod"), moduleOf(await readFile(GoMod, "utf8")));
    await copyFile(join(import.meta.dirname, "kubernetes.go"), join(scratch, "main.go"));
    const built = join(scratch, "built");
    await mkdir(built);
    const version = "k8s.io/component-base/version";
    const [major, minor] = KUBERNETES_VERSION.split(".");
    const facts = { gitVersion: `v${KUBERNETES_VERSION}`, gitMajor: major, gitMinor: minor };
    const flags = ["-s", "-w", ...Object.entries(facts).map(([name, value]) => `-X ${version}.${name}=${value}`)];
    await run([go, "build", "-mod=mod", "-trimpath", "-ldflags", flags.join(" "), "-o", join(built, "all"), "."], {
      workingDirectory: scratch,
      env: { CGO_ENABLED: "0" },
    });
    for (const name of NAMES) await symlink("all", join(built, name));
    await rename(built, BUILT_FOLDER);
  });
}

/**
 * Kubernetes cannot be built as a dependency as it is: it replaces modules by folders that its published module lacks. The same
 * modules are published on their own.
 */
function moduleOf(kubernetesModule: string): string {
  const staging = KUBERNETES_VERSION.replace(/^1/, "v0");
  const required = [...kubernetesModule.matchAll(/^\t(\S+) (v\S+)(?: \/\/ indirect)?$/gm)];
  const replaced = [...kubernetesModule.matchAll(/^\t(\S+) => \.\/staging\//gm)];
  return [
    "module sandboxer/kubernetes",
    /^go .*$/m.exec(kubernetesModule)?.[0] ?? "",
    /^godebug .*$/m.exec(kubernetesModule)?.[0] ?? "",
    "require (",
    `\thelm.sh/helm/v4 v${HELM_VERSION}`,
    `\tk8s.io/kubernetes v${KUBERNETES_VERSION}`,
    ...required.map(([, name, version]) => `\t${name} ${version === "v0.0.0" ? staging : version}`),
    ")",
    "replace (",
    ...replaced.map(([, name]) => `\t${name} => ${name} ${staging}`),
    ")",
    "",
  ].join("\n");
}

async function inScratchFolder(work: (scratch: string) => Promise<void>): Promise<void> {
  await mkdir(SERVERS_FOLDER, { recursive: true });
  const scratch = await mkdtemp(join(SERVERS_FOLDER, "building-"));
  try {
    await work(scratch);
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

async function run(
  argv: readonly [string, ...string[]],
  options: { readonly workingDirectory?: string; readonly env?: Readonly<Record<string, string>> },
): Promise<string> {
  const result = await runCommand(argv, { ...options, signal: AbortSignal.timeout(LIMIT_MS), standBack: true });
  if (result.code !== 0) throw new Error(`${argv.slice(0, 3).join(" ")} failed: ${tellingLine(result)}`);
  return result.stdout;
}
