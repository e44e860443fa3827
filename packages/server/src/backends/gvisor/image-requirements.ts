import { readFile } from "node:fs/promises";
import { arch } from "node:os";
import { SandboxerError } from "@sandboxer/protocol";
import { z } from "zod";
import type { MachineFacts, StateNeeds } from "../backend.ts";
import { identityDifferences, type RootFilesystemIdentity } from "./root-filesystem/root-filesystem.ts";

/** The requirements of an image for a machine. Stored in each image. */
export const ImageRequirements = z.looseObject({
  engine: z.looseObject({ version: z.string(), sha256: z.string() }),
  platform: z.enum(["systrap", "ptrace", "kvm"]),
  overlay: z.string(),
  /** gVisor's network, not the sandbox's policy: `sandbox` is a network stack with a namespace of its own. */
  network: z.enum(["none", "sandbox"]),
  architecture: z.string(),
  cpu_features: z.array(z.string()),
  root_filesystem: z.looseObject({
    image: z.string(),
    kind: z.string(),
    digest: z.string(),
    parts: z.record(z.string(), z.string()),
  }),
  agent_sha256: z.string(),
  generation: z.number().int().nonnegative(),
});
export type ImageRequirements = z.infer<typeof ImageRequirements>;

/** The runsc flag for the location of the writable layer; an image depends on it. */
export const OVERLAY = "root:dir";

export interface Machine {
  readonly engineVersion: string;
  readonly platform: string;
  readonly cpuFeatures: readonly string[];
}

/** Flags that Linux derives from others or from its own state; they do not affect programs. */
const SYNTHETIC = new Set(
  "constant_tsc rep_good nopl xtopology nonstop_tsc cpuid extd_apicid aperfmperf tsc_known_freq hypervisor arch_perfmon pebs bts acc_power nonstop_tsc_s3 tsc_reliable overflow_recov succor smca arat md_clear flush_l1d ibrs ibpb stibp ssbd ibrs_enhanced retpoline rsb_ctxsw cpb hw_pstate proc_feedback vmmcall vnmi user_shstk debug_swap".split(
    " ",
  ),
);

export async function readCpuFeatures(): Promise<string[]> {
  const text = await readFile("/proc/cpuinfo", "utf8");
  const flags = /^(?:flags|Features)\s*:\s*(.*)$/m.exec(text)?.[1] ?? "";
  return flags
    .split(" ")
    .filter((flag) => flag !== "" && !SYNTHETIC.has(flag))
    .toSorted();
}

/** Whether this engine can load the image. */
export function isMadeBy(
  wanted: ImageRequirements,
  engine: { readonly version: string; readonly platform: string },
): boolean {
  return wanted.engine.version === engine.version && runsOn(wanted.platform, engine.platform);
}

/** systrap patches system calls in the memory of programs, so its images run nowhere else; ptrace's run on both. */
function runsOn(wanted: string, platform: string): boolean {
  return wanted === platform || (wanted === "ptrace" && platform === "systrap");
}

/** The requirements that are compared with facts that other servers publish. Unreadable ones are refused later. */
export function needsOf(requirements: Readonly<Record<string, unknown>>): StateNeeds {
  const { data } = ImageRequirements.safeParse(requirements);
  if (data === undefined) return {};
  const { engine, platform, architecture, cpu_features: cpuFeatures } = data;
  return { engine: engine.version, platform, architecture, cpuFeatures };
}

interface MachineOptions extends Pick<Machine, "cpuFeatures" | "platform"> {
  readonly engines: readonly string[];
  /** Undefined: it uses one engine only. */
  readonly fetches: boolean | undefined;
}

/** With several engines, each image runs on its own platform. */
export function machineFacts({ engines, fetches, platform, cpuFeatures }: MachineOptions): MachineFacts {
  const platforms = ["systrap", "ptrace", "kvm"].filter(
    (wanted) => runsOn(wanted, platform) || (fetches !== undefined && wanted !== "kvm"),
  );
  return {
    engines,
    fetches_engines: fetches ?? false,
    platforms,
    architecture: arch(),
    cpu_features: cpuFeatures,
  };
}

/** Refuses an image that cannot run here, and lists all differences. */
export function checkRequirements(
  wanted: ImageRequirements,
  machine: Machine,
  rootFilesystem: RootFilesystemIdentity,
): void {
  const differences: string[] = [];
  if (wanted.engine.version !== machine.engineVersion) {
    differences.push(`it was saved by runsc ${wanted.engine.version}, this server runs ${machine.engineVersion}`);
  }
  if (!runsOn(wanted.platform, machine.platform)) {
    differences.push(`it was saved on platform ${wanted.platform}, this server uses ${machine.platform}`);
  }
  if (wanted.architecture !== arch()) differences.push(`it was saved on ${wanted.architecture}, this is ${arch()}`);
  if (wanted.overlay !== OVERLAY)
    differences.push(`its writable layer is of kind ${wanted.overlay}, this server uses ${OVERLAY}`);
  const missing = wanted.cpu_features.filter((feature) => !machine.cpuFeatures.includes(feature));
  if (missing.length > 0) differences.push(`this CPU lacks ${missing.slice(0, 8).join(", ")}`);
  differences.push(...identityDifferences(wanted.root_filesystem, rootFilesystem));
  if (differences.length === 0) return;
  throw new SandboxerError("image_incompatible", `The image cannot run on this server: ${differences.join("; ")}.`, {
    details: { differences },
  });
}
