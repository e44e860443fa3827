/** The prefix of the host's ends of all sandboxes' links, whichever server they belong to. */
export const LINK_PREFIX = "sandboxer-";
export const NAMESPACE_FOLDER = "/run/netns";

/** The server's own table, and the prefix of its sandboxes' namespaces. */
export function networkName(instanceId: string): string {
  return `sandboxer-${instanceId}`;
}

export function namespaceName(instanceId: string, containerId: string): string {
  return `${networkName(instanceId)}-${containerId}`;
}
