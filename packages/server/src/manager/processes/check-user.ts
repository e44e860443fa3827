import { SandboxerError } from "@sandboxer/protocol";
import type { SandboxBackend } from "../../backends/backend.ts";

/** Refuses a user on a backend whose programs all run as one user. Undefined: nobody asked for one. */
export function checkUser({ name, capabilities }: SandboxBackend, user: string | undefined): void {
  if (user === undefined || capabilities.users === true) return;
  throw new SandboxerError("not_supported", `The backend ${name} runs all programs as one user.`, {
    hint: "Omit the user, or create the sandbox on gvisor or docker.",
  });
}
