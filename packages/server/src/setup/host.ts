import { SandboxerError } from "@sandboxer/protocol";

export interface Host {
  readonly operatingSystem: string;
  readonly architecture: string;
  readonly uid: number | undefined;
}

export function thisHost(): Host {
  return { operatingSystem: process.platform, architecture: process.arch, uid: process.getuid?.() };
}

const TRY_WITHOUT = "To try the protocol without sandboxes, start with --backend fake.";

/** Explains why gVisor cannot work here, before anything is downloaded. */
export function requireGvisorHost(host: Host): void {
  const why = whyNotGvisor(host);
  if (why !== undefined) throw new SandboxerError("backend_unavailable", why.reason, { hint: why.remedy });
}

export function whyNotGvisor(host: Host): { reason: string; remedy: string } | undefined {
  if (host.operatingSystem !== "linux") {
    return {
      reason: `The gvisor backend needs Linux; this is ${host.operatingSystem}.`,
      remedy: `Run it on a Linux machine, or in a Linux virtual machine. ${TRY_WITHOUT}`,
    };
  }
  if (host.architecture !== "x64" && host.architecture !== "arm64") {
    return {
      reason: `The gvisor backend needs x64 or arm64; this is ${host.architecture}.`,
      remedy: `Use another machine. ${TRY_WITHOUT}`,
    };
  }
  if (host.uid !== 0) {
    return {
      reason: `The gvisor backend needs root; this is uid ${host.uid}. runsc refuses create and restore when it is rootless, so nothing could be restored.`,
      remedy: `Start it with sudo, or as root in a privileged container. ${TRY_WITHOUT}`,
    };
  }
  return undefined;
}
