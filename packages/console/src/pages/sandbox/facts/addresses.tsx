import type { SandboxRecord } from "@sandboxer/client";
import type { JSX } from "preact";
import { commandLine } from "../../../actions/spellings.ts";
import { Button } from "../../../ui/button.tsx";
import { copyText } from "../../../ui/copy-text.ts";
import { Facts } from "../../../ui/facts.tsx";

/** The addresses for programs. */
export function Addresses({ record }: { readonly record: SandboxRecord }): JSX.Element {
  const id = encodeURIComponent(record.id);
  const http = `${location.origin}/v1/sandboxes/${id}`;
  const socket = `${location.origin.replace(/^http/, "ws")}/attach/${id}`;
  return (
    <Facts
      facts={[
        ["HTTP", <Address text={http} what="HTTP address" />],
        ["WebSocket", <Address text={socket} what="WebSocket address" />],
        ["Shell", <Address text={commandLine("shell", record.id)} what="command" />],
      ]}
    />
  );
}

function Address({ text, what }: { readonly text: string; readonly what: string }): JSX.Element {
  return (
    <span class="row">
      <code>{text}</code>
      <Button label={`Copy the ${what}`} onClick={() => void copyText(text, `the ${what}`)}>
        Copy
      </Button>
    </span>
  );
}
