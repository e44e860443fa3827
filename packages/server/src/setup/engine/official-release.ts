import { createWriteStream } from "node:fs";
import { chmod } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { SandboxerError } from "@sandboxer/protocol";
import { hashFile } from "../files.ts";
import { inScratchDirectory } from "../scratch.ts";
import { installEngine } from "./cache.ts";
import { requireChecksum } from "./checksums.ts";
import type { EngineSource } from "./source.ts";

/** The release bucket of gVisor's installation guide. */
const RELEASES = "https://storage.googleapis.com/gvisor/releases/release";
const ARCHITECTURES: Readonly<Record<string, string>> = { x64: "x86_64", arm64: "aarch64" };
/** The checksum is small: if it does not arrive in this time, the bucket is unreachable. */
const REACH_TIMEOUT_MS = 5_000;
const TRUSTED_HINT = "Try again later, or give a runsc that you trust with --runsc PATH.";

const RELEASE_VERSION = /^20[0-9]{6}\.[0-9]{1,3}$/;

export function isReleaseVersion(version: string): boolean {
  return RELEASE_VERSION.test(version);
}

/** @param sha256 Another one is not used; absent: only the published checksum is compared. */
export function officialRelease(version: string, sha256?: string): EngineSource {
  return officialReleaseFrom(RELEASES, version, sha256);
}

export function officialReleaseFrom(releases: string, version: string, sha256?: string): EngineSource {
  return {
    name: "official release",
    message: `Fetching gVisor's release ${version}`,
    timeoutMs: 120_000,
    async find({ cacheDirectory, scratchDirectory = cacheDirectory }, signal) {
      const architecture = ARCHITECTURES[process.arch];
      if (architecture === undefined) return { skipped: `gVisor has no release for ${process.arch}.` };
      if (!isReleaseVersion(version)) return { skipped: `runsc ${version} is not an official release.` };
      const url = `${releases}/${version}/${architecture}/runsc`;

      const expected = await fetchChecksum(`${url}.sha512`, signal);
      if ("unreachable" in expected)
        return { skipped: `The official release cannot be fetched: ${expected.unreachable}` };
      return inScratchDirectory(scratchDirectory, async (directory) => {
        const candidate = join(directory, "runsc");
        try {
          await download(url, candidate, signal);
        } catch (thrown) {
          return { skipped: `The official release cannot be fetched: ${describeFetchError(thrown)}` };
        }
        const actual = await hashFile(candidate, "sha512");
        if (actual !== expected.sha512) {
          throw new SandboxerError(
            "backend_unavailable",
            `${url} does not have its published checksum; it was not used.`,
            { hint: TRUSTED_HINT },
          );
        }
        if (sha256 !== undefined) {
          requireChecksum(`gVisor's release ${version}`, await hashFile(candidate), sha256, TRUSTED_HINT);
        }
        await chmod(candidate, 0o755);
        const engine = await installEngine(cacheDirectory, candidate, this.name, signal);
        return { value: engine, message: `runsc ${engine.version}, checksum verified, at ${engine.path}` };
      });
    },
  };
}

async function fetchChecksum(url: string, signal: AbortSignal): Promise<{ sha512: string } | { unreachable: string }> {
  try {
    const response = await fetch(url, { signal: AbortSignal.any([signal, AbortSignal.timeout(REACH_TIMEOUT_MS)]) });
    if (!response.ok) return { unreachable: `HTTP ${response.status}` };
    const sha512 = /^[0-9a-f]{128}/.exec(await response.text())?.[0];
    return sha512 === undefined ? { unreachable: "its checksum file contains no checksum" } : { sha512 };
  } catch (thrown) {
    signal.throwIfAborted();
    return { unreachable: describeFetchError(thrown) };
  }
}

async function download(url: string, target: string, signal: AbortSignal): Promise<void> {
  const response = await fetch(url, { signal });
  if (!response.ok || response.body === null) throw new Error(`HTTP ${response.status}`);
  await pipeline(Readable.fromWeb(response.body), createWriteStream(target));
}

function describeFetchError(thrown: unknown): string {
  const error = thrown as Error;
  if (error.name === "TimeoutError") return "no answer in time";
  const cause = error.cause as NodeJS.ErrnoException | undefined;
  return cause?.code ?? cause?.message ?? error.message;
}
