import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { ControlPlane } from "./control-plane.ts";

export const CHART = join(import.meta.dirname, "../../deploy/helm/sandboxer");
const STORE = { url: "s3://bucket/prefix" };
const KEYS = { values: ["a-key-of-twenty-characters"] };

/** Values that must be accepted, by what they show. */
const ACCEPTED: Readonly<Record<string, object>> = {
  "as little as possible": { store: STORE, apiKeys: KEYS },
  "the fake backend": { store: STORE, apiKeys: KEYS, backend: "fake" },
  "everything at once": {
    store: { ...STORE, existingSecret: "bucket" },
    apiKeys: { existingSecret: "keys" },
    imagePullSecrets: [{ name: "registry" }],
    config: { max_sandboxes: 40, trusted_proxy: "10.0.0.0/8" },
    env: { AWS_REGION: "eu-central-1" },
    extraVolumes: [{ name: "profiles", configMap: { name: "profiles" } }],
    extraVolumeMounts: [{ name: "profiles", mountPath: "/etc/profiles" }],
    previewDomain: "preview.example.net",
    dataVolume: { emptyDir: { sizeLimit: "100Gi" } },
    service: { type: "LoadBalancer", annotations: { "example.net/kind": "internal" } },
    ingress: { enabled: true, className: "nginx", host: "sandboxes.example.net", tlsSecret: "certificate" },
    autoscaling: { enabled: true, maxReplicas: 20 },
    networkPolicy: { enabled: true, from: [{ namespaceSelector: { matchLabels: { team: "agents" } } }] },
    serviceAccount: { annotations: { "example.net/role": "sandboxes" } },
    nodeSelector: { pool: "sandboxes" },
    tolerations: [{ key: "sandboxes", operator: "Exists", effect: "NoSchedule" }],
    affinity: { nodeAffinity: {} },
    podAnnotations: { "prometheus.io/scrape": "false" },
    podLabels: { team: "agents" },
  },
};

/** Values that must be refused, by a part of the message. */
const REFUSED: Readonly<Record<string, object>> = {
  "apiKeys.existingSecret or apiKeys.values": { store: STORE },
  "'^(s3|gs)://": { store: { url: "/srv/sandboxes" }, apiKeys: KEYS },
  "additional properties 'replica'": { store: STORE, apiKeys: KEYS, replica: 3 },
  "/ingress/host": { store: STORE, apiKeys: KEYS, ingress: { enabled: true } },
  "/backend": { store: STORE, apiKeys: KEYS, backend: "docker" },
};

/** Renders the chart, and lets the API server judge what it is. Gives what was done, in words. */
export async function validateChart({ helm, kubectl }: ControlPlane, folder: string): Promise<string> {
  await helm("lint", "--strict", CHART, "--values", await valuesFile(folder, ACCEPTED["as little as possible"] ?? {}));
  let objects = 0;
  for (const values of Object.values(ACCEPTED)) {
    const rendered = join(folder, "rendered.yaml");
    await writeFile(rendered, await helm("template", "trial", CHART, "--values", await valuesFile(folder, values)));
    const applied = await kubectl("apply", "--dry-run=server", "--validate=strict", "--filename", rendered);
    objects += applied.trim().split("\n").length;
  }
  for (const [message, values] of Object.entries(REFUSED)) {
    const refusal = await helm("template", "trial", CHART, "--values", await valuesFile(folder, values)).then(
      () => "no refusal",
      (error: unknown) => (error as { stderr: string }).stderr,
    );
    if (!refusal.includes(message)) throw new Error(`helm should have said "${message}": ${refusal}`);
  }
  return `${Object.keys(ACCEPTED).length} sets of values accepted (${objects} objects), ${Object.keys(REFUSED).length} refused`;
}

/** JSON is YAML. */
export async function valuesFile(folder: string, values: object): Promise<string> {
  const path = join(folder, "values.json");
  await writeFile(path, JSON.stringify(values));
  return path;
}
