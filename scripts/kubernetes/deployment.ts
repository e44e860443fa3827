import { Sandboxer } from "@sandboxer/client";
import { eventually } from "../../test/kit/eventually.ts";
import { CHART, valuesFile } from "./chart.ts";
import type { ControlPlane } from "./control-plane.ts";

export const NAMESPACE = "sandboxes";
const RELEASE = "sandboxer";
/** Drains, and starts of servers on a machine that is busy with all of it. */
const ROLLOUT = "20m";
const PATIENCE_MS = 20 * 60_000;

interface Pod {
  readonly metadata: { readonly name: string; readonly uid: string; readonly deletionTimestamp?: string };
  readonly spec: { readonly nodeName?: string };
  readonly status: {
    readonly podIP?: string;
    readonly containerStatuses?: readonly { readonly containerID?: string; readonly restartCount: number }[];
  };
}

export interface ServerPod {
  readonly name: string;
  readonly node: string;
  readonly address: string;
  readonly containerId: string;
  readonly restarts: number;
}

export interface BusyServer extends ServerPod {
  /** How many of the sandboxes in question it runs. */
  readonly sandboxes: number;
}

/** The chart's release, as its operator uses it. */
export class Deployment {
  readonly #control: ControlPlane;
  readonly #key: string;

  constructor(control: ControlPlane, key: string) {
    this.#control = control;
    this.#key = key;
  }

  kubectl(...words: readonly string[]): Promise<string> {
    return this.#control.kubectl("--namespace", NAMESPACE, ...words);
  }

  async install(folder: string, values: object): Promise<void> {
    const given = ["--namespace", NAMESPACE, "--values", await valuesFile(folder, values)];
    await this.#control.helm("install", RELEASE, CHART, ...given);
    await this.rolledOut();
  }

  async scale(replicas: number): Promise<void> {
    await this.#control.helm(
      "upgrade",
      RELEASE,
      CHART,
      "--namespace",
      NAMESPACE,
      "--reuse-values",
      "--set",
      `replicas=${replicas}`,
    );
    await this.rolledOut();
  }

  async uninstall(): Promise<void> {
    await this.#control.helm("uninstall", RELEASE, "--namespace", NAMESPACE);
    await eventually("all servers have ended", async () => (await this.pods()).length === 0, PATIENCE_MS);
  }

  async rolledOut(): Promise<void> {
    await this.kubectl("rollout", "status", `deployment/${RELEASE}`, `--timeout=${ROLLOUT}`);
    await eventually("no Pod is terminating", async () => (await this.#all()).every(isStaying), PATIENCE_MS);
  }

  /** The address that clients use. */
  async address(): Promise<string> {
    return await this.kubectl(
      "get",
      "service",
      RELEASE,
      "--output",
      "jsonpath={.spec.clusterIP}:{.spec.ports[0].port}",
    );
  }

  async pods(): Promise<readonly ServerPod[]> {
    return (await this.#all()).map(({ metadata, spec, status }) => ({
      name: metadata.name,
      node: spec.nodeName ?? "",
      address: status.podIP ?? "",
      containerId: (status.containerStatuses?.[0]?.containerID ?? "").replace(/^.*\/\//, ""),
      restarts: status.containerStatuses?.[0]?.restartCount ?? 0,
    }));
  }

  async sandboxIds(): Promise<readonly string[]> {
    return (await this.#instances()).flatMap(({ owns }) => owns);
  }

  /** The server that runs most of these sandboxes. */
  async busiest(sandboxIds: ReadonlySet<string>): Promise<BusyServer> {
    const instances = await this.#instances();
    const servers = (await this.pods()).map((pod) => {
      const url = `http://${pod.address}:8080`;
      const owns = instances.filter((instance) => instance.alive && instance.url === url).flatMap((each) => each.owns);
      return { ...pod, sandboxes: owns.filter((id) => sandboxIds.has(id)).length };
    });
    const [first] = servers.toSorted((a, b) => b.sandboxes - a.sandboxes);
    if (first === undefined || first.sandboxes === 0) throw new Error("No server runs a client's sandbox.");
    return first;
  }

  /** Any server knows all of them. */
  async #instances(): ReturnType<Sandboxer["instances"]> {
    const address = (await this.pods())[0]?.address ?? "";
    return await new Sandboxer({ url: `http://${address}:8080`, apiKey: this.#key }).instances();
  }

  async #all(): Promise<readonly Pod[]> {
    const text = await this.kubectl("get", "pods", "--output", "json");
    return (JSON.parse(text) as { items: readonly Pod[] }).items;
  }
}

function isStaying({ metadata }: Pod): boolean {
  return metadata.deletionTimestamp === undefined;
}
