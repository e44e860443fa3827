import type { ComponentChildren, JSX, TargetedKeyboardEvent } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import "./menu.css";

export interface MenuItem {
  readonly text: string;
  readonly danger?: boolean;
  readonly choose: () => void;
}

interface MenuProperties {
  /** The accessible name of the button, which shows `children`. */
  readonly label: string;
  readonly children: ComponentChildren;
  /** Called when it opens. */
  readonly items: () => readonly MenuItem[];
}

/** A button with a list of actions. Arrow keys move, Escape and a click elsewhere close it. */
export function Menu({ label, children, items }: MenuProperties): JSX.Element {
  const [open, setOpen] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  const id = useId();
  const close = (): void => {
    setOpen(false);
    button.current?.focus();
  };
  return (
    <span class="menu">
      <button
        ref={button}
        type="button"
        class="button button-quiet"
        aria-label={label}
        title={label}
        aria-haspopup="menu"
        aria-expanded={open}
        aria-controls={open ? id : undefined}
        onClick={() => setOpen(!open)}
      >
        {children}
      </button>
      {open ? <MenuList id={id} label={label} items={items()} onClose={close} onLeave={() => setOpen(false)} /> : null}
    </span>
  );
}

interface MenuListProperties {
  readonly id: string;
  readonly label: string;
  readonly items: readonly MenuItem[];
  readonly onClose: () => void;
  readonly onLeave: () => void;
}

function MenuList({ id, label, items, onClose, onLeave }: MenuListProperties): JSX.Element {
  const list = useRef<HTMLDivElement>(null);
  const entries = (): HTMLElement[] => [...(list.current?.querySelectorAll<HTMLElement>("[role=menuitem]") ?? [])];
  const move = (by: number): void => {
    const all = entries();
    const at = all.findIndex((entry) => entry === document.activeElement);
    all.at((at + by + all.length) % all.length)?.focus();
  };
  useEffect(() => {
    entries()[0]?.focus();
    const leave = (event: Event): void => {
      if (!(event.target instanceof Node) || list.current?.parentElement?.contains(event.target) !== true) onLeave();
    };
    document.addEventListener("pointerdown", leave);
    return () => document.removeEventListener("pointerdown", leave);
  }, []);
  const onKeyDown = (event: TargetedKeyboardEvent<HTMLDivElement>): void => {
    if (event.key === "Tab") return onLeave();
    const keys: Readonly<Record<string, () => void>> = {
      ArrowDown: () => move(1),
      ArrowUp: () => move(-1),
      Home: () => entries().at(0)?.focus(),
      End: () => entries().at(-1)?.focus(),
      Escape: onClose,
    };
    const act = keys[event.key];
    if (act === undefined) return;
    event.preventDefault();
    act();
  };
  return (
    <div ref={list} id={id} role="menu" aria-label={label} class="menu-list" onKeyDown={onKeyDown}>
      {items.map(({ text, danger, choose }) => (
        <button
          key={text}
          type="button"
          role="menuitem"
          tabIndex={-1}
          class={danger === true ? "menu-item menu-danger" : "menu-item"}
          onClick={() => {
            onClose();
            choose();
          }}
        >
          {text}
        </button>
      ))}
    </div>
  );
}
