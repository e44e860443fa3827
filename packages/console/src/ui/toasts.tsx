import { signal } from "@preact/signals";
import type { SandboxerError } from "@sandboxer/client";
import type { JSX } from "preact";
import { asError } from "../session.ts";
import { Button } from "./button.tsx";

interface Toast {
  readonly id: number;
  readonly text: string;
  readonly error?: SandboxerError;
}

const STAY_MS = 6_000;
const toasts = signal<readonly Toast[]>([]);
let last = 0;

/** Reports a success. It disappears by itself. */
export function tell(text: string): void {
  const { id } = add({ text });
  setTimeout(() => dismiss(id), STAY_MS);
}

/** Reports an error with its code and hint. It stays until it is closed. */
export function tellError(doing: string, thrown: unknown): void {
  add({ text: doing, error: asError(thrown) });
}

function add(toast: Omit<Toast, "id">): Toast {
  last += 1;
  const added = { ...toast, id: last };
  toasts.value = [...toasts.value.slice(-4), added];
  return added;
}

function dismiss(id: number): void {
  toasts.value = toasts.value.filter((toast) => toast.id !== id);
}

export function Toasts(): JSX.Element {
  return (
    <div class="toasts" aria-live="polite" role="status">
      {toasts.value.map(({ id, text, error }) => (
        <div key={id} class={error === undefined ? "toast" : "toast toast-error"}>
          <div>
            <p>{text}</p>
            {error === undefined ? null : (
              <p>
                {error.message} <code>{error.code}</code>
                <br />
                <span class="error-hint">{error.hint}</span>
              </p>
            )}
          </div>
          <Button kind="quiet" label="Dismiss" onClick={() => dismiss(id)}>
            ✕
          </Button>
        </div>
      ))}
    </div>
  );
}
