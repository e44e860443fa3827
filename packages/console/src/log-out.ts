import { logOut } from "./session.ts";
import { tellError } from "./ui/toasts.tsx";

/** Reports a failed log-out: the session still exists for the next user. */
export function logOutOrTell(): void {
  logOut().catch((thrown: unknown) => tellError("You are still logged in", thrown));
}
