import { SandboxerError } from "@sandboxer/protocol";

/**
 * The engines that we downloaded, checked and tested ourselves. One with another checksum is not run, even if it is
 * signed. gVisor's official release of PINNED_ENGINE_VERSION has no entry: we never had those bytes to test. It is
 * compared with the checksum that is published beside it, so an attacker who controls the bucket controls both.
 */

/** SHA-256 of usr/bin/runsc in runsc_0.0~20240729.0-4~bpo12+2 of bookworm-backports, by `process.arch`. */
export const DEBIAN_RUNSC: Readonly<Record<string, string>> = {
  x64: "a6756a39353dfac7aeab4d3f9205341e4a714600991c7928d747b93d50f9cfaf",
  arm64: "78fa92b9a9db8869ed117d1e61da966d5452f8025409803b1c134cc0a90f90e0",
};

/**
 * SHA-256 of the lines in which `go version -m` names the modules of NEWEST_ENGINE_VERSION with their checksums: gVisor
 * and everything it links, the same for x64 and arm64. The program itself has no checksum here: its bytes follow from the
 * version of Go, which is the machine's. They follow from nothing else (`-trimpath`): Go 1.26.8 on x64 gave
 * 3212383c033df45c14d6d33022dd030a95353f5b0b0b65bcbc3e12d3af750ad7 in two places with other paths and an empty cache.
 */
export const NEWEST_RUNSC_MODULES = "685b32b7032a2a5f8407fc514759d76dbb767947e58167c40792e0053ec70fff";

export function requireChecksum(what: string, actual: string, expected: string | undefined, hint: string): void {
  if (actual === expected) return;
  const known = expected ?? "none for this processor";
  throw new SandboxerError(
    "backend_unavailable",
    `${what} differs from the one that sandboxer was tested with (SHA-256 ${actual}, expected ${known}); it was not used.`,
    { hint },
  );
}
