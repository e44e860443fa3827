import { spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { SandboxerError } from "@sandboxer/protocol";
import { z } from "zod";
import type { SecretResolver } from "../../secrets/secret.ts";
import type { CallOptions } from "../../support/call-options.ts";
import { undefinedIf } from "../../support/errno.ts";
import { jsonOf } from "../../support/json.ts";
import { DOCKER_HUB, hubName } from "../image-reference.ts";

export interface Credentials {
  readonly user: string;
  readonly password: string;
  /** A token that is exchanged for a short one, instead of the password. */
  readonly identityToken?: string;
}

export interface CredentialSources {
  /** The folder with Docker's `config.json`; absent: none is read. */
  readonly dockerConfig?: string | undefined;
  /** Registries, and the names of secrets whose value is `USER:PASSWORD`. They take precedence. */
  readonly secretNames: ReadonlyMap<string, string>;
  readonly secrets: SecretResolver;
  /** The search path of credential helpers. */
  readonly searchPath: string;
}

const entrySchema = z.looseObject({
  auth: z.string().optional(),
  username: z.string().optional(),
  password: z.string().optional(),
  identitytoken: z.string().optional(),
});
const fileSchema = z.looseObject({
  auths: z.record(z.string(), entrySchema).optional(),
  credHelpers: z.record(z.string(), z.string()).optional(),
  credsStore: z.string().optional(),
});
const helperSchema = z.looseObject({ Username: z.string(), Secret: z.string() });

/** The key of Docker Hub in files that other tools write. */
const HUB_KEY = "https://index.docker.io/v1/";
const HELPER_MS = 20_000;

/** The credentials for a registry; undefined: it is asked without. Read each time, so that they may change. */
export async function credentialsFor(
  registry: string,
  sources: CredentialSources,
  options: CallOptions = {},
): Promise<Credentials | undefined> {
  const secretName = sources.secretNames.get(registry);
  if (secretName !== undefined) return fromSecret(secretName, sources.secrets, options);
  if (sources.dockerConfig === undefined) return undefined;
  const path = join(sources.dockerConfig, "config.json");
  const text = await readFile(path, "utf8").catch(undefinedIf("ENOENT", "ENOTDIR", "EACCES"));
  if (text === undefined) return undefined;
  const file = fileIn(path, text);
  const keys = registry === DOCKER_HUB ? [HUB_KEY, DOCKER_HUB, "index.docker.io"] : [registry];
  const helper = keys.map((key) => file.credHelpers?.[key]).find((name) => name !== undefined) ?? file.credsStore;
  const [key = registry] = keys;
  if (helper !== undefined) {
    const found = await fromHelper(helper, key, sources.searchPath);
    if (found !== undefined) return found;
  }
  const entry = Object.entries(file.auths ?? {}).find(([name]) => keys.includes(name) || hostOf(name) === registry);
  return entry === undefined ? undefined : fromEntry(entry[1]);
}

async function fromSecret(name: string, secrets: SecretResolver, options: CallOptions): Promise<Credentials> {
  const value = (await secrets.resolve(name, options)).reveal().trim();
  const colon = value.indexOf(":");
  if (colon > 0) return { user: value.slice(0, colon), password: value.slice(colon + 1) };
  throw new SandboxerError("secret_unavailable", `The secret ${name} for a registry must be USER:PASSWORD.`, {
    details: { secret: name },
  });
}

function fileIn(path: string, text: string): z.infer<typeof fileSchema> {
  try {
    return fileSchema.parse(JSON.parse(text));
  } catch (error) {
    throw new SandboxerError("bad_request", `${path} is not a valid Docker config file.`, { cause: error });
  }
}

/** Keys are hosts, or URLs of older tools. */
function hostOf(key: string): string {
  return hubName(key.replace(/^https?:\/\//, "").replace(/\/.*$/, ""));
}

function fromEntry({ auth, username, password, identitytoken }: z.infer<typeof entrySchema>): Credentials | undefined {
  const decoded = auth === undefined ? "" : Buffer.from(auth, "base64").toString("utf8");
  const colon = decoded.indexOf(":");
  const user = username ?? decoded.slice(0, Math.max(0, colon));
  const secret = password ?? decoded.slice(colon + 1);
  if (identitytoken !== undefined && identitytoken !== "") return { user, password: "", identityToken: identitytoken };
  return user === "" ? undefined : { user, password: secret };
}

/** Runs `docker-credential-NAME get`. A helper that does not know the registry, or is missing, has none. */
async function fromHelper(name: string, registry: string, searchPath: string): Promise<Credentials | undefined> {
  if (!/^[A-Za-z0-9_.-]+$/.test(name)) return undefined;
  const output = await new Promise<string | undefined>((resolve) => {
    const child = spawn(`docker-credential-${name}`, ["get"], {
      env: { PATH: searchPath, HOME: homedir() },
      stdio: ["pipe", "pipe", "ignore"],
      timeout: HELPER_MS,
    });
    let text = "";
    child.stdout.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
    child.once("error", () => resolve(undefined));
    child.once("close", (code) => resolve(code === 0 ? text : undefined));
    child.stdin.on("error", () => {}).end(registry);
  });
  if (output === undefined) return undefined;
  const parsed = helperSchema.safeParse(jsonOf(output));
  if (!parsed.success || parsed.data.Secret === "") return undefined;
  const { Username: user, Secret: password } = parsed.data;
  return user === "<token>" ? { user, password: "", identityToken: password } : { user, password };
}
