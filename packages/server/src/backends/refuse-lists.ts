import { SandboxerError, type NetworkPolicy } from "@sandboxer/protocol";

/** For backends whose own network knows only on and off. */
export function refuseLists(backend: string, policy: NetworkPolicy): void {
  if (typeof policy === "string") return;
  throw new SandboxerError(
    "not_supported",
    `The backend ${backend} cannot limit the network to lists; it offers none and open.`,
    { hint: "Use network none or open, or a backend with the server's proxy: gvisor, or docker." },
  );
}
