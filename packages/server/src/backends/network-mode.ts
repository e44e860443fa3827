import { SandboxerError } from "@sandboxer/protocol";

/**
 * How sandboxes reach the network. `proxy`: through the server's proxy. `namespace`: by a network of their own. `auto`:
 * by a network of their own where it exists and can apply the policy, else through the proxy. `off`: not at all.
 */
export type NetworkMode = "off" | "proxy" | "namespace" | "auto";

export function networkIsOff(): SandboxerError {
  return new SandboxerError("not_supported", "Sandboxes on this server cannot have network access.", {
    hint: "Request network none, or start the server without --network-mode off.",
  });
}

/** For a policy that a network of its own cannot apply. */
export function needsProxy(reason: string): SandboxerError {
  return new SandboxerError("not_supported", `This network policy needs the server's proxy: ${reason}.`, {
    hint: "Start the server with --network-mode auto or proxy, or use network none or open.",
  });
}
