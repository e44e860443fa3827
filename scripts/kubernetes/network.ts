import { output } from "./processes.ts";

/** The control plane's address, in the network namespace of this process. */
export const CONTROL_ADDRESS = "10.99.0.1";
export const POD_NETWORK = "10.98.0.0/16";
export const SERVICE_NETWORK = "10.96.0.0/16";

export interface NodeNetwork {
  readonly name: string;
  readonly address: string;
  readonly podNetwork: string;
}

/** Networks of nodes that {@link connectNodes} makes. */
export function nodeNetworks(count: number): NodeNetwork[] {
  return Array.from({ length: count }, (_, index) => ({
    name: `node-${index + 1}`,
    address: `10.99.0.${11 + index}`,
    podNetwork: `10.98.${index + 1}.0/24`,
  }));
}

/** A namespace for each node, all at one bridge; each knows the way to the Pods of the others. */
export async function connectNodes(nodes: readonly NodeNetwork[]): Promise<void> {
  const ip = (text: string): Promise<string> => output(["ip", ...text.split(" ")]);
  await ip("link set lo up");
  await ip("link add kube type bridge");
  await ip(`addr add ${CONTROL_ADDRESS}/24 dev kube`);
  await ip("link set kube up");
  for (const [index, { name, address, podNetwork }] of nodes.entries()) {
    await ip(`netns add ${name}`);
    await ip(`link add kube-${index} type veth peer name eth0 netns ${name}`);
    await ip(`link set kube-${index} master kube up`);
    await ip(`-n ${name} link set lo up`);
    await ip(`-n ${name} addr add ${address}/24 dev eth0`);
    await ip(`-n ${name} link set eth0 up`);
    await ip(`-n ${name} route add default via ${CONTROL_ADDRESS}`);
    for (const other of nodes.filter((node) => node.name !== name)) {
      await ip(`-n ${name} route add ${other.podNetwork} via ${other.address}`);
    }
    await ip(`route add ${podNetwork} via ${address}`);
    const forward = "echo 1 > /proc/sys/net/ipv4/ip_forward";
    await output(["nsenter", `--net=/run/netns/${name}`, "--", "sh", "-c", forward]);
  }
}
