/** A process of its own for `resume.test.ts`: acquires or resumes a sandbox, leaves or reads a file, and ends. */
import { DaytonaBackend } from "../../../src/backends/daytona/daytona-backend.ts";
import { Secret } from "../../../src/secrets/secret.ts";
import { requestFor } from "./requests.ts";

const MARKER = "/workspace/marker";
const { apiKey, ...place } = JSON.parse(process.env["TEST_DAYTONA"] ?? "{}") as Record<string, string>;
const backend = new DaytonaBackend({
  ...place,
  apiKey: () => Promise.resolve(new Secret("daytona-api-key", apiKey ?? "")),
});

const request = requestFor();
const handle = (await backend.tryResume(request)) ?? (await backend.acquire(request));
const { vendorId } = handle as unknown as { vendorId: string };
if (process.argv[2] === "write") {
  await handle.files.write(MARKER, Buffer.from("from the first process"));
  process.stdout.write(JSON.stringify({ vendorId }));
} else {
  const marker = Buffer.concat(await Array.fromAsync(handle.files.read(MARKER))).toString("utf8");
  process.stdout.write(JSON.stringify({ vendorId, marker }));
}
await backend.close();
