import { Sandbox, type SandboxRecord } from "@sandboxer/client";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Spellings } from "../../../actions/spellings.ts";
import { idleTimeoutSpellings, isDuration, secondsOf, ttlSpellings } from "../../../actions/time-actions.ts";
import { TextField } from "../../../dialogs/fields.tsx";
import { formatSeconds } from "../../../format/duration.ts";
import { noteSandbox } from "../../../live/sandboxes.ts";
import { client, may } from "../../../session.ts";
import { Age } from "../../../ui/age.tsx";
import { Button } from "../../../ui/button.tsx";
import { CopyAs } from "../../../ui/copy-as.tsx";
import { Facts } from "../../../ui/facts.tsx";
import { tell, tellError } from "../../../ui/toasts.tsx";

/** Its lifetime and idle timeout, and the forms that change them. */
export function Times({ record }: { readonly record: SandboxRecord }): JSX.Element {
  const { id, expiresAt, idleTimeout, idleSeconds } = record;
  return (
    <>
      <Facts
        facts={[
          ["Expires in", expiresAt === null ? "never" : <Age time={expiresAt} to />],
          ["Idle timeout", idleTimeout === 0 ? "none" : formatSeconds(idleTimeout)],
          ["Idle for", idleSeconds === null ? "not running" : formatSeconds(idleSeconds)],
        ]}
      />
      {may("use") ? (
        <div class="facts-forms">
          <TimeForm
            label="New lifetime from now"
            placeholder="4h"
            submit="Extend"
            spellings={(text) => ttlSpellings(id, text)}
            change={(sandbox, text) => sandbox.extendTtl(text)}
            id={id}
          />
          <TimeForm
            label="New idle timeout"
            placeholder="30m"
            submit="Change idle timeout"
            spellings={(text) => idleTimeoutSpellings(id, text)}
            change={(sandbox, text) => sandbox.update({ idleTimeout: secondsOf(text) })}
            id={id}
          />
        </div>
      ) : null}
    </>
  );
}

interface TimeFormProperties {
  readonly id: string;
  readonly label: string;
  readonly placeholder: string;
  readonly submit: string;
  readonly spellings: (text: string) => Spellings;
  readonly change: (sandbox: Sandbox, text: string) => Promise<SandboxRecord>;
}

function TimeForm({ id, label, placeholder, submit, spellings, change }: TimeFormProperties): JSX.Element {
  const [text, setText] = useState("");
  const [busy, setBusy] = useState(false);
  const send = async (event: Event): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    try {
      noteSandbox(await change(await Sandbox.attach(id, { client, autoResume: false }), text));
      tell(`${submit}: done`);
      setText("");
    } catch (thrown) {
      tellError(label, thrown);
    } finally {
      setBusy(false);
    }
  };
  return (
    <form class="row" onSubmit={(event) => void send(event)}>
      <TextField label={label} value={text} onChange={setText} placeholder={placeholder} />
      <Button type="submit" busy={busy} disabled={text === ""}>
        {submit}
      </Button>
      <CopyAs what={submit} spellings={() => spellings(isDuration(text) ? text : placeholder)} />
    </form>
  );
}
