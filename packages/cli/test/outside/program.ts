/** A user's program. The test compiles it strictly against the installed SDK, outside of the clone, and runs it. */
import { Sandbox, Sandboxer, SandboxerError } from "@sandboxer/client";
import { SandboxerError as ProtocolError } from "@sandboxer/protocol/errors";
import type { SandboxExtension } from "@sandboxer/server/extension";

const [url = ""] = process.argv.slice(2);
const name: SandboxExtension["name"] = "ext.folder";

const sandbox = await Sandbox.create({ url });
await sandbox.exec("echo hello > note");
const large = new Uint8Array(4_000_000).map((_, index) => (index * index) % 251);
await sandbox.files.write("/tmp/large", large);
await sandbox.checkpoint();
for await (const line of sandbox.exec("cat note").lines()) console.log(`resumed: ${line}`);
const read = await sandbox.files.read("/tmp/large");
console.log(`large file: ${read.length === large.length && read.every((byte, index) => byte === large[index])}`);

try {
  await sandbox.files.read("/tmp/missing");
} catch (error) {
  console.log(`error: ${error instanceof SandboxerError && error instanceof ProtocolError && error.code}`);
}
await sandbox.destroy();

const extended = await Sandbox.create({ url, backend: name });
console.log(`extension: ${(await extended.exec("echo from the folder")).stdout.trim()}`);
await extended.destroy();
console.log(`left: ${(await new Sandboxer({ url }).info()).sandboxes}`);
