import type { NetworkGuard } from "../backends/backend.ts";
import type { Egress } from "./egress.ts";
import { GivenAddresses } from "./given-addresses.ts";
import { NameServer } from "./name-server.ts";
import { TransparentProxy } from "./transparent-proxy.ts";

/** For a sandbox with a network of its own. */
export function guardOf(egress: Egress): NetworkGuard {
  const given = new GivenAddresses();
  const [names, proxy] = [new NameServer(egress, given), new TransparentProxy(egress, given)];
  return { accept: (socket, to) => proxy.accept(socket, to), answer: (question) => names.answer(question) };
}
