import type { JSX } from "preact";
import { usePolled } from "../../live/use-polled.ts";
import { client, server } from "../../session.ts";
import { CopyAs } from "../../ui/copy-as.tsx";
import { ErrorBox } from "../../ui/error-box.tsx";
import { Backends } from "./backends.tsx";
import { InstanceCard } from "./instance-card.tsx";
import { readSpellings } from "./read-spellings.ts";
import { ThisServer } from "./this-server.tsx";
import "./instances.css";

const EVERY_MS = 3_000;

/** Every server of the store: its sandboxes, handoffs in progress, and freezes with their reasons. */
export function InstancesPage(): JSX.Element {
  const { value, error } = usePolled("instances", EVERY_MS, (signal) => client.instances({ signal }));
  const stored = server.value?.store != null;
  return (
    <section class="page">
      <header class="row">
        <h1>Servers</h1>
        <CopyAs what="Servers" spellings={() => readSpellings(["instances"], "instances()", "/v1/instances")} />
      </header>
      {error === undefined ? null : <ErrorBox error={error} />}
      {stored ? null : <WithoutStore />}
      <div class="instances">
        {(value ?? []).map((instance) => (
          <InstanceCard key={instance.id} instance={instance} />
        ))}
      </div>
      <ThisServer />
      <Backends />
    </section>
  );
}

function WithoutStore(): JSX.Element {
  return (
    <div class="card">
      <h2>This server has no store</h2>
      <p>
        Its sandboxes end with the server. With a store they can be saved, survive a restart, and move between servers
        that share the store:
      </p>
      <pre tabIndex={0}>sandboxer serve --store /path/or/s3://bucket/prefix</pre>
    </div>
  );
}
