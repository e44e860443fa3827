import { fromWire } from "@sandboxer/client/transport";
import { networkText, parseNetworkText, type NetworkPolicy } from "@sandboxer/protocol/network-text";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { policySpellings } from "../../../actions/network-actions.ts";
import { TextField } from "../../../dialogs/fields.tsx";
import { noteSandbox } from "../../../live/sandboxes.ts";
import { client } from "../../../session.ts";
import { Button } from "../../../ui/button.tsx";
import { CopyAs } from "../../../ui/copy-as.tsx";
import { tell, tellError } from "../../../ui/toasts.tsx";

interface PolicyFormProperties {
  readonly id: string;
  readonly current: NetworkPolicy;
  readonly onChanged: () => void;
}

/** Changes the policy of a sandbox, as one word like that of the command line. */
export function PolicyForm({ id, current, onChanged }: PolicyFormProperties): JSX.Element {
  const [text, setText] = useState("");
  const [busy, setBusy] = useState(false);
  const policy = parseNetworkText(text);
  const send = async (event: Event): Promise<void> => {
    event.preventDefault();
    if (policy === undefined) return;
    setBusy(true);
    try {
      noteSandbox(fromWire(await client.call("updateSandbox", { params: { id }, body: { network: policy } })));
      tell(`Network policy: ${networkText(policy)}`);
      setText("");
      onChanged();
    } catch (thrown) {
      tellError("Network policy", thrown);
    } finally {
      setBusy(false);
    }
  };
  return (
    <form class="row network-form" onSubmit={(event) => void send(event)}>
      <TextField
        label="New policy"
        value={text}
        onChange={setText}
        placeholder="pypi.org,*.pythonhosted.org:443"
        hint={
          text === "" || policy !== undefined
            ? "none, open, or domains, addresses and CIDRs with commas between them. ! denies one."
            : "This is not a policy. Write none, open, or entries such as pypi.org,*.example.com:443,!10.0.0.0/8."
        }
      />
      <Button type="submit" busy={busy} disabled={policy === undefined}>
        Change policy
      </Button>
      <CopyAs what="Change policy" spellings={() => policySpellings(id, policy ?? current)} />
    </form>
  );
}
