/** What a sandbox is called inside. */
export function hostnameOf(sandboxId: string): string {
  return `sandbox-${sandboxId.slice(0, 8)}`;
}
