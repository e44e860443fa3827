import type { JSX } from "preact";
import { createdToken } from "../../../live/created-token.ts";
import { may } from "../../../session.ts";
import { Button } from "../../../ui/button.tsx";
import { copyText } from "../../../ui/copy-text.ts";

/** The token of a sandbox that was just created here. It is only in the memory of this page. */
export function TokenOnce({ sandboxId }: { readonly sandboxId: string }): JSX.Element | null {
  const { value } = createdToken;
  // Another user may have logged in meanwhile, with a read-only key.
  if (value?.sandboxId !== sandboxId || !may("use")) return null;
  return (
    <section class="card token" aria-label="Token">
      <h2>Token</h2>
      <p>
        Programs attach with it over WebSocket. It is shown only once: <code>{value.token}</code>
      </p>
      <div class="row">
        <Button kind="primary" onClick={() => void copyText(value.token, "the token")}>
          Copy
        </Button>
        <Button onClick={() => (createdToken.value = undefined)}>I have copied it</Button>
      </div>
    </section>
  );
}
