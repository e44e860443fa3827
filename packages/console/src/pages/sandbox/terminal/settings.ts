import { effect, signal, type Signal } from "@preact/signals";

/** Stored in the browser, for all sandboxes. */
export const fontSize = kept("sandboxer.terminal.font-size", 13, (value) => clampFontSize(Number(value)));
export const screenReader = kept("sandboxer.terminal.screen-reader", false, (value) => value === true);
/** Users' names for terminals, by process id. */
export const terminalNames = kept<Readonly<Record<string, string>>>("sandboxer.terminal.names", {}, texts);
/** The terminals that this browser has left running, newest last. */
export const leftTerminals = kept<readonly string[]>("sandboxer.terminal.left", [], (value) =>
  Array.isArray(value) ? value.filter((id) => typeof id === "string") : [],
);

/** Older ones are forgotten. */
const MAX_NAMES = 200;

export function setLeft(id: string, left: boolean): void {
  const others = leftTerminals.peek().filter((other) => other !== id);
  leftTerminals.value = left ? [...others.slice(1 - MAX_NAMES), id] : others;
}

export function nameTerminal(id: string, name: string): void {
  const { [id]: _, ...others } = terminalNames.peek();
  terminalNames.value = Object.fromEntries([...Object.entries(others).slice(1 - MAX_NAMES), [id, name.slice(0, 60)]]);
}

export function clampFontSize(pixels: number): number {
  return Number.isFinite(pixels) ? Math.min(28, Math.max(8, Math.round(pixels))) : 13;
}

function texts(value: unknown): Readonly<Record<string, string>> {
  if (typeof value !== "object" || value === null) return {};
  return Object.fromEntries(
    Object.entries(value).filter((entry): entry is [string, string] => typeof entry[1] === "string"),
  );
}

function kept<Value>(key: string, initial: Value, parse: (value: unknown) => Value): Signal<Value> {
  const setting = signal(initial);
  try {
    const stored = localStorage.getItem(key);
    if (stored !== null) setting.value = parse(JSON.parse(stored));
  } catch {
    // A browser without storage, or with invalid data: use the defaults.
  }
  effect(() => {
    const text = JSON.stringify(setting.value);
    try {
      localStorage.setItem(key, text);
    } catch {
      // Kept only while the page is open.
    }
  });
  return setting;
}
