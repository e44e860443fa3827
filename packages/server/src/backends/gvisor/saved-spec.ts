import { SandboxerError } from "@sandboxer/protocol";
import { z } from "zod";

const READ_ONLY_BIND = ["rbind", "ro", "nosuid"];

const Mount = z
  .strictObject({
    destination: z.string().startsWith("/"),
    type: z.enum(["proc", "sysfs", "tmpfs", "bind"]),
    source: z.string(),
    options: z.array(z.string()).optional(),
  })
  .refine(showsNothingOfTheHost, "is not a mount of this server's");

/** runsc treats every mount with the option `bind` as a host folder, whatever its type. */
function showsNothingOfTheHost({
  type,
  source,
  options = [],
}: {
  type: string;
  source: string;
  options?: string[] | undefined;
}) {
  if (type === "bind") return options.join() === READ_ONLY_BIND.join();
  return source === type && options.every((option) => /^(nosuid|noexec|nodev|ro|mode=\d+|size=\d+)$/.test(option));
}

/**
 * Only the parts of an OCI runtime configuration that are written here: an image comes from a store, and other parts
 * would let it run programs of the host (hooks) or access its devices.
 */
const Spec = z.strictObject({
  ociVersion: z.string(),
  process: z.strictObject({
    terminal: z.literal(false),
    user: z.strictObject({ uid: z.int(), gid: z.int() }),
    args: z.array(z.string()).min(1),
    cwd: z.string(),
    env: z.array(z.string()),
    noNewPrivileges: z.boolean(),
    capabilities: z.record(z.string(), z.array(z.string())),
    rlimits: z.array(z.strictObject({ type: z.string(), hard: z.number(), soft: z.number() })),
  }),
  root: z.strictObject({ path: z.string(), readonly: z.boolean() }),
  hostname: z.string(),
  mounts: z.array(Mount),
  linux: z.strictObject({
    namespaces: z.array(z.strictObject({ type: z.enum(["pid", "network", "ipc", "uts", "mount"]) })),
    resources: z.strictObject({ memory: z.strictObject({ limit: z.number() }) }),
    cgroupsPath: z.string().optional(),
  }),
  annotations: z.strictObject({}),
});

export type OciMount = z.infer<typeof Mount>;
export type OciSpec = z.infer<typeof Spec>;

/** With paths of namespaces, which no image may contain. */
export type RunnableSpec = Omit<OciSpec, "linux"> & {
  readonly linux: Omit<OciSpec["linux"], "namespaces"> & {
    readonly namespaces: readonly { readonly type: string; readonly path?: string }[];
  };
};

export function parseSavedSpec(text: string): OciSpec {
  let content: unknown;
  try {
    content = JSON.parse(text);
  } catch {
    throw new SandboxerError("image_damaged", "The configuration in the image is not JSON.");
  }
  const parsed = Spec.safeParse(content);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  throw new SandboxerError(
    "image_damaged",
    `The configuration in the image is not one of this server's: ${issue?.path.join(".") ?? ""} ${issue?.message ?? ""}`,
  );
}
