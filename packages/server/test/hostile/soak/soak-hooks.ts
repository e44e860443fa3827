/** Loaded into the server under soak: says how much of its heap is in use, after all garbage is collected. */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

process.on("message", () => {
  // What finalizers of the first round let go is collected by the second.
  collect();
  setImmediate(() => {
    collect();
    const { heapUsed, external, arrayBuffers } = process.memoryUsage();
    process.send?.({ heapBytes: heapUsed, outsideBytes: external + arrayBuffers });
  });
});
process.channel?.unref();
