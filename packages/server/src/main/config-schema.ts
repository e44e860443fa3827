import {
  backendNameSchema,
  DURATION_HINT,
  parseKeep,
  parseMaxLoss,
  parseNetworkText,
  parseRange,
  secretNameSchema,
  serverLabelsSchema,
  tryParseDurationMs,
} from "@sandboxer/protocol";
import { isIP } from "node:net";
import { isAbsolute, resolve } from "node:path";
import { z } from "zod";
import { hubName, isRegistryHost } from "../images/image-reference.ts";
import { isNetwork } from "../gateway/access/trusted-proxies.ts";
import { backendNamed } from "../profiles/profile-backends.ts";
import { Secret } from "../secrets/secret.ts";
import { MAX_RESOURCES_HINT, parseMaxResources, parseTotalMemory, TOTAL_MEMORY_HINT } from "./resource-texts.ts";

/** Converts the texts of flags and environment to values. Defaults are texts too, so that there is one path. */
export const configSchema = z.object({
  host: z.string().trim().min(1),
  port: integer(0, 65_535),
  tlsCert: path().optional(),
  tlsKey: path().optional(),
  peerCa: path().optional(),
  requirePeerCert: yesOrNo(),
  advertiseUrl: httpUrl("http://10.0.0.7:8080")
    .transform((text) => text.replace(/\/+$/, ""))
    .optional(),
  serverLabels: serverLabels(),
  previewDomain: previewDomain().optional(),
  maxPreviews: integer(1, 1_000_000),
  maxWakes: integer(1, 1_000).optional(),
  wakeTimeoutMs: durationMs(),
  store: storeLocation().optional(),
  requireStore: yesOrNo(),
  backend: backendNameSchema.transform(backendNamed),
  platform: z.enum(["auto", "systrap", "ptrace", "kvm"]),
  runscPath: path().optional(),
  fetchEngines: yesOrNo(),
  image: z.string().trim().min(1),
  defaultRegistry: z.string().trim().refine(isRegistryHost, "must be a host, such as registry.example:5000"),
  registries: registryHosts(),
  registryMirrors: pairs("docker.io=https://mirror.example", (url) => URL.canParse(url) && /^https?:/.test(url)),
  insecureRegistries: registryHosts(),
  registrySecrets: pairs("registry.example=NAME", (name) => secretNameSchema.safeParse(name).success),
  layerCacheMb: integer(1, 1_000_000_000),
  maxImageMb: integer(1, 1_000_000_000),
  dockerConfig: path(),
  httpProxy: z.string().trim().min(1).optional(),
  httpsProxy: z.string().trim().min(1).optional(),
  noProxy: z.string().trim().min(1).optional(),
  network: parsed(
    parseNetworkText,
    "must be none, open, or domains, addresses and CIDRs with commas between them; ! denies one",
  ),
  networkMode: z.enum(["proxy", "namespace", "auto", "off"]).optional(),
  networkAllow: list().refine((entries) => entries.every((entry) => parseRange(entry) !== undefined), {
    message: "must be addresses or networks, such as 10.0.0.7,192.168.0.0/16",
  }),
  networkNameservers: list().refine((entries) => entries.every(isNameserver), {
    message: "must be addresses, each with an optional :port",
  }),
  allowNetwork: yesOrNo(),
  rootInside: rootInside(),
  // Docker itself supports more kinds of addresses; unsupported ones are refused when they are used.
  dockerHost: z.string().trim().min(1),
  dockerImage: z.string().trim().min(1),
  dockerRuntime: z.string().trim().min(1).optional(),
  dockerNetwork: z.string().trim().min(1),
  dockerMounts: mounts(),
  dataDirectory: path(),
  cacheDirectory: path(),
  profilesDirectory: path(),
  extensions: path().optional(),
  repositories: paths(),
  dozeAfterMs: z.union([z.literal("off").transform(() => 0), durationMs()], {
    error: `must be a duration, or off. ${DURATION_HINT}`,
  }),
  leaseTtlMs: durationMs(),
  handoffTimeoutMs: durationMs(),
  drainTimeoutMs: durationMs(),
  resumeTtlMs: durationMs(),
  defaultIdleTimeoutSeconds: durationMs().transform((ms) => ms / 1000),
  keepCheckpoints: keep(),
  keepSnapshots: keepOrAll(),
  collectEveryMs: durationOrOff(),
  scrubEvery: durationOrOff({ word: "auto", mostDays: 3650 }),
  scrubRateMb: integer(0, 1_000_000),
  encryptionKey: secretName().optional(),
  requireSealed: yesOrNo(),
  encryptionOldKeys: list().pipe(z.array(secretNameSchema)),
  packCacheMb: integer(0, 1_000_000_000),
  imageCacheMb: integer(0, 1_000_000_000),
  maxLoss: maxLoss().optional(),
  proveSnapshots: yesOrNo(),
  maxSandboxes: integer(1, 1_000_000),
  maxResources: parsed(parseMaxResources, MAX_RESOURCES_HINT),
  maxTotalMemory: parsed(parseTotalMemory, TOTAL_MEMORY_HINT),
  maxTotalCpus: integer(1, 1_000_000).optional(),
  warmPoolMax: integer(0, 1_000),
  maxClients: integer(1, 1_000_000),
  maxClientsPerAddress: integer(0, 1_000_000).optional(),
  maxClientsPerKey: integer(0, 1_000_000).optional(),
  maxMessageBytes: integer(1024, 1_073_741_824),
  maxCollectedMb: integer(1, 1_000_000),
  keyHeader: z
    .string()
    .trim()
    .regex(/^[A-Za-z0-9-]+$/, "must be a header name, such as Sandboxer-Key")
    .transform((name) => name.toLowerCase())
    .optional(),
  rateLimit: integer(0, 1_000_000),
  rateBurst: integer(1, 1_000_000).optional(),
  trustedProxies: list().refine((entries) => entries.every(isNetwork), {
    message: "must be addresses or networks, such as 10.0.0.7,192.168.0.0/16",
  }),
  bodyTimeoutMs: durationMs(),
  auditFile: path().optional(),
  apiKeys: list(),
  console: yesOrNo(),
  e2b: yesOrNo(),
  logLevel: z.enum(["trace", "debug", "info", "warn", "error", "fatal", "silent"]),
  daytonaApiKey: z
    .string()
    .transform((value) => new Secret(DAYTONA_API_KEY_SECRET, value))
    .optional(),
  daytonaOrganizationId: headerText().optional(),
  daytonaApiUrl: httpUrl("https://app.daytona.io/api").optional(),
  daytonaToolboxUrl: httpUrl("https://proxy.app.daytona.io/toolbox").optional(),
  daytonaTarget: z.string().trim().min(1).optional(),
  searchPath: z.string(),
});

/** An address, with an optional port, as Node's resolver takes it. */
function isNameserver(text: string): boolean {
  const [, six, four, port] = /^(?:\[([^\]]+)\]|([^:]+|[^[\]]*:[^[\]]*:[^[\]]*?))(?::([0-9]{1,5}))?$/.exec(text) ?? [];
  return isIP(six ?? four ?? "") !== 0 && Number(port ?? 53) <= 65_535;
}

/** A definition of this name in the config file takes precedence. */
export const DAYTONA_API_KEY_SECRET = "daytona-api-key";

export type ConfigValues = z.output<typeof configSchema>;

function integer(minimum: number, maximum: number) {
  const message = `must be an integer from ${minimum} to ${maximum}`;
  return z
    .string()
    .regex(/^[0-9]{1,12}$/, message)
    .transform(Number)
    .refine((value) => value >= minimum && value <= maximum, message);
}

/** Several values, separated by commas. */
function list() {
  return z.string().transform((text) =>
    text
      .split(",")
      .map((entry) => entry.trim())
      .filter((entry) => entry !== ""),
  );
}

function registryHosts() {
  return list()
    .refine((hosts) => hosts.every(isRegistryHost), "must be hosts, such as registry.example,localhost:5000")
    .transform((hosts) => hosts.map(hubName));
}

/** `REGISTRY=VALUE`, several times; values of the same registry are in order. */
function pairs(example: string, isValid: (value: string) => boolean) {
  return list().transform((entries, context) => {
    const values = new Map<string, readonly string[]>();
    for (const entry of entries) {
      const [, host = "", value = ""] = /^([^=]+)=(.+)$/s.exec(entry) ?? [];
      if (!isRegistryHost(host) || !isValid(value)) {
        context.addIssue({ code: "custom", message: `must be registries and values, such as ${example}` });
        return z.NEVER;
      }
      values.set(hubName(host), [...(values.get(hubName(host)) ?? []), value]);
    }
    return values;
  });
}

/** `KEY=VALUE`, each key once. */
function serverLabels() {
  return list().transform((entries, context) => {
    const pairs = entries.map((entry) => entry.split("=", 2).map((part) => part.trim()) as [string, string]);
    const { error, data } = serverLabelsSchema.safeParse(Object.fromEntries(pairs));
    const isAmbiguous = new Set(pairs.map(([key]) => key)).size < pairs.length;
    if (data !== undefined && !isAmbiguous) return data;
    const why = isAmbiguous ? "each label once" : (error?.issues[0]?.message ?? "");
    context.addIssue({ code: "custom", message: `must be labels such as zone=eu-1,pool=gpu: ${why}` });
    return z.NEVER;
  });
}

function yesOrNo() {
  return z
    .string()
    .regex(/^(true|false|yes|no|on|off|1|0)$/i, "must be true or false")
    .transform((text) => /^(true|yes|on|1)$/i.test(text));
}

function httpUrl(example: string) {
  return z
    .string()
    .trim()
    .refine((text) => URL.canParse(text) && /^https?:\/\//.test(text), `must be a URL, such as ${example}`);
}

/** The origin that is the parent of all previews: a domain alone is reached by HTTPS. */
function previewDomain() {
  return z
    .string()
    .trim()
    .transform((text) => (/^https?:\/\//.test(text) ? text : `https://${text}`).replace(/\/$/, ""))
    .refine(
      (text) =>
        URL.canParse(text) && new URL(text).origin === text && /^[a-z][a-z0-9.-]*$/.test(new URL(text).hostname),
      "must be a domain, such as preview.example.com, or with the scheme and port, such as http://preview.test:8080",
    );
}

function secretName() {
  return z.string().trim().pipe(secretNameSchema);
}

function headerText() {
  return z
    .string()
    .trim()
    .regex(/^[\x21-\x7e]+$/, "must be one word of plain characters");
}

function durationMs() {
  return z.string().transform((text, context) => {
    const parsed = tryParseDurationMs(text);
    if (parsed !== undefined) return parsed;
    context.addIssue({ code: "custom", message: `is not a duration. ${DURATION_HINT}` });
    return z.NEVER;
  });
}

function maxLoss() {
  return z.string().transform((text, context) => {
    const parsed = parseMaxLoss(text);
    if (parsed !== undefined) return parsed;
    const message = "must be a duration such as 5m, or a number of executions from 1 to 1000000";
    context.addIssue({ code: "custom", message });
    return z.NEVER;
  });
}

/** The result of `parse`; undefined: it is invalid, and `message` describes the valid form. */
function parsed<Value>(parse: (text: string) => Value | undefined, message: string) {
  return z.string().transform((text, context) => {
    const value = parse(text);
    if (value !== undefined) return value;
    context.addIssue({ code: "custom", message });
    return z.NEVER;
  });
}

function keep() {
  return z.string().transform((text, context) => parseKeep(text) ?? noKeep(context, ""));
}

/** Undefined: all. */
function keepOrAll() {
  return z.string().transform((text, context) => {
    return text.trim() === "all" ? undefined : (parseKeep(text) ?? noKeep(context, " or all"));
  });
}

function noKeep(context: z.RefinementCtx, other: string) {
  const message = `must be how many of the newest to keep (1 to 1000000), or last=N,hourly=N,daily=N${other}`;
  context.addIssue({ code: "custom", message });
  return z.NEVER;
}

/** Undefined: off. A timer cannot be longer than 20 days. */
function durationOrOff<Word extends string = never>({ word, mostDays = 20 }: { word?: Word; mostDays?: number } = {}) {
  return z.string().transform((text, context): number | Word | undefined => {
    if (text.trim() === "off") return undefined;
    if (word !== undefined && text.trim() === word) return word;
    const parsed = tryParseDurationMs(text);
    if (parsed !== undefined && parsed >= 60_000 && parsed <= mostDays * 86_400_000) return parsed;
    const message = `must be off, or a duration from 1m to ${mostDays}d. ${DURATION_HINT}`;
    context.addIssue({ code: "custom", message });
    return z.NEVER;
  });
}

/** Several values, separated by colons, as in PATH. */
function paths() {
  return z.string().transform((text) =>
    text
      .split(":")
      .filter((part) => part !== "")
      .map((part) => resolve(part)),
  );
}

function path() {
  return z
    .string()
    .min(1)
    .transform((text) => resolve(text));
}

/** Backends, or off. */
function rootInside() {
  return list()
    .refine((entries) => entries.every((entry) => /^(gvisor|docker)$/.test(entry)) || entries.join() === "off", {
      message: "must be gvisor, docker, gvisor,docker or off",
    })
    .transform((entries) => ({ gvisor: entries.includes("gvisor"), docker: entries.includes("docker") }));
}

/** Paths on the engine's machine, which may be another one. */
function mounts() {
  return list()
    .refine((entries) => entries.every((entry) => /^\/[^:]*(:r[ow])?$/.test(entry)), {
      message: "must be absolute paths, each with or without :rw, separated by commas",
    })
    .transform((entries) =>
      entries.map((entry) => ({ source: entry.replace(/:r[ow]$/, ""), writable: entry.endsWith(":rw") })),
    );
}

function storeLocation() {
  return z
    .string()
    .trim()
    .min(1)
    .refine((text) => isAbsolute(text) || !/^[a-z][a-z0-9+.-]*:\/\//i.test(text) || /^(s3|gs):\/\/[^/]/.test(text), {
      message: "must be a path, s3://bucket/prefix or gs://bucket/prefix",
    })
    .transform((text) => (/^(s3|gs):\/\//.test(text) ? text : resolve(text)));
}
