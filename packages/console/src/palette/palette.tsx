import type { JSX, TargetedKeyboardEvent } from "preact";
import { useEffect, useId, useMemo, useRef, useState } from "preact/hooks";
import { Dialog } from "../ui/dialog.tsx";
import { commands, type Command } from "./commands.ts";
import { closeOverlay } from "./open.ts";
import { search } from "./search.ts";

/** The command palette: type some letters, then Enter. */
export function Palette(): JSX.Element {
  const [typed, setTyped] = useState("");
  const [at, setAt] = useState(0);
  const all = useMemo(commands, []);
  const found = useMemo(() => search(all, typed), [all, typed]);
  const list = useRef<HTMLUListElement>(null);
  const id = useId();
  const place = Math.min(at, found.length - 1);
  useEffect(() => list.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" }), [place]);
  const run = (command: Command | undefined): void => {
    if (command === undefined) return;
    closeOverlay();
    command.run();
  };
  const onKeyDown = (event: TargetedKeyboardEvent<HTMLInputElement>): void => {
    if (event.key === "Enter") run(found[place]);
    else if (event.key === "ArrowDown") setAt((place + 1) % Math.max(1, found.length));
    else if (event.key === "ArrowUp") setAt((place - 1 + found.length) % Math.max(1, found.length));
    else return;
    event.preventDefault();
  };
  return (
    <Dialog title="Command palette" onClose={closeOverlay}>
      <div class="palette">
        <input
          type="text"
          role="combobox"
          aria-label="Search pages and actions"
          aria-expanded="true"
          aria-controls={`${id}-list`}
          aria-activedescendant={found.length === 0 ? undefined : `${id}-${place}`}
          autoFocus
          autoComplete="off"
          value={typed}
          onInput={(event) => {
            setTyped(event.currentTarget.value);
            setAt(0);
          }}
          onKeyDown={onKeyDown}
        />
        <ul ref={list} id={`${id}-list`} role="listbox" aria-label="Results">
          {found.map((command, index) => (
            <li
              key={command.id}
              id={`${id}-${index}`}
              role="option"
              aria-selected={index === place}
              onClick={() => run(command)}
            >
              <span class="palette-text">{command.text}</span>
              <span class="hint">{command.group}</span>
            </li>
          ))}
        </ul>
        {found.length === 0 ? <p class="hint">No results.</p> : null}
      </div>
    </Dialog>
  );
}
