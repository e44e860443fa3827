import type { RefusalReason } from "../bucket/bucket-error.ts";

export const S3_REMEDIES: Readonly<Record<RefusalReason, string>> = {
  credentials:
    "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or run with a role that has access to the bucket.",
  rights:
    "Allow s3:ListBucket on the bucket, and s3:GetObject, s3:PutObject, s3:DeleteObject and s3:AbortMultipartUpload below the prefix (docs/stores.md).",
  bucket: "Create the bucket, or correct its name in the store's address.",
  region: "Name the bucket's region: s3://bucket/prefix?region=eu-central-1, or AWS_REGION.",
  request: "See docs/stores.md for the stores that are known to work.",
  space: "Free space in the store, or raise its quota.",
};
