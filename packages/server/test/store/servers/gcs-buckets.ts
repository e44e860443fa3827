import { randomUUID } from "node:crypto";

/** Gives the address of a store in a new bucket, seen through `seenAt`. */
export async function newGcsStore(endpoint: string, seenAt: string): Promise<string> {
  const bucket = `test-${randomUUID()}`;
  const answer = await fetch(`${endpoint}/storage/v1/b?project=test`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ name: bucket }),
  });
  if (!answer.ok) throw new Error(`no bucket: ${answer.status} ${await answer.text()}`);
  return `gs://${bucket}/some/prefix?endpoint=${seenAt}`;
}
