import { logOut } from "./session.ts";
import { tellError } from "./ui/toasts.tsx";

/** Who could not be logged out is told so: the session is still there for whoever comes next. */
export function logOutOrTell(): void {
  logOut().catch((thrown: unknown) => tellError("You are still logged in", thrown));
}
