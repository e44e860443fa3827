import type { JSX } from "preact";
import { sandboxes } from "../../live/sandboxes.ts";
import { sandboxTitle } from "../../format/names.ts";
import { StateChip } from "../../ui/state-chip.tsx";

export function SandboxesPage(): JSX.Element {
  return (
    <section class="page">
      <h1>Sandboxes</h1>
      <ul>
        {[...sandboxes.value.values()].map((record) => (
          <li key={record.id}>
            {sandboxTitle(record)} <StateChip state={record.state} frozen={record.frozen} />
          </li>
        ))}
      </ul>
    </section>
  );
}
