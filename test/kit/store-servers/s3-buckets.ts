import { randomUUID } from "node:crypto";
import { CreateBucketCommand, S3Client } from "@aws-sdk/client-s3";

export const S3_KEY_ID = "sandboxer";
export const S3_SECRET = "sandboxer-secret";

/** The variables that the SDK's own chain looks for first; also for child processes. */
export function setS3Credentials(): void {
  process.env["AWS_ACCESS_KEY_ID"] = S3_KEY_ID;
  process.env["AWS_SECRET_ACCESS_KEY"] = S3_SECRET;
}

/** Gives the address of a store in a new bucket, seen through `seenAt`. */
export async function newS3Store(endpoint: string, seenAt: string): Promise<string> {
  const client = new S3Client({
    endpoint,
    region: "us-east-1",
    forcePathStyle: true,
    credentials: { accessKeyId: S3_KEY_ID, secretAccessKey: S3_SECRET },
  });
  const bucket = `test-${randomUUID()}`;
  await client.send(new CreateBucketCommand({ Bucket: bucket }));
  client.destroy();
  return `s3://${bucket}/some/prefix?endpoint=${seenAt}`;
}
