import { randomUUID } from "node:crypto";
import type { CreateSandbox } from "@daytona/api-client";
import { SandboxerError } from "@sandboxer/protocol";
import type { AcquireRequest, Resources, SandboxSpec } from "../backend.ts";
import { refuseLists } from "../refuse-lists.ts";
import { labelsFor, type Maker } from "./labels.ts";

/** In the form of backends that have mounts. */
const MOUNTS_INPUT = "mounts";
const GIB = 1 << 30;
const MINUTE_MS = 60_000;
/** For sandboxes without an identity: a forgotten one must not run, and cost, forever. */
const AUTO_STOP_MINUTES = 60;

/** Refuses what Daytona does not support, before any request. */
export function checkSpec(spec: SandboxSpec): void {
  const { [MOUNTS_INPUT]: mounts = "", ...inputs } = spec.inputs ?? {};
  if (mounts.trim() !== "") {
    throw new SandboxerError("not_supported", "Daytona sandboxes cannot mount folders of this machine.", {
      hint: "Copy the files into the sandbox, or use a backend on this machine.",
    });
  }
  const [unused] = Object.keys(inputs);
  if (unused !== undefined) {
    throw new SandboxerError("not_supported", `The backend daytona does not support the input ${unused}.`, {
      hint: "Omit it, or choose a backend that supports it.",
    });
  }
  if (spec.image !== undefined && !/^docker:[^\s]+$/.test(spec.image)) {
    throw new SandboxerError("not_supported", `Daytona cannot use the image ${spec.image}.`, {
      hint: "Use an image from a registry, such as docker:debian:13, or omit the image for Daytona's default.",
    });
  }
  refuseLists("daytona", spec.network);
  const unknown = (["processes", "fileBytes"] as const).filter((limit) => spec.resources[limit] !== undefined);
  if (unknown.length > 0) {
    throw new SandboxerError("not_supported", `Daytona does not support limits on ${unknown.join(" and ")}.`, {
      hint: "Set only cpus, memory and disk.",
    });
  }
}

/**
 * A name of our own, so that a sandbox whose creation was not answered can still be deleted. `env` is an object, not a
 * list. It has no secret values: programs are started with them, and Daytona would keep them and give them to the
 * sandbox's first process. `snapshot` names a registered snapshot, so a fresh sandbox has none:
 * https://www.daytona.io/docs/en/snapshots/
 */
export function createBody(
  request: AcquireRequest,
  {
    target,
    maker,
    snapshot,
  }: { readonly target: string | undefined; readonly maker: Maker | undefined; readonly snapshot?: string },
): CreateSandbox {
  const { spec, identity } = request;
  const region = spec.placement?.["target"] ?? target;
  return {
    name: `sandboxer-${randomUUID()}`,
    labels: { ...labelsFor(request, maker) },
    env: withoutSecrets(request),
    networkBlockAll: spec.network === "none",
    autoStopInterval:
      identity === undefined ? AUTO_STOP_MINUTES : Math.max(1, Math.ceil(identity.idleTtlMs / MINUTE_MS)),
    ...(region === undefined ? {} : { target: region }),
    ...(snapshot === undefined ? { ...imageOf(spec), ...quantities(spec.resources) } : { snapshot }),
  };
}

function withoutSecrets({ spec, secretVariables = [] }: AcquireRequest): Record<string, string> {
  return Object.fromEntries(Object.entries(spec.env).filter(([name]) => !secretVariables.includes(name)));
}

/** An image of a registry is built from one line: https://www.daytona.io/docs/en/declarative-builder/ */
function imageOf({ image }: SandboxSpec): Pick<CreateSandbox, "buildInfo"> {
  if (image === undefined) return {};
  return { buildInfo: { dockerfileContent: `FROM ${image.slice("docker:".length)}\n` } };
}

/** Whole cores and whole gigabytes, rounded up: https://www.daytona.io/docs/en/sandboxes/#sandbox-resources */
function quantities({ cpus, memoryBytes, diskBytes }: Resources): Pick<CreateSandbox, "cpu" | "memory" | "disk"> {
  return {
    ...(cpus === undefined ? {} : { cpu: Math.max(1, Math.ceil(cpus)) }),
    ...(memoryBytes === undefined ? {} : { memory: Math.max(1, Math.ceil(memoryBytes / GIB)) }),
    ...(diskBytes === undefined ? {} : { disk: Math.max(1, Math.ceil(diskBytes / GIB)) }),
  };
}
