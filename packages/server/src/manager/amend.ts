import { parseDurationMs, SandboxerError, type About } from "@sandboxer/protocol";
import type { ManagerContext } from "./context.ts";
import type { LiveSandbox } from "./live-sandbox.ts";

export interface Amendments {
  readonly name?: string | null | undefined;
  readonly labels?: Readonly<Record<string, string>> | undefined;
  readonly idleTimeoutMs?: number | undefined;
}

/** Changes what people know a sandbox by. */
export async function amendSandbox(
  context: ManagerContext,
  sandbox: LiveSandbox,
  { name, labels, idleTimeoutMs }: Amendments,
): Promise<void> {
  await sandbox.queue.run(async () => {
    const about = name === undefined ? sandbox.facts.about : { ...sandbox.facts.about, name };
    await store(context, sandbox, {
      about,
      labels: labels ?? sandbox.facts.labels,
      idleTimeoutMs: idleTimeoutMs ?? sandbox.facts.idleTimeoutMs,
    });
  });
}

/** Lets a sandbox live for this long from now; not longer than its profile allows. */
export async function extendTtl(context: ManagerContext, sandbox: LiveSandbox, duration: string): Promise<void> {
  const durationMs = parseDurationMs(duration);
  const { profile } = sandbox.facts.about;
  const max = profile === null ? undefined : context.options.profiles.find(profile)?.ttl?.max;
  if (max !== undefined && durationMs > parseDurationMs(max)) {
    throw new SandboxerError("ttl_too_long", `A ttl of ${duration} is more than ${profile} allows: ${max}.`, {
      details: { ttl: duration, max, profile },
    });
  }
  const expires_at = new Date(context.options.clock.wallMs() + durationMs).toISOString();
  await sandbox.queue.run(() =>
    store(context, sandbox, { ...sandbox.facts, about: { ...sandbox.facts.about, expires_at } }),
  );
}

interface Stored {
  readonly about: About;
  readonly labels: Readonly<Record<string, string>>;
  readonly idleTimeoutMs: number;
}

/** In the head first: what is not stored would be forgotten by the next server. */
async function store(context: ManagerContext, sandbox: LiveSandbox, next: Stored): Promise<void> {
  const { about, labels, idleTimeoutMs } = next;
  if (sandbox.state !== "running") throw new SandboxerError("wrong_state", `The sandbox is ${sandbox.state}.`);
  if (sandbox.durable) {
    await context.durable.ownership.update(sandbox.id, {
      about,
      idle_timeout: idleTimeoutMs / 1000,
      spec: { ...sandbox.facts.spec, labels: { ...labels } },
    });
  }
  sandbox.amend({ about, labels, idleTimeoutMs });
  context.events.append({ type: "sandbox.amended", sandboxId: sandbox.id, data: { name: about.name } });
}
