import type { ComponentChildren, JSX } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import { Button } from "./button.tsx";

export interface DialogProperties {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
  readonly wide?: boolean;
}

/** The browser's own dialog: it traps the focus, closes with Escape and restores the focus. */
export function Dialog({ title, onClose, children, wide = false }: DialogProperties): JSX.Element {
  const element = useRef<HTMLDialogElement>(null);
  const heading = useId();
  useEffect(() => {
    const dialog = element.current;
    dialog?.showModal();
    // The first field gets the focus, not the close button; a destructive action is never one key away.
    const isChosen = dialog?.querySelector("[autofocus]") != null;
    if (!isChosen) dialog?.querySelector<HTMLElement>(".dialog-body :is(input, select, textarea):enabled")?.focus();
    return () => dialog?.close();
  }, []);
  /**
   * The browser reports the close a moment later: ignore it if the dialog was already removed, because another may be
   * open.
   */
  const tellClosed = (): void => {
    if (element.current !== null) onClose();
  };
  return (
    <dialog ref={element} class={wide ? "dialog dialog-wide" : "dialog"} aria-labelledby={heading} onClose={tellClosed}>
      <header class="dialog-header">
        <h2 id={heading}>{title}</h2>
        <Button kind="quiet" label="Close" onClick={onClose}>
          ✕
        </Button>
      </header>
      <div class="dialog-body">{children}</div>
    </dialog>
  );
}
