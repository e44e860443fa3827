import { randomUUID } from "node:crypto";
import { SandboxerError } from "@sandboxer/protocol";
import type { AcquireRequest, CostEstimate } from "../backend.ts";
import type { ExtensionHandle, ExtensionRecord, ExtensionSnapshot, SandboxExtension } from "../extension/extension.ts";

/** An address that never answers, by RFC 2606. */
const ENDPOINT = "https://stub.invalid";
const PRICE = /^\d{1,9}(\.\d{1,9})?$/;

/**
 * Simulates a paid provider: endpoints that lead nowhere, records for snapshots, and prices from the placement. For
 * testing routing and payments.
 */
export class SaasStubExtension implements SandboxExtension {
  readonly name = "saas-stub";
  readonly snapshotKind = "stub-metadata";

  async provision(request: AcquireRequest): Promise<ExtensionHandle> {
    priceOf(request);
    return stub(request);
  }

  async waitReady(): Promise<void> {}

  async teardown(): Promise<void> {}

  supportsSnapshots(): boolean {
    return true;
  }

  async snapshot(handle: ExtensionHandle): Promise<ExtensionRecord> {
    return { ...handle, snapshot_id: randomUUID() };
  }

  /** A fresh endpoint, with its origin. */
  async restoreFromSnapshot(request: AcquireRequest, { record }: ExtensionSnapshot): Promise<ExtensionHandle> {
    const { snapshot_id: snapshotId } = record;
    if (snapshotId === undefined) {
      throw new SandboxerError("image_damaged", "The record of the snapshot has no snapshot_id.");
    }
    return { ...stub(request), restored_from: snapshotId };
  }

  async estimateCost(request: AcquireRequest): Promise<CostEstimate> {
    return { perHour: priceOf(request), currency: request.spec.placement?.["currency"] ?? "EUR" };
  }
}

function stub({ sandboxId, spec }: AcquireRequest): ExtensionHandle {
  const endpoint = `${ENDPOINT}/${randomUUID()}`;
  return { sandbox_id: sandboxId, endpoint, region: spec.placement?.["region"] ?? "nowhere" };
}

function priceOf({ spec }: AcquireRequest): number {
  const price = spec.placement?.["price_per_hour"] ?? "0";
  if (PRICE.test(price)) return Number(price);
  throw new SandboxerError("bad_request", `placement.price_per_hour must be a number, not "${price}".`);
}
