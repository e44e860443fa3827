import type { RefusalReason } from "../bucket/bucket-error.ts";

export const GCS_REMEDIES: Readonly<Record<RefusalReason, string>> = {
  credentials:
    "Set GOOGLE_APPLICATION_CREDENTIALS to a key file, or run as a service account, or run: gcloud auth application-default login",
  rights: "Grant roles/storage.objectUser on the bucket (docs/stores.md has the single permissions).",
  bucket: "Create the bucket, or correct its name in the store's address.",
  region: "Check the endpoint in the store's address.",
  request: "See docs/stores.md for the stores that are known to work.",
  space: "Free space in the store, or raise its quota.",
};
