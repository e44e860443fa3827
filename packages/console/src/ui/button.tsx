import type { ComponentChildren, JSX, TargetedMouseEvent } from "preact";

export interface ButtonProperties {
  readonly children: ComponentChildren;
  readonly onClick?: (event: TargetedMouseEvent<HTMLButtonElement>) => void;
  readonly kind?: "plain" | "primary" | "danger" | "quiet";
  readonly type?: "button" | "submit";
  readonly disabled?: boolean;
  /** While an action runs: the button is disabled and shows it. */
  readonly busy?: boolean;
  /** The accessible name if its text is only a symbol. */
  readonly label?: string;
  readonly title?: string;
  readonly pressed?: boolean;
}

export function Button({
  children,
  kind = "plain",
  type = "button",
  busy = false,
  ...rest
}: ButtonProperties): JSX.Element {
  return (
    <button
      type={type}
      class={`button button-${kind}`}
      onClick={rest.onClick}
      disabled={rest.disabled === true || busy}
      aria-busy={busy}
      aria-label={rest.label}
      aria-pressed={rest.pressed}
      title={rest.title ?? rest.label}
    >
      {children}
    </button>
  );
}
