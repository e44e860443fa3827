import type { SandboxerError } from "@sandboxer/client";
import type { ComponentChildren, JSX } from "preact";

/** An error with its code and hint. */
export function ErrorBox({
  error,
  children,
}: {
  readonly error: SandboxerError;
  readonly children?: ComponentChildren;
}): JSX.Element {
  return (
    <div class="error-box" role="alert">
      <p>
        <strong>{error.message}</strong> <code>{error.code}</code>
      </p>
      {error.hint === "" ? null : <p class="error-hint">{error.hint}</p>}
      {children}
    </div>
  );
}
