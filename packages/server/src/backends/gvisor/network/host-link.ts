import { readFile } from "node:fs/promises";

const USUAL_BYTES = 1500;

/** The largest packet on the host's way to the outside; larger ones from a sandbox would be lost or sent twice. */
export async function hostLinkBytes(): Promise<number> {
  const routes = await readFile("/proc/net/route", "utf8").catch(() => "");
  // Interface, destination, gateway, … in hexadecimal: the default route's destination is 0.
  const device = /^(\S+)\t00000000\t/m.exec(routes)?.[1];
  if (device === undefined) return USUAL_BYTES;
  const text = await readFile(`/sys/class/net/${device}/mtu`, "utf8").catch(() => "");
  return Math.min(Number(text.trim()) || USUAL_BYTES, USUAL_BYTES);
}
