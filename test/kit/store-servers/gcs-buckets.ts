import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { text } from "node:stream/consumers";

/**
 * Returns the address of a store in a new bucket, seen through `seenAt`. Uses a new connection: the server may just be
 * closing an older one, and a POST is not repeated automatically.
 */
export async function newGcsStore(endpoint: string, seenAt: string): Promise<string> {
  const bucket = `test-${randomUUID()}`;
  const asked = request(`${endpoint}/storage/v1/b?project=test`, {
    method: "POST",
    agent: false,
    headers: { "content-type": "application/json" },
  });
  asked.end(JSON.stringify({ name: bucket }));
  const [answer] = (await once(asked, "response")) as [IncomingMessage];
  const said = await text(answer);
  if (answer.statusCode !== 200) throw new Error(`no bucket: ${answer.statusCode} ${said}`);
  return `gs://${bucket}/some/prefix?endpoint=${seenAt}`;
}
