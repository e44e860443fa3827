import { SandboxerError } from "@sandboxer/protocol";
import { z } from "zod";

/** No user name and no host begins with a dash, or ssh would take it for an option. */
const NAME = /^[A-Za-z0-9_][A-Za-z0-9_.-]*$/;
const HOST = /^[A-Za-z0-9_[:][A-Za-z0-9_.:%[\]-]*$/;
const MAX_PORT = 65_535;

const line = z
  .string()
  .min(1)
  .max(4096)
  .regex(/^[^\0\n"]*$/, "must be one line without quotes");
/**
 * Plain folder names only: no `..`, no doubled slash, never the root itself, so that nothing outside is ever removed.
 */
const baseFolder = line
  .regex(
    /^(\/[A-Za-z0-9_@+][A-Za-z0-9_.@+-]*)+$/,
    "must be an absolute path of plain names, such as /var/lib/sandboxer",
  )
  .refine((path) => path.length <= 512, "is too long");
const insideRepository = line.refine(
  (path) => !path.startsWith("/") && !path.startsWith("-") && !path.split("/").includes(".."),
  "must be a path inside the repository",
);

const placementSchema = z.strictObject({
  host: z.string().max(255).regex(HOST, "must be a host name, an address, or a name of ~/.ssh/config"),
  user: z.string().max(64).regex(NAME, "must be a user name").optional(),
  port: z
    .string()
    .regex(/^\d{1,5}$/, "must be a port")
    .transform(Number)
    .refine((port) => port >= 1 && port <= MAX_PORT, "must be a port")
    .optional(),
  identity_file: line.optional(),
  known_hosts_file: line.optional(),
  base_dir: baseFolder.default("/var/lib/sandboxer"),
  compose_file: insideRepository.optional(),
  service: z
    .string()
    .max(128)
    .regex(/^[A-Za-z0-9][A-Za-z0-9_.-]*$/, "must be the name of a service")
    .optional(),
  docker_host: line.regex(/^[a-z]+:\/\/\S+$/, "must be an address, such as unix:///run/docker.sock").optional(),
});

/** The location of a compose project, and how to reach it. */
export type ComposePlacement = z.infer<typeof placementSchema>;

export function parsePlacement(placement: Readonly<Record<string, string>> | undefined): ComposePlacement {
  const result = placementSchema.safeParse(placement ?? {});
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  const where = ["placement", ...(issue?.path ?? [])].join(".");
  const missing = issue?.code === "invalid_type" && issue.input === undefined;
  const message =
    issue?.code === "unrecognized_keys" ? `has no ${issue.keys.join(", ")}` : (issue?.message ?? "is invalid");
  throw new SandboxerError("bad_request", `${where} ${missing ? "is missing" : message}.`, {
    hint: `Allowed in the profile's placement: ${Object.keys(placementSchema.shape).join(", ")}. host is required.`,
  });
}
