import { randomBytes } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { eventually } from "../../test/kit/eventually.ts";
import { CONTROL_ADDRESS, SERVICE_NETWORK, type NodeNetwork } from "./network.ts";
import { output, type Programs, startProcess } from "./processes.ts";

const API = `https://${CONTROL_ADDRESS}:6443`;
const ETCD = "http://127.0.0.1:2379";
const START_MS = 10 * 60_000;

export interface ControlPlane {
  readonly kubectl: (...words: readonly string[]) => Promise<string>;
  readonly helm: (...words: readonly string[]) => Promise<string>;
  /** The file that gives a node access. */
  readonly nodeAccess: (node: string) => string;
}

/** etcd, the API server, the controllers and the scheduler. */
export async function startControlPlane(programs: Programs, nodes: readonly NodeNetwork[]): Promise<ControlPlane> {
  const folder = join(programs.folder, "control");
  await mkdir(folder);
  const key = join(folder, "service-accounts.key");
  const publicKey = join(folder, "service-accounts.pub");
  await output(["openssl", "genrsa", "-out", key, "2048"]);
  await output(["openssl", "rsa", "-in", key, "-pubout", "-out", publicKey]);
  const accessOf = (name: string): string => join(folder, `${name}.kubeconfig`);
  const users = [
    { name: "admin", user: "admin", group: "system:masters" },
    ...nodes.map(({ name }) => ({ name, user: `system:node:${name}`, group: "system:nodes" })),
  ].map((user) => ({ ...user, token: randomBytes(16).toString("hex") }));
  const tokens = join(folder, "tokens.csv");
  await writeFile(tokens, users.map(({ token, user, group }) => `${token},${user},${user},${group}\n`).join(""));
  for (const { name, token } of users) await writeFile(accessOf(name), kubeconfig(token));

  const peer = "http://127.0.0.1:2380";
  await startProcess(programs, "etcd", [
    "etcd",
    `--data-dir=${join(folder, "etcd")}`,
    `--listen-client-urls=${ETCD}`,
    `--advertise-client-urls=${ETCD}`,
    `--listen-peer-urls=${peer}`,
    `--initial-advertise-peer-urls=${peer}`,
    `--initial-cluster=default=${peer}`,
    "--unsafe-no-fsync",
    "--log-level=warn",
  ]);
  await startProcess(programs, "kube-apiserver", [
    "kube-apiserver",
    `--etcd-servers=${ETCD}`,
    `--bind-address=${CONTROL_ADDRESS}`,
    `--advertise-address=${CONTROL_ADDRESS}`,
    "--secure-port=6443",
    `--cert-dir=${join(folder, "certificates")}`,
    `--service-cluster-ip-range=${SERVICE_NETWORK}`,
    "--service-account-issuer=https://kubernetes.default.svc",
    `--service-account-signing-key-file=${key}`,
    `--service-account-key-file=${publicKey}`,
    `--token-auth-file=${tokens}`,
    "--authorization-mode=Node,RBAC",
    "--allow-privileged=true",
    "--kubelet-preferred-address-types=InternalIP",
  ]);
  const env = {
    ...programs.env,
    KUBECONFIG: accessOf("admin"),
    HOME: folder,
    HELM_CACHE_HOME: join(folder, "helm"),
    HELM_CONFIG_HOME: join(folder, "helm"),
    HELM_DATA_HOME: join(folder, "helm"),
  };
  const kubectl = (...words: readonly string[]): Promise<string> => output(["kubectl", ...words], env);
  await eventually(
    "the API server is ready",
    () =>
      kubectl("get", "--raw", "/readyz").then(
        () => true,
        () => false,
      ),
    START_MS,
  );
  for (const [name, ...flags] of [
    [
      "kube-controller-manager",
      `--service-account-private-key-file=${key}`,
      `--root-ca-file=${join(folder, "certificates/apiserver.crt")}`,
    ],
    ["kube-scheduler"],
  ] as const) {
    const own = [`--kubeconfig=${accessOf("admin")}`, "--leader-elect=false", `--cert-dir=${join(folder, name)}`];
    await startProcess(programs, name, [name, ...own, ...flags]);
  }
  return { kubectl, helm: (...words) => output(["helm", ...words], env), nodeAccess: accessOf };
}

function kubeconfig(token: string): string {
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "test", cluster: { server: API, "insecure-skip-tls-verify": true } }],
    users: [{ name: "test", user: { token } }],
    contexts: [{ name: "test", context: { cluster: "test", user: "test" } }],
    "current-context": "test",
  });
}
