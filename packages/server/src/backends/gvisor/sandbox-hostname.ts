/** The hostname inside a sandbox. */
export function hostnameOf(sandboxId: string): string {
  return `sandbox-${sandboxId.slice(0, 8)}`;
}
