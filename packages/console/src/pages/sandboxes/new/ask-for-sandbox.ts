import { signal } from "@preact/signals";

/** Whether the form for a new sandbox is open. It is available on every page. */
export const askedForSandbox = signal(false);

export function askForSandbox(): void {
  askedForSandbox.value = true;
}
