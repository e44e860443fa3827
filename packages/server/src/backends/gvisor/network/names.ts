/** How the host's ends of all sandboxes' links begin, whichever server they belong to. */
export const LINK_PREFIX = "sandboxer-";
export const NAMESPACE_FOLDER = "/run/netns";

/** The server's own table, and how the names of its sandboxes' namespaces begin. */
export function networkName(instanceId: string): string {
  return `sandboxer-${instanceId}`;
}

export function namespaceName(instanceId: string, containerId: string): string {
  return `${networkName(instanceId)}-${containerId}`;
}
