/**
 * A server process for `recovery.test.ts`: creates a sandbox at Daytona, prints its id, and runs until it is killed.
 */
import { flushCompileCache } from "node:module";
import { openDaytonaBackend } from "../../../src/backends/daytona/index.ts";
import { Secret } from "../../../src/secrets/secret.ts";
import { requestFor } from "./requests.ts";

const order = JSON.parse(process.argv[2] ?? "{}") as {
  readonly place: Readonly<Record<string, string>>;
  readonly directory: string;
  readonly owner: string;
  readonly instanceId: string;
  readonly keyed: boolean;
};
const { apiKey = "", ...place } = order.place;
const options = { ...place, apiKey: () => Promise.resolve(new Secret("daytona-api-key", apiKey)) };
const { backend } = await openDaytonaBackend(options, order);
const { identity, ...plain } = requestFor({ owner: order.owner });
const handle = await backend.acquire(order.keyed && identity !== undefined ? { ...plain, identity } : plain);
// A killed process would not leave its cache to the next one.
flushCompileCache();
process.stdout.write(`${(handle as unknown as { vendorId: string }).vendorId}\n`);
setInterval(() => {}, 60_000);
