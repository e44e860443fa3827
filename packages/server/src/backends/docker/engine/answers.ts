/** The used fields of the Docker Engine API: https://docs.docker.com/reference/api/engine/ */
import { z } from "zod";

/** Go returns null for an empty list or map. */
const strings = z
  .array(z.string())
  .nullish()
  .transform((value) => value ?? []);
const labels = z
  .record(z.string(), z.string())
  .nullish()
  .transform((value) => value ?? {});

const mounts = z
  .array(z.object({ Target: z.string(), ReadOnly: z.boolean().default(false) }))
  .nullish()
  .transform((value) => value ?? []);

export const EngineInfo = z.object({
  ServerVersion: z.string(),
  /** The kernel of the engine's machine. */
  KernelVersion: z.string().default(""),
  /** The engine's data folder, on its machine. */
  DockerRootDir: z.string().default(""),
  OSType: z.string(),
  Architecture: z.string(),
  Driver: z.string(),
  ExperimentalBuild: z.boolean().default(false),
  MemoryLimit: z.boolean().default(false),
  CpuCfsQuota: z.boolean().default(false),
  PidsLimit: z.boolean().default(false),
  DefaultRuntime: z.string().default(""),
  Runtimes: z
    .record(z.string(), z.unknown())
    .nullish()
    .transform((value) => Object.keys(value ?? {})),
});
export type EngineInfo = z.output<typeof EngineInfo>;

export const CreatedContainer = z.object({ Id: z.string().min(1) });

export const ContainerState = z.object({
  Status: z.enum(["created", "running", "paused", "restarting", "removing", "exited", "dead"]).catch("dead"),
  OOMKilled: z.boolean().default(false),
  ExitCode: z.number().default(0),
  FinishedAt: z.string().default(""),
});

export const Container = z.object({
  Id: z.string().min(1),
  Name: z.string(),
  Created: z.string(),
  /** The id of its image. */
  Image: z.string(),
  State: ContainerState,
  Config: z.object({ Env: strings, Labels: labels }),
  HostConfig: z.object({ Runtime: z.string().default(""), NetworkMode: z.string(), Mounts: mounts }),
  SizeRw: z
    .number()
    .nullish()
    .transform((value) => value ?? 0),
});
export type Container = z.output<typeof Container>;

export const ListedContainers = z.array(z.object({ Id: z.string().min(1), Names: strings }));

/** Present when it has ended; without it, it may not have. */
export const Waited = z.object({ StatusCode: z.number() });

/** cgroup v1 counts cached files as `total_inactive_file`, v2 as `inactive_file`. */
export const ContainerStats = z.object({
  memory_stats: z
    .object({ usage: z.number().default(0), stats: z.record(z.string(), z.number()).nullish() })
    .default({ usage: 0 }),
  cpu_stats: z
    .object({ cpu_usage: z.object({ total_usage: z.number().default(0) }).default({ total_usage: 0 }) })
    .default({ cpu_usage: { total_usage: 0 } }),
});

export const Image = z.object({ Id: z.string().min(1) });
export type Image = z.output<typeof Image>;

export const ListedImages = z.array(z.object({ Id: z.string().min(1), Labels: labels }));

export const Committed = z.object({ Id: z.string().min(1) });

export const ListedNetworks = z.array(z.object({ Name: z.string() }));

/** One line of the progress of a pull, a load or an import. */
export const ProgressLine = z.object({ error: z.string().optional() });
export type ProgressLine = z.output<typeof ProgressLine>;
