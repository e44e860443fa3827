import type { InstanceRecord } from "@sandboxer/client";
import type { JSX } from "preact";
import { labelWords, sandboxTitle, shortId } from "../../format/names.ts";
import { sandboxes } from "../../live/sandboxes.ts";
import { Link } from "../../router.tsx";
import { sandboxPath } from "../sandbox/tabs.tsx";

const SHOWN = 12;

export function InstanceCard({ instance }: { readonly instance: InstanceRecord }): JSX.Element {
  const { id, url, here, labels, owns, handoffs } = instance;
  const heading = `instance-${id}`;
  return (
    <article class="card instance" aria-labelledby={heading}>
      <header class="row">
        <h2 id={heading} title={id}>
          {shortId(id)}
        </h2>
        {here ? <span class="chip">this server</span> : null}
        <Condition instance={instance} />
      </header>
      <p class="hint">
        <Address url={url} />
        {Object.keys(labels).length === 0 ? null : ` · ${labelWords(labels)}`}
      </p>
      {instance.frozen === true ? (
        <p class="instance-frozen">Its sandboxes are frozen: {instance.frozenReason ?? "reason unknown"}.</p>
      ) : null}
      {handoffs.length === 0 ? null : (
        <section>
          <h3>Handoffs requested</h3>
          <ul>
            {handoffs.map(({ sandboxId, to, refused }) => (
              <li key={sandboxId}>
                <SandboxLink id={sandboxId} /> → {shortId(to)}:{" "}
                {refused === null ? "in progress" : `refused: ${refused}`}
              </li>
            ))}
          </ul>
        </section>
      )}
      <section>
        <h3>
          Owns {owns.length} {owns.length === 1 ? "sandbox" : "sandboxes"}
        </h3>
        <ul>
          {owns.slice(0, SHOWN).map((sandboxId) => (
            <li key={sandboxId}>
              <SandboxLink id={sandboxId} />
            </li>
          ))}
        </ul>
        {owns.length > SHOWN ? <p class="hint">and {owns.length - SHOWN} more</p> : null}
      </section>
    </article>
  );
}

function Condition({ instance: { alive, frozen } }: { readonly instance: InstanceRecord }): JSX.Element {
  if (!alive) return <span class="chip chip-failed">dead</span>;
  if (frozen === true) return <span class="chip chip-frozen">frozen</span>;
  return <span class="chip chip-running">{frozen === null ? "alive, not asked" : "alive"}</span>;
}

/** Another server's address is a link only if it is a valid URL. */
function Address({ url }: { readonly url: string | null }): JSX.Element {
  if (url === null) return <>has told no address</>;
  const parsed = URL.parse(url);
  const safe = parsed !== null && /^https?:$/.test(parsed.protocol);
  return safe ? (
    <a href={parsed.href} rel="noreferrer">
      {url}
    </a>
  ) : (
    <>{url}</>
  );
}

function SandboxLink({ id }: { readonly id: string }): JSX.Element {
  const record = sandboxes.value.get(id);
  return <Link to={sandboxPath(id)}>{record === undefined ? shortId(id) : sandboxTitle(record)}</Link>;
}
