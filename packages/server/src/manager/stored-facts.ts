import {
  aboutSchema,
  networkSettingSchema,
  normalNetwork,
  resourcesInMebibytes,
  resourcesSchema,
  SandboxerError,
  storedNetwork,
  storedMessageSchema,
  storedTextSchema,
  storedWordsSchema,
  userSchema,
  type About,
  type Head,
} from "@sandboxer/protocol";
import { z } from "zod";
import type { Resources, SandboxSpec } from "../backends/backend.ts";
import type { SandboxFacts } from "./live-sandbox.ts";

const words = storedWordsSchema;
const amount = z.number().positive().exactOptional();

/** Every field of a spec has a row here, so that none is lost in the store. */
const storedSpecSchema = z.object({
  image: storedTextSchema.exactOptional(),
  user: userSchema.exactOptional(),
  env: words,
  resources: z
    .object({
      cpus: amount,
      memoryBytes: amount,
      processes: amount,
      diskBytes: amount,
      fileBytes: amount,
    } satisfies Record<keyof Resources, z.ZodType>)
    .refine((resources) => resourcesSchema.safeParse(resourcesInMebibytes(resources)).success, "exceed all limits"),
  network: networkSettingSchema.transform(normalNetwork),
  secretRefs: words.exactOptional(),
  inputs: words.exactOptional(),
  placement: words.exactOptional(),
  setup: z.array(storedMessageSchema).max(1024).exactOptional(),
  labels: words.exactOptional(),
} satisfies Record<keyof SandboxSpec | "labels", z.ZodType>);

type StoredFacts = Pick<
  Head,
  | "backend"
  | "spec"
  | "flags"
  | "idle_timeout"
  | "token_hash"
  | "about"
  | "lineage"
  | "createdAt"
  | "residence"
  | "copy"
>;

/**
 * Reads the facts of a sandbox from its head. Others can write to the store: an invalid spec never reaches a backend.
 */
export function storedFacts(sandboxId: string, head: StoredFacts): SandboxFacts {
  const { labels, spec } = parseStoredSpec(`${sandboxId}/metadata.json`, head.spec);
  return {
    sandboxId,
    backend: head.backend,
    spec,
    labels,
    flags: head.flags,
    idleTimeoutMs: head.idle_timeout * 1000,
    tokenHash: head.token_hash ?? undefined,
    about: head.about ?? aboutSchema.parse({}),
    lineage: head.lineage,
    createdAt: head.createdAt,
    residence: head.residence ?? "store",
    copy: head.copy ?? 0,
  };
}

/** Builds the stored part of a head from the facts of a sandbox. */
export function inStore(facts: SandboxFacts): StoredFacts & { readonly about: About } {
  return {
    backend: facts.backend,
    spec: { ...facts.spec, network: storedNetwork(facts.spec.network), labels: { ...facts.labels } },
    flags: { ...facts.flags },
    idle_timeout: facts.idleTimeoutMs / 1000,
    token_hash: facts.tokenHash ?? null,
    about: facts.about,
    lineage: facts.lineage,
    createdAt: facts.createdAt,
    residence: facts.residence,
    copy: facts.copy,
  };
}

/** A spec as it is stored: with the labels of its sandbox. */
export function parseStoredSpec(
  where: string,
  stored: unknown,
): { readonly spec: SandboxSpec; readonly labels: Readonly<Record<string, string>> } {
  const parsed = storedSpecSchema.safeParse(stored);
  if (!parsed.success) {
    throw new SandboxerError("image_damaged", `The spec in ${where} cannot be read: ${z.prettifyError(parsed.error)}`, {
      hint: "Restore the file from a backup, or delete the sandbox or snapshot that it belongs to.",
    });
  }
  const { labels, ...spec } = parsed.data;
  return { spec, labels: labels ?? {} };
}
