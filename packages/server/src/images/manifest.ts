import { SandboxerError } from "@sandboxer/protocol";
import { z } from "zod";
import { DIGEST } from "./image-reference.ts";
import type { ImageLimits } from "./image-limits.ts";

const descriptorSchema = z.looseObject({
  mediaType: z.string().optional(),
  digest: z.string().regex(DIGEST, "must be sha256: and 64 hex digits"),
  size: z.number().int().nonnegative(),
});
export type Descriptor = Pick<z.infer<typeof descriptorSchema>, "digest" | "size">;

const platformSchema = z.looseObject({
  os: z.string().optional(),
  architecture: z.string().optional(),
  variant: z.string().optional(),
});

const indexSchema = z.looseObject({
  manifests: z.array(descriptorSchema.extend({ platform: platformSchema.optional() })),
});

const manifestSchema = z.looseObject({ config: descriptorSchema, layers: z.array(descriptorSchema) });
export type Manifest = z.infer<typeof manifestSchema>;

const text = z.string().nullish();
const configSchema = z.looseObject({
  os: z.string().optional(),
  architecture: z.string().optional(),
  config: z
    .looseObject({
      Env: z.array(z.string()).nullish(),
      User: text,
      WorkingDir: text,
      Entrypoint: z.array(z.string()).nullish(),
      Cmd: z.array(z.string()).nullish(),
    })
    .nullish(),
  rootfs: z.looseObject({ diff_ids: z.array(z.string().regex(DIGEST)).nullable() }),
});

/** The image's defaults for its programs. */
export const imageDefaultsSchema = z.object({
  env: z.record(z.string(), z.string()),
  user: z.string().optional(),
  workingFolder: z.string().optional(),
  entrypoint: z.array(z.string()).optional(),
  command: z.array(z.string()).optional(),
});
export type ImageDefaults = z.infer<typeof imageDefaultsSchema>;

export interface ImageConfig {
  readonly diffIds: readonly string[];
  readonly defaults: ImageDefaults;
}

/** The media types that a client accepts from a registry. */
export const MANIFEST_TYPES = [
  "application/vnd.oci.image.index.v1+json",
  "application/vnd.docker.distribution.manifest.list.v2+json",
  "application/vnd.oci.image.manifest.v1+json",
  "application/vnd.docker.distribution.manifest.v2+json",
];

/** A manifest, or, for an index, the descriptor of this platform's one. */
export function readManifest(
  name: string,
  bytes: Buffer,
  limits: ImageLimits,
  platform: Platform,
): Manifest | Descriptor {
  const json = jsonIn(name, "manifest", bytes);
  const index = indexSchema.safeParse(json);
  if (index.success) return ofPlatform(name, index.data.manifests, platform);
  const manifest = manifestSchema.safeParse(json);
  if (manifest.success) {
    const { length } = manifest.data.layers;
    if (length > limits.layers) throw refused(name, `it has ${length} layers; ${limits.layers} are allowed`);
    // Before anything is downloaded.
    const packedBytes = manifest.data.layers.reduce((sum, { size }) => sum + size, 0);
    if (packedBytes > limits.unpackedBytes) {
      throw refused(name, `its layers have ${packedBytes} bytes; ${limits.unpackedBytes} are allowed`);
    }
    return manifest.data;
  }
  if (isRecord(json) && json["schemaVersion"] === 1) {
    throw refused(name, "its manifest has the old schema 1, which is not supported. Push it again with a newer tool");
  }
  throw refused(name, `its manifest is not valid: ${z.prettifyError(manifest.error).split("\n")[0]}`);
}

export function readConfig(name: string, bytes: Buffer, manifest: Manifest, limits: ImageLimits): ImageConfig {
  const parsed = configSchema.safeParse(jsonIn(name, "config", bytes));
  if (!parsed.success) throw refused(name, "it is not a container image: its config has no root filesystem");
  const diffIds = parsed.data.rootfs.diff_ids ?? [];
  if (diffIds.length !== manifest.layers.length) {
    throw refused(name, `its config lists ${diffIds.length} layers, its manifest ${manifest.layers.length}`);
  }
  const { os = "linux" } = parsed.data;
  if (os !== "linux") throw refused(name, `it is for ${os}; only Linux images can run here`);
  return { diffIds, defaults: defaultsOf(name, parsed.data.config ?? {}, limits) };
}

type ConfigPart = NonNullable<z.infer<typeof configSchema>["config"]>;

function defaultsOf(name: string, config: ConfigPart, { environmentBytes }: ImageLimits): ImageDefaults {
  const env: Record<string, string> = {};
  let bytes = 0;
  for (const line of config.Env ?? []) {
    const [, variable, value = ""] = /^([^=\0]+)=([^\0]*)$/s.exec(line) ?? [];
    if (variable === undefined) continue;
    env[variable] = value;
    bytes += Buffer.byteLength(line);
  }
  if (bytes > environmentBytes) throw refused(name, `its variables have more than ${environmentBytes} bytes`);
  const { User: user, WorkingDir: workingFolder, Entrypoint: entrypoint, Cmd: command } = config;
  return {
    env,
    ...(isGiven(user) ? { user } : {}),
    ...(isGiven(workingFolder) && workingFolder.startsWith("/") ? { workingFolder } : {}),
    ...(entrypoint == null || entrypoint.length === 0 ? {} : { entrypoint }),
    ...(command == null || command.length === 0 ? {} : { command }),
  };
}

function isGiven(value: string | null | undefined): value is string {
  return value !== null && value !== undefined && value !== "" && !value.includes("\0");
}

export interface Platform {
  readonly architecture: string;
  readonly variant?: string;
}

/** This machine, in the words of registries. */
export function thisPlatform(arch: string): Platform {
  if (arch === "x64") return { architecture: "amd64" };
  return arch === "arm64" ? { architecture: "arm64", variant: "v8" } : { architecture: arch };
}

type IndexEntry = z.infer<typeof indexSchema>["manifests"][number];

function ofPlatform(name: string, entries: readonly IndexEntry[], platform: Platform): Descriptor {
  const fitting = entries.filter(
    (entry) => entry.platform?.os === "linux" && entry.platform.architecture === platform.architecture,
  );
  const found = fitting.find((entry) => entry.platform?.variant === platform.variant) ?? fitting[0];
  // An index of one manifest need not name its platform; the config does.
  const only = entries.length === 1 && entries[0]?.platform === undefined ? entries[0] : undefined;
  const chosen = found ?? only;
  if (chosen !== undefined) return { digest: chosen.digest, size: chosen.size };
  const offered = entries
    .filter((entry) => entry.platform !== undefined && entry.platform.os !== "unknown")
    .map((entry) => `${entry.platform?.os}/${entry.platform?.architecture}`);
  const list = offered.length === 0 ? "nothing" : [...new Set(offered)].slice(0, 10).join(", ");
  throw refused(name, `it is not made for linux/${platform.architecture}; it has ${list}`);
}

function jsonIn(name: string, what: string, bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString("utf8"));
  } catch {
    throw refused(name, `its ${what} is not JSON`);
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}

/** An image that this server does not use, and why. */
export function refused(name: string, why: string): SandboxerError {
  return new SandboxerError("bad_request", `The image ${name} cannot be used: ${why}.`, {
    hint: "Use another image, or build this one again.",
  });
}
