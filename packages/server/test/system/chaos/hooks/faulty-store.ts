import { setTimeout as delay } from "node:timers/promises";
import { SandboxerError } from "@sandboxer/protocol";
import { openStore as openRealStore } from "../../../../src/store/open-store.ts";
import { AmbiguousWriteError, type ObjectStore } from "../../../../src/store/store.ts";
import { presentControl } from "./present-control.ts";

const LOOK_MS = 50;
const SLOW_MS = [100, 400] as const;
const LOST_SHARE = 0.3;

/** Takes the place of the server's own `openStore`: the way to the store is what the runner says. */
export async function openStore(address: string): Promise<ObjectStore> {
  const real = await openRealStore(address);
  return new Proxy(real, {
    get: (target, name: keyof ObjectStore) => {
      const value: unknown = Reflect.get(target, name);
      // Threads that read a file themselves are not in its way.
      if (typeof value !== "function" || name === "localFile") return value;
      return (...parameters: unknown[]) => {
        const call = (): unknown => Reflect.apply(value, target, parameters) as unknown;
        return ITERATED.has(name) ? eachOf(call) : answerOf(call, name, String(parameters[0]));
      };
    },
  });
}

const ITERATED: ReadonlySet<keyof ObjectStore> = new Set(["listCells", "listMarks", "read", "list", "listFolders"]);

async function answerOf(call: () => unknown, name: keyof ObjectStore, key: string): Promise<unknown> {
  await arrival();
  const answer = await call();
  if (!isAnswerLost()) return answer;
  throw name === "swapCell" ? new AmbiguousWriteError(key, lost()) : lost();
}

async function* eachOf(call: () => unknown): AsyncIterable<unknown> {
  await arrival();
  yield* call() as AsyncIterable<unknown>;
  if (isAnswerLost()) throw lost();
}

/** A request that hangs is carried out late, when the store answers again. */
async function arrival(): Promise<void> {
  while (presentControl().store === "hang") await delay(LOOK_MS);
  const { store } = presentControl();
  if (store === "down") throw new SandboxerError("store_unavailable", "The store is down (chaos).");
  if (store === "slow") await delay(SLOW_MS[0] + Math.random() * (SLOW_MS[1] - SLOW_MS[0]));
}

function isAnswerLost(): boolean {
  return presentControl().store === "lost" && Math.random() < LOST_SHARE;
}

function lost(): SandboxerError {
  return new SandboxerError("store_unavailable", "The store's answer was lost (chaos).");
}
