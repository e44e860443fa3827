import { SandboxerError } from "@sandboxer/protocol";
import { z } from "zod";
import type { SnapshotPayload } from "../backend.ts";

const manifestSchema = z.object({
  format: z.literal(1),
  /** The name of the snapshot at Daytona; the files stay there. */
  snapshot_name: z.string().min(1),
  api_url: z.string(),
  organization_id: z.string().optional(),
  /** The image of the sandbox, for people; absent: Daytona's default. */
  base_image: z.string().optional(),
});

export type SnapshotManifest = z.output<typeof manifestSchema>;

/** Releases before 0.1.0 wrote camelCase. */
const NAMES_BEFORE: Readonly<Record<string, string>> = {
  snapshotName: "snapshot_name",
  apiUrl: "api_url",
  organizationId: "organization_id",
};

export function manifestOf({ requirements }: SnapshotPayload): SnapshotManifest | undefined {
  const renamed = Object.entries(requirements).map(([name, value]) => [NAMES_BEFORE[name] ?? name, value]);
  return manifestSchema.safeParse(Object.fromEntries(renamed)).data;
}

/** A snapshot by reference: its content stays at Daytona. */
export function payloadOf(manifest: SnapshotManifest): SnapshotPayload {
  return { kind: "daytona-snapshot", members: [], requirements: { ...manifest } };
}

/**
 * Refuses, before any call, a snapshot that Daytona cannot load: another kind, another installation, another
 * organization.
 */
export function openPayload(
  payload: SnapshotPayload,
  here: { readonly apiUrl: string; readonly organizationId: string | undefined },
): SnapshotManifest {
  if (payload.kind !== "daytona-snapshot") {
    throw new SandboxerError("image_incompatible", `The backend daytona loads daytona-snapshot, not ${payload.kind}.`, {
      hint: "Restore it on the backend that took it.",
    });
  }
  const manifest = manifestOf(payload);
  if (manifest === undefined) {
    throw new SandboxerError("image_damaged", "The manifest of the Daytona snapshot cannot be read.");
  }
  const { api_url: apiUrl, organization_id: organizationId } = manifest;
  if (apiUrl !== here.apiUrl) {
    throw new SandboxerError(
      "image_incompatible",
      `The snapshot is at ${apiUrl}, but this server uses ${here.apiUrl}.`,
      {
        hint: "Set DAYTONA_API_URL to the address that has the snapshot.",
      },
    );
  }
  if (organizationId !== undefined && here.organizationId !== undefined && organizationId !== here.organizationId) {
    throw new SandboxerError("image_incompatible", "The snapshot belongs to another organization at Daytona.", {
      hint: `Set DAYTONA_ORGANIZATION_ID to ${organizationId}, with a key of that organization.`,
    });
  }
  return manifest;
}

/**
 * `POST /sandbox/{id}/snapshot` is in the API's document and in the vendor's clients, but app.daytona.io answered 404
 * "Cannot POST". https://www.daytona.io/docs/en/tools/api/#daytona/tag/sandbox
 */
export function snapshotEndpointMissing(cause: unknown): SandboxerError {
  return new SandboxerError(
    "not_supported",
    "Daytona documents the snapshot endpoint (POST /sandbox/{id}/snapshot) but has not deployed it at this address: it answered 404 Cannot POST. The sandbox keeps running.",
    {
      hint: "Stop the sandbox instead of taking a snapshot, or copy its files. Ask Daytona about the endpoint.",
      cause,
    },
  );
}
