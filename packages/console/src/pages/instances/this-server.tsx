import type { JSX } from "preact";
import { usePolled } from "../../live/use-polled.ts";
import { client } from "../../session.ts";
import { ErrorBox } from "../../ui/error-box.tsx";
import { Facts } from "../../ui/facts.tsx";

const EVERY_MS = 5_000;

export function ThisServer(): JSX.Element {
  const { value, error } = usePolled("server", EVERY_MS, (signal) => client.info({ signal }));
  const newer = value?.engines.find(({ state }) => state === "ready");
  return (
    <section class="card" aria-labelledby="this-server">
      <h2 id="this-server">This server</h2>
      {error === undefined ? null : <ErrorBox error={error} />}
      {newer === undefined ? null : (
        <p class="banner banner-info">
          gVisor {newer.version} is ready. {newer.message}
        </p>
      )}
      {value === undefined ? null : (
        <Facts
          facts={[
            ["Version", value.version],
            ["Instance", value.instanceId ?? "none (no store)"],
            ["Store", value.store ?? "none"],
            ["Default backend", value.defaultBackend],
            ["Engines", value.engines.map(({ version, state }) => `${version} (${state})`).join(", ") || "none"],
            ["Sandboxes", `${value.sandboxes} of at most ${value.maxSandboxes}`],
            ["Status", value.draining ? "draining: accepts no new sandboxes" : "accepts sandboxes"],
            ["Your scope", value.scope],
          ]}
        />
      )}
    </section>
  );
}
