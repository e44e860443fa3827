import type { SandboxerError } from "@sandboxer/client";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { logIn } from "../session.ts";
import { Button } from "../ui/button.tsx";
import { ErrorBox } from "../ui/error-box.tsx";

export function LoginPage({ error }: { readonly error: SandboxerError | undefined }): JSX.Element {
  const [key, setKey] = useState("");
  const [busy, setBusy] = useState(false);
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    await logIn(key.trim());
    setBusy(false);
    setKey("");
  };
  return (
    <main class="page page-narrow login">
      <h1>sandboxer</h1>
      <form onSubmit={(event) => void submit(event)}>
        <label for="key">Key of this server</label>
        <input
          id="key"
          type="password"
          autoComplete="off"
          autoFocus
          required
          value={key}
          onInput={(event) => setKey(event.currentTarget.value)}
        />
        <Button type="submit" kind="primary" busy={busy}>
          Log in
        </Button>
      </form>
      {error === undefined ? null : <ErrorBox error={error} />}
      <p class="hint">
        The server's administrator creates keys with{" "}
        <code>sandboxer keys create --name NAME --scope read|use|admin</code>. This page does not store the key; it is
        exchanged for a cookie that expires after 12 hours.
      </p>
    </main>
  );
}
