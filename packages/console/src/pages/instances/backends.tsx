import type { BackendRecord } from "@sandboxer/client";
import type { JSX } from "preact";
import { useLoaded } from "../../live/use-loaded.ts";
import { client } from "../../session.ts";
import { Button } from "../../ui/button.tsx";
import { CopyAs } from "../../ui/copy-as.tsx";
import { ErrorBox } from "../../ui/error-box.tsx";
import { readSpellings } from "./read-spellings.ts";

/** The backends, whether they work, and their capabilities. */
export function Backends(): JSX.Element {
  const { value = [], error, loading, reload } = useLoaded((signal) => client.backends({ signal }), []);
  const capabilities = [...new Set(value.flatMap((backend) => Object.keys(backend.capabilities)))].toSorted();
  return (
    <section class="card" aria-labelledby="backends">
      <header class="row">
        <h2 id="backends">Backends</h2>
        <Button busy={loading} onClick={reload}>
          Look again
        </Button>
        <CopyAs what="Backends" spellings={() => readSpellings(["backends"], "backends()", "/v1/backends")} />
      </header>
      {error === undefined ? null : <ErrorBox error={error} />}
      <div class="matrix" role="region" aria-label="Backend capabilities" tabIndex={0}>
        <table>
          <thead>
            <tr>
              <th scope="col">Backend</th>
              <th scope="col">Available</th>
              {capabilities.map((name) => (
                <th key={name} scope="col">
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {value.map((backend) => (
              <BackendRow key={backend.name} backend={backend} capabilities={capabilities} />
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

interface BackendRowProperties {
  readonly backend: BackendRecord;
  readonly capabilities: readonly string[];
}

function BackendRow({ backend, capabilities }: BackendRowProperties): JSX.Element {
  const { name, ok, summary, remedy } = backend;
  return (
    <tr>
      <th scope="row">
        {name}
        {backend.default ? <span class="hint"> (default)</span> : null}
      </th>
      <td>
        <span class={ok ? "chip chip-running" : "chip chip-failed"}>{ok ? "yes" : "no"}</span> {summary}
        {remedy === null ? null : <div class="hint">{remedy}</div>}
      </td>
      {capabilities.map((capability) => (
        <td key={capability}>{shown(backend.capabilities[capability])}</td>
      ))}
    </tr>
  );
}

function shown(value: string | boolean | undefined): string {
  if (value === undefined) return "–";
  if (typeof value === "string") return value;
  return value ? "yes" : "no";
}
