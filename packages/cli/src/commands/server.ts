import { defineCommand } from "../define-command.ts";
import { formatFields } from "../output/table.ts";

export const serverCommand = defineCommand({
  examples: [
    "sandboxer server",
    "sandboxer server --json | jq .warm_pool",
    "sandboxer server --url http://10.0.0.2:8080",
  ],
  async run(run) {
    const client = await run.client();
    const server = await client.call("serverInfo", {});
    run.print(server, () => {
      const { warm_pool: warm } = server;
      return formatFields({
        url: client.url.replace(/\/$/, ""),
        version: server.version,
        instance: server.instance_id,
        store: server.store,
        backend: server.default_backend,
        // A server of an earlier version does not name them.
        engines: server.engines?.map(({ version, state }) => `${version} (${state})`).join(", ") || null,
        "newer engine": server.engines?.find(({ state }) => state === "ready")?.message ?? null,
        state: server.draining ? "draining" : "open",
        sandboxes: `${server.sandboxes} of ${server.max_sandboxes}`,
        dozing: server.dozing,
        "warm pool": warm && `${warm.ready} of ${warm.max} ready, ${warm.preparing} starting`,
        "warm pool use": warm && `${warm.handed_out} used, ${warm.expired} expired, ${warm.failed} failed`,
        "pool misses": warm && `${warm.missed} creates`,
      });
    });
  },
});
