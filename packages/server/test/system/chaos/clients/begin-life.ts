import type { Random } from "../../../lease/simulation/random.ts";
import { call, refusalOf, wordsOf, type Answer } from "./call.ts";
import type { ClientContext } from "./client-context.ts";
import { isExpected } from "./expected-codes.ts";
import { backgroundProgram, PREPARE } from "./programs.ts";
import { SandboxLife } from "./sandbox-life.ts";

const PATIENCE_MS = 30_000;
/** Nothing, so much time, or so many executions. */
const MAX_LOSSES = [null, null, "2s", 5] as const;

/** Creates a sandbox and prepares it. Undefined if anything went wrong on the way: nothing was promised yet. */
export async function beginLife(context: ClientContext, random: Random): Promise<SandboxLife | undefined> {
  const server = Math.floor(random.between(0, context.slots.length));
  const maxLoss = random.pick(MAX_LOSSES);
  const url = `${context.slots[server]?.url}/v1/sandboxes`;
  const ask = async (what: string, path: string, body: object): Promise<Answer> => {
    const answer = await call("POST", url + path, { body, patienceMs: PATIENCE_MS });
    const refusal = refusalOf(answer);
    context.tally.add(what, answer.kind === "answered" ? (refusal?.code ?? "done") : answer.kind);
    if (refusal !== undefined && !isExpected("create", refusal.code)) {
      context.onViolation({ rule: "unexpected answer", what: `${what} at ${server}: ${wordsOf(answer)}` });
    }
    return answer;
  };
  const created = await ask("create", "", {
    backend: context.backend,
    enable_sandbox_handoff: true,
    idle_timeout: 3600,
    ...(maxLoss === null ? {} : { max_loss: maxLoss }),
  });
  if (created.kind !== "answered" || created.status !== 201) return undefined;
  const { id, epoch } = created.body as { id: string; epoch: number };
  const prepared = await ask("prepare", `/${id}/exec`, { shell: PREPARE });
  if (prepared.kind !== "answered" || prepared.status !== 200) return undefined;
  const shell = backgroundProgram(context.backgroundPauseSeconds);
  const started = await ask("background", `/${id}/exec`, { shell, detach: true });
  if (started.kind !== "answered" || started.status !== 200) return undefined;
  return new SandboxLife(id, { server, epoch }, created.sentMs, context, random);
}
