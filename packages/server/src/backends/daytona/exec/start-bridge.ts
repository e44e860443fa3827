import { randomBytes, randomUUID } from "node:crypto";
import { SandboxerError } from "@sandboxer/protocol";
import type { Clock } from "../../../support/clock.ts";
import { shellCommand } from "../../../support/shell-quote.ts";
import { vendorStatus } from "../daytona-errors.ts";
import type { Toolbox } from "../toolbox/toolbox.ts";
import { BRIDGE, BRIDGE_MARK } from "./bridge-script.ts";
import { BridgeProcess } from "./bridge-process.ts";

const SESSION_PREFIX = "sandboxer-";
const CLEANUP_ROUNDS = 12;
const CLEANUP_POLL_MS = 50;
/** Its carrier was started by us: `pause` stops those, and their children. */
export const EXEC_VARIABLE = "SANDBOXER_EXEC";

export interface BridgeCommand {
  readonly key: string;
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly workingFolder: string;
}

/** A session for each program, named after its key, so that another server finds it again. */
export async function startBridge(toolbox: Toolbox, clock: Clock, command: BridgeCommand): Promise<BridgeProcess> {
  const sessionId = sessionIdOf(command.key);
  if (!(await toolbox.createSession(sessionId))) {
    const [first] = (await toolbox.session(sessionId)).commands ?? [];
    // Another server has started it under the same key.
    if (first !== undefined) return BridgeProcess.open(toolbox, clock, { sessionId, commandId: first.id });
  }
  try {
    const { cmdId } = await toolbox.startCommand(sessionId, bridgeCommand(command));
    return await BridgeProcess.open(toolbox, clock, { sessionId, commandId: cmdId });
  } catch (thrown) {
    await toolbox.deleteSession(sessionId).catch(() => {});
    throw thrown;
  }
}

/** The programs of sessions that an earlier server left running, or with unread output. */
export async function adoptBridges(
  toolbox: Toolbox,
  clock: Clock,
): Promise<readonly { readonly key: string; readonly process: BridgeProcess }[]> {
  const adopted: { key: string; process: BridgeProcess }[] = [];
  for (const { sessionId, commands } of await toolbox.sessions()) {
    const [first] = commands ?? [];
    if (!sessionId.startsWith(SESSION_PREFIX) || first === undefined) continue;
    const process = await openIfSound(toolbox, clock, { sessionId, commandId: first.id });
    if (process !== undefined) adopted.push({ key: keyOf(sessionId), process });
  }
  return adopted;
}

/** A failed session is no reason to give up the sandbox. */
async function openIfSound(
  toolbox: Toolbox,
  clock: Clock,
  place: { readonly sessionId: string; readonly commandId: string },
): Promise<BridgeProcess | undefined> {
  try {
    return await BridgeProcess.open(toolbox, clock, place);
  } catch (thrown) {
    if (thrown instanceof SandboxerError && !thrown.row.retryable) return undefined;
    throw thrown;
  }
}

/** Its record and its log are at the daemon. The bridge gets time to clean up: deleting the session kills it. */
export async function forgetBridge(toolbox: Toolbox, clock: Clock, key: string): Promise<void> {
  const sessionId = sessionIdOf(key);
  try {
    for (let round = 0; round < CLEANUP_ROUNDS; round++) {
      const { commands } = await toolbox.session(sessionId);
      if ((commands ?? []).every(({ exitCode }) => typeof exitCode === "number")) break;
      await clock.sleep(CLEANUP_POLL_MS * (round + 1));
    }
    await toolbox.deleteSession(sessionId);
  } catch (thrown) {
    if (vendorStatus(thrown) !== 404) throw thrown;
  }
}

function bridgeCommand({ key, argv, env, workingFolder }: BridgeCommand): string {
  const variables = Object.entries({ ...env, [EXEC_VARIABLE]: key }).map(([name, value]) => `${name}=${value}`);
  const folder = `/tmp/.sandboxer-${randomUUID()}`;
  const token = randomBytes(24).toString("hex");
  const [program = ""] = argv;
  return shellCommand(["sh", "-c", BRIDGE, BRIDGE_MARK, folder, token, workingFolder, program, ...variables, ...argv]);
}

function sessionIdOf(key: string): string {
  return `${SESSION_PREFIX}${Buffer.from(key, "utf8").toString("base64url")}`;
}

function keyOf(sessionId: string): string {
  return Buffer.from(sessionId.slice(SESSION_PREFIX.length), "base64url").toString("utf8");
}
