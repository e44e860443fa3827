/**
 * Writes 256 MiB to a store and reads them back; tells the largest memory of this process in MiB, and the bytes read.
 * argv: store.
 */
import { openDriver } from "../../src/store/open-driver.ts";

const store = await openDriver(process.argv[2] ?? "");
const memory = Buffer.alloc(1024 * 1024);
async function* chunks(): AsyncGenerator<Uint8Array> {
  for (let number = 0; number < 256; number++) yield memory.fill(number);
}
await store.write("large", chunks());
let readBytes = 0;
for await (const chunk of store.read("large", { reuseMemory: true })) readBytes += chunk.byteLength;
process.stdout.write(JSON.stringify({ readBytes, largestMiB: process.resourceUsage().maxRSS / 1024 }));
process.exitCode = 0;
