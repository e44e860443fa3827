import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { debianPrograms } from "../../test/kit/services/debian-programs.ts";
import { eventually } from "../../test/kit/eventually.ts";
import type { ControlPlane } from "./control-plane.ts";
import { POD_NETWORK, type NodeNetwork } from "./network.ts";
import { inNetworkOf, output, type Programs, startProcess } from "./processes.ts";
import { clusterPrograms } from "./programs.ts";

const CGROUPS = "/sys/fs/cgroup";

export interface NodeOptions {
  readonly programs: Programs;
  readonly network: NodeNetwork;
  readonly control: ControlPlane;
  /** The cgroup that all of it is below. */
  readonly cgroup: string;
  /** An archive of `docker save`, with the image of Pods' first containers in it. */
  readonly images: string;
  readonly pauseImage: string;
}

/** A node: containerd and a kubelet, in the node's network. */
export async function startNode(options: NodeOptions): Promise<void> {
  const { programs, network, control, images } = options;
  const { name } = network;
  const folder = join(programs.folder, name);
  const socket = join(folder, "containerd.sock");
  await mkdir(join(folder, "cni"), { recursive: true });
  await writeFile(join(folder, "cni/10-pods.conflist"), JSON.stringify(podNetwork(network, folder)));
  await writeFile(join(folder, "containerd.toml"), containerdConfig(folder, options.pauseImage));
  await writeFile(join(folder, "kubelet.json"), JSON.stringify(kubeletConfig(options, folder)));
  await makeCgroup(`${options.cgroup}/${name}`);

  const start = (program: string, ...flags: readonly string[]): Promise<void> =>
    startProcess(programs, `${name}-${program}`, inNetworkOf(name, [program, ...flags]));
  await start("containerd", "--config", join(folder, "containerd.toml"));
  const ctr = ["ctr", "--address", socket, "--namespace", "k8s.io"];
  const answers = (): Promise<boolean> =>
    output([...ctr, "version"], programs.env).then(
      () => true,
      () => false,
    );
  await eventually(`containerd of ${name} answers`, answers, 120_000);
  await output([...ctr, "images", "import", images], programs.env);
  await start(
    "kubelet",
    `--kubeconfig=${control.nodeAccess(name)}`,
    `--config=${join(folder, "kubelet.json")}`,
    `--root-dir=${join(folder, "kubelet")}`,
    `--cert-dir=${join(folder, "certificates")}`,
    `--hostname-override=${name}`,
    `--node-ip=${network.address}`,
  );
}

/** Leads calls of Services to Pods. The node must be known: the proxy ends when it first learns the node's address later. */
export async function startProxy({ programs, network: { name }, control }: NodeOptions): Promise<void> {
  const config = join(programs.folder, name, "proxy.json");
  await writeFile(config, JSON.stringify(proxyConfig(control.nodeAccess("admin"), name)));
  await startProcess(programs, `${name}-kube-proxy`, inNetworkOf(name, ["kube-proxy", `--config=${config}`]));
}

function podNetwork({ podNetwork: subnet }: NodeNetwork, folder: string): object {
  const ipam = {
    type: "host-local",
    dataDir: join(folder, "addresses"),
    ranges: [[{ subnet }]],
    routes: [{ dst: "0.0.0.0/0" }],
  };
  const bridge = { type: "bridge", bridge: "pods", isGateway: true, hairpinMode: true, ipam };
  return { cniVersion: "1.0.0", name: "pods", plugins: [bridge] };
}

function containerdConfig(folder: string, pauseImage: string): string {
  const runtime = '"io.containerd.cri.v1.runtime"';
  return `version = 3
root = "${folder}/containerd"
state = "${folder}/containerd-state"
[grpc]
address = "${folder}/containerd.sock"
[ttrpc]
address = "${folder}/containerd.sock.ttrpc"
[plugins."io.containerd.internal.v1.opt"]
path = "${folder}/opt"
[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = "${pauseImage}"
[plugins.${runtime}]
# Root in a virtual machine may lack the capability to lower it.
restrict_oom_score_adj = true
[plugins.${runtime}.cni]
bin_dirs = ["${clusterPrograms.plugins}"]
conf_dir = "${folder}/cni"
[plugins.${runtime}.containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins.${runtime}.containerd.runtimes.runc.options]
BinaryName = "${join(debianPrograms.bin, "runc")}"
SystemdCgroup = false
`;
}

function kubeletConfig({ network, cgroup }: NodeOptions, folder: string): object {
  return {
    apiVersion: "kubelet.config.k8s.io/v1beta1",
    kind: "KubeletConfiguration",
    // By default it refuses machines with cgroup v1.
    failCgroupV1: false,
    cgroupDriver: "cgroupfs",
    cgroupRoot: `${cgroup}/${network.name}`,
    containerRuntimeEndpoint: `unix://${folder}/containerd.sock`,
    // Nobody else is in this network.
    authentication: { anonymous: { enabled: true }, webhook: { enabled: false } },
    authorization: { mode: "AlwaysAllow" },
    address: network.address,
    readOnlyPort: 0,
    failSwapOn: false,
    resolvConf: "",
    podLogsDir: join(folder, "pod-logs"),
    evictionHard: { "memory.available": "200Mi", "nodefs.available": "1%", "imagefs.available": "1%" },
    imageGCHighThresholdPercent: 100,
  };
}

function proxyConfig(access: string, name: string): object {
  return {
    apiVersion: "kubeproxy.config.k8s.io/v1alpha1",
    kind: "KubeProxyConfiguration",
    mode: "nftables",
    clientConnection: { kubeconfig: access },
    hostnameOverride: name,
    clusterCIDR: POD_NETWORK,
    // Limits of the whole machine stay as they are.
    conntrack: { maxPerCore: 0, min: 0, tcpEstablishedTimeout: "0s", tcpCloseWaitTimeout: "0s" },
  };
}

/** In every hierarchy of cgroup v1, or in the one of v2. */
async function makeCgroup(path: string): Promise<void> {
  for (const hierarchy of await hierarchies()) {
    const steps = path.split("/").filter(Boolean);
    for (let depth = 1; depth <= steps.length; depth += 1) {
      const folder = join(hierarchy, ...steps.slice(0, depth));
      await mkdir(folder, { recursive: true });
      // A cpuset of v1 begins without any processor or memory.
      for (const name of ["cpuset.cpus", "cpuset.mems"].filter((each) => hierarchy.endsWith("cpuset") && each)) {
        await writeFile(join(folder, name), await readFile(join(folder, "..", name), "utf8"));
      }
    }
  }
}

async function hierarchies(): Promise<string[]> {
  if (existsSync(join(CGROUPS, "cgroup.controllers"))) return [CGROUPS];
  const names = await readdir(CGROUPS);
  return names.filter((name) => name !== "unified").map((name) => join(CGROUPS, name));
}
