/** Paths of the host; each exists on some machine, and none of them exists inside. */
export const HIDDEN = [
  "/root",
  "/etc/shadow",
  "/etc/ssh",
  "/etc/sudoers",
  "/etc/ssl/private",
  "/etc/machine-id.host",
  "/var/lib",
  "/var/log",
  "/var/run/docker.sock",
  "/run/docker.sock",
  "/run/secrets",
  "/work",
  "/boot",
  "/lost+found",
];
