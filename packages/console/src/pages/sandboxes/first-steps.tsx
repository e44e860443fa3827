import type { JSX } from "preact";
import { commandLine } from "../../actions/spellings.ts";
import { Button } from "../../ui/button.tsx";
import { copyText } from "../../ui/copy-text.ts";
import { may } from "../../session.ts";

const FIRST = commandLine("run", "--", "echo", "hello");
const KEPT = commandLine("run", "--key", "my-work", "--", "sh", "-c", "date >> log; cat log");

/** An empty list shows how to create a sandbox. */
export function FirstSteps({ onNew }: { readonly onNew: () => void }): JSX.Element {
  return (
    <div class="card first-steps">
      <h2>No sandboxes yet</h2>
      <p>The first one takes a second. In a terminal:</p>
      <CommandLine text={FIRST} />
      <p>A sandbox that you can find again by its key, with its files and programs, even after a server restart:</p>
      <CommandLine text={KEPT} />
      {may("use") ? (
        <p>
          Or create one here:{" "}
          <Button kind="primary" onClick={onNew}>
            New sandbox
          </Button>
        </p>
      ) : null}
    </div>
  );
}

function CommandLine({ text }: { readonly text: string }): JSX.Element {
  return (
    <div class="command-line">
      <pre tabIndex={0}>{text}</pre>
      <Button label={`Copy: ${text}`} onClick={() => void copyText(text, "the command")}>
        Copy
      </Button>
    </div>
  );
}
