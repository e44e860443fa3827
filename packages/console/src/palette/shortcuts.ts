import { askForSandbox } from "../pages/sandboxes/new/ask-for-sandbox.ts";
import { navigate, path } from "../router.tsx";
import { may } from "../session.ts";
import { showPalette, showShortcuts } from "./open.ts";

interface Shortcut {
  /** One key, or a sequence of two. */
  readonly keys: string;
  readonly does: string;
  readonly run: () => void;
  /** Absent: for everyone. */
  readonly offered?: () => boolean;
}

const SHORTCUTS: readonly Shortcut[] = [
  { keys: "Ctrl K", does: "Command palette", run: showPalette },
  { keys: "/", does: "Search the sandboxes", run: focusSearch },
  { keys: "n", does: "New sandbox", run: askForSandbox, offered: () => may("use") },
  { keys: "g s", does: "Go to the sandboxes", run: () => navigate("/") },
  { keys: "g l", does: "Go to the lineage", run: () => navigate("/lineage") },
  { keys: "g m", does: "Go to the images", run: () => navigate("/images") },
  { keys: "g i", does: "Go to the servers", run: () => navigate("/instances") },
  { keys: "?", does: "These shortcuts", run: showShortcuts },
];

/** The shortcuts that the user may use. */
export function shortcuts(): readonly Shortcut[] {
  return SHORTCUTS.filter(({ offered }) => offered?.() !== false);
}

/** The time limit for the second key. */
const SEQUENCE_MS = 1_000;

/**
 * Listens to the keys of the whole page, except while the user types into something. Returns a function that ends it.
 */
export function listenForShortcuts(): () => void {
  let before = { key: "", atMs: 0 };
  const hear = (event: KeyboardEvent): void => {
    if ((event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === "k") {
      if (isTerminal(event.target) && !event.metaKey) return;
      event.preventDefault();
      return showPalette();
    }
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target) || hasDialog()) return;
    const pair = performance.now() - before.atMs < SEQUENCE_MS ? `${before.key} ${event.key}` : "";
    before = { key: event.key, atMs: performance.now() };
    const known = shortcuts();
    const shortcut = known.find(({ keys }) => keys === pair) ?? known.find(({ keys }) => keys === event.key);
    if (shortcut === undefined) return;
    event.preventDefault();
    shortcut.run();
  };
  document.addEventListener("keydown", hear);
  return () => document.removeEventListener("keydown", hear);
}

function focusSearch(): void {
  if (path.value !== "/") navigate("/");
  requestAnimationFrame(() => document.querySelector<HTMLInputElement>("#search")?.focus());
}

/** Inside a terminal Ctrl-K belongs to the shell; ⌘-K does not. */
function isTerminal(target: EventTarget | null): boolean {
  return target instanceof Element && target.closest(".xterm") !== null;
}

function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  return target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) || isTerminal(target);
}

function hasDialog(): boolean {
  return document.querySelector("dialog[open]") !== null;
}
