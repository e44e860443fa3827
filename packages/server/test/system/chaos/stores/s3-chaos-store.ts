import { FaultyProxy, type Fault, type SeenRequest } from "../../../../../../test/kit/faulty-proxy.ts";
import { minio } from "../../../../../../test/kit/store-servers/minio.ts";
import type { Random } from "../../../lease/simulation/random.ts";
import { machineMs } from "../machine-clock.ts";
import type { ChaosStore, StoreFault } from "./chaos-store.ts";

const SLOW_MS = [100, 400] as const;
const LOST_SHARE = 0.3;

/** A bucket of MinIO, which each server reaches through a proxy of its own. */
export async function openS3ChaosStore(servers: number, random: Random): Promise<ChaosStore> {
  const running = await minio.start();
  const proxies = await Promise.all(Array.from({ length: servers }, () => FaultyProxy.start(running.endpoint)));
  for (const proxy of proxies) setFault(proxy, () => undefined);
  const direct = await running.newStore();
  return {
    impossible: new Map(),
    addressFor: (server) => direct.replace(running.endpoint, proxies[server]?.endpoint ?? ""),
    disturb: async (fault, hit, forMs) => {
      const chosen = proxies.filter((_proxy, index) => fault === "full" || fault === "vanish" || hit.includes(index));
      const untilMs = machineMs() + forMs;
      for (const proxy of chosen) setFault(proxy, (request) => faultOf(fault, request, untilMs, random));
      return async () => chosen.forEach((proxy) => setFault(proxy, () => undefined));
    },
    close: async () => {
      await Promise.all(proxies.map((proxy) => proxy.stop()));
      await running.stop();
    },
  };
}

function setFault(proxy: FaultyProxy, fault: (request: SeenRequest) => Fault | undefined): void {
  proxy.fault = (request) => {
    // A long run has very many, and nobody looks at them.
    proxy.seen.length = 0;
    return fault(request);
  };
}

function faultOf(fault: StoreFault, { method }: SeenRequest, untilMs: number, random: Random): Fault | undefined {
  switch (fault) {
    case "down":
      return "request-lost";
    case "slow":
      return { delayMs: random.between(...SLOW_MS) };
    case "hang":
      return { delayMs: Math.max(0, untilMs - machineMs()) };
    case "lost":
      return random.chance(LOST_SHARE) ? "answer-lost" : undefined;
    case "full":
      return method === "PUT" || method === "POST" ? { status: 507, body: errorBody("XMinioStorageFull") } : undefined;
    case "vanish":
      return { status: 404, body: errorBody("NoSuchBucket") };
  }
}

function errorBody(code: string): string {
  return `<?xml version="1.0" encoding="UTF-8"?><Error><Code>${code}</Code><Message>chaos</Message></Error>`;
}
