import { aboutSchema, SandboxerError, type CheckpointReference, type Head } from "@sandboxer/protocol";
import type { KeyOptions } from "../../checkpoints/data-keys.ts";
import type { OpenImage } from "../../checkpoints/open-image.ts";
import type { DurableStore } from "../durable-store.ts";
import { notFound } from "../not-found.ts";

const BACKEND_OF_KIND: ReadonlyMap<string, string> = new Map([
  ["gvisor-checkpoint", "gvisor"],
  ["fake-state", "fake"],
]);

/** A folder in the seeds' layout has no head: it gets an unowned one with the state that its `latest` names. */
export async function importHead(durable: DurableStore, sandboxId: string, options: KeyOptions): Promise<Head> {
  const name = await durable.checkpoints.latestName(sandboxId);
  if (name === undefined) throw notFound(sandboxId);
  const image = await durable.checkpoints.open(sandboxId, name, options);
  const under = await durable.checkpoints.encryptionOf(sandboxId, name);
  const encryption = under === undefined || durable.keys?.isServers(under) === true ? null : under;
  const { kind, created_at } = image.manifest;
  const backend = BACKEND_OF_KIND.get(kind);
  if (backend === undefined) {
    throw new SandboxerError(
      "image_incompatible",
      `${name}: no backend of this server can load a state of the kind "${kind}".`,
    );
  }
  const checkpoint: CheckpointReference = {
    name,
    sha256: image.manifestSha256,
    size_bytes: image.sizeBytes + packedBytes(image),
    created_at,
    kind,
    parent: null,
  };
  const { epoch } = await durable.ownership.create(sandboxId, {
    idleTimeoutSeconds: 300,
    backend,
    spec: { env: {}, resources: {}, network: "none" },
    flags: {
      enable_checkpoint: true,
      enable_idle_timeout_auto_checkpoint: false,
      enable_sandbox_handoff: false,
      on_disconnect: "keep",
    },
    tokenHash: null,
    about: aboutSchema.parse({ encryption }),
    checkpoint,
  });
  return durable.ownership.release({ id: sandboxId, epoch });
}

/** The size of the packs with its blocks that are not in the image itself. */
function packedBytes(image: OpenImage): number {
  return image.format === 1 ? 0 : image.envelope.packs.reduce((sum, { size_bytes: sizeBytes }) => sum + sizeBytes, 0);
}
