import type { PtySize } from "@sandboxer/client";
import { FitAddon } from "@xterm/addon-fit";
import { Terminal } from "@xterm/xterm";
import "@xterm/xterm/css/xterm.css";
import { copyText } from "../../../ui/copy-text.ts";
import { tell, tellError } from "../../../ui/toasts.tsx";
import { withNonce } from "./content-policy.ts";
import type { PtyScreen, PtySession } from "./pty-session.ts";
import { isReport } from "./terminal-reports.ts";
import { shownTheme } from "../../../theme.ts";
import { TERMINAL_THEMES } from "./terminal-theme.ts";

const RESIZE_SETTLE_MS = 80;
/** The limit of unprocessed output. More would delay the effect of a key. */
const MAX_WAITING_BYTES = 128 * 1024;

/** A terminal on the page that shows one of a sandbox. */
export class XtermScreen implements PtyScreen {
  readonly #session: PtySession;
  readonly #terminal: Terminal;
  readonly #fit = new FitAddon();
  readonly #onLeave: () => void;
  /** Old output is being processed. */
  #replaying = false;
  #skipToLine = false;
  #waiting = 0;
  #resizing: ReturnType<typeof setTimeout> | undefined;

  constructor(session: PtySession, options: { fontSize: number; screenReader: boolean; onLeave: () => void }) {
    this.#session = session;
    this.#onLeave = options.onLeave;
    this.#terminal = new Terminal({
      cursorBlink: !matchMedia("(prefers-reduced-motion: reduce)").matches,
      ...fontOf(options.fontSize),
      screenReaderMode: options.screenReader,
      scrollback: 10_000,
      // A program's output, even garbage, does not belong in the browser's console.
      logLevel: "off",
      minimumContrastRatio: 4.5,
      theme: TERMINAL_THEMES[shownTheme.peek()],
      // Code inside chooses the target of a link: it is shown, not followed.
      linkHandler: { activate: (_event, text) => tell(`The link leads to ${text}`) },
    });
    this.#terminal.loadAddon(this.#fit);
    const encoder = new TextEncoder();
    this.#terminal.onData((data) => {
      if (!(this.#replaying && isReport(data))) session.write(encoder.encode(data));
    });
    this.#terminal.onBinary((data) => session.write(Uint8Array.from(data, (letter) => letter.charCodeAt(0))));
    this.#terminal.onResize(({ rows, cols }) => session.resize({ rows, columns: cols }));
    this.#terminal.attachCustomKeyEventHandler((event) => this.#key(event));
  }

  open(element: HTMLElement): void {
    withNonce(() => this.#terminal.open(element));
    this.fit();
  }

  async show(data: Uint8Array, seenBefore: boolean): Promise<void> {
    this.#replaying = seenBefore;
    const whole = this.#skipToLine ? afterFirstLine(data) : data;
    this.#skipToLine = false;
    this.#waiting += whole.length;
    const taken = new Promise<void>((resolve) =>
      this.#terminal.write(whole, () => {
        this.#waiting -= whole.length;
        resolve();
      }),
    );
    // A terminal processes its input between two frames: given a little at a time, it idles.
    if (seenBefore || this.#waiting > MAX_WAITING_BYTES) await taken;
    this.#replaying = false;
  }

  clear(): void {
    this.#terminal.reset();
  }

  skipped(): void {
    this.#skipToLine = true;
    this.#terminal.write("\u{1b}[2m… older output was dropped …\u{1b}[0m\r\n");
  }

  /** Fits its place; the program inside gets the size. A hidden place has no size. */
  fit(): void {
    const { element } = this.#terminal;
    if (element === undefined || element.offsetParent === null) return;
    this.#fit.fit();
    const { rows, cols } = this.#terminal;
    this.#session.resize({ rows, columns: cols });
  }

  /** After the last of many changes. */
  fitSoon(): void {
    clearTimeout(this.#resizing);
    this.#resizing = setTimeout(() => this.fit(), RESIZE_SETTLE_MS);
  }

  focus(): void {
    this.#terminal.focus();
  }

  set(options: { readonly fontSize: number; readonly screenReader: boolean }): void {
    this.#terminal.options.fontSize = options.fontSize;
    this.#terminal.options.screenReaderMode = options.screenReader;
    this.fit();
  }

  paint(theme: keyof typeof TERMINAL_THEMES): void {
    this.#terminal.options.theme = TERMINAL_THEMES[theme];
  }

  copy(): void {
    const text = this.#terminal.getSelection();
    if (text === "") tell("Nothing is selected in the terminal.");
    else void copyText(text, "the selection");
  }

  async paste(): Promise<void> {
    try {
      this.#terminal.paste(await navigator.clipboard.readText());
      this.focus();
    } catch (thrown) {
      tellError("The browser denied access to the clipboard; use Ctrl-Shift-V", thrown);
    }
  }

  dispose(): void {
    clearTimeout(this.#resizing);
    this.#terminal.dispose();
  }

  /** False: not for the program inside. */
  #key(event: KeyboardEvent): boolean {
    if (!event.ctrlKey || !event.shiftKey || event.altKey || event.metaKey) return true;
    // The browser itself pastes, as text, into the focused element.
    if (event.code === "KeyV") return false;
    if (event.code === "KeyC") {
      event.preventDefault();
      if (event.type === "keydown") this.copy();
      return false;
    }
    if (event.key === "ArrowUp") {
      event.preventDefault();
      if (event.type === "keydown") this.#onLeave();
      return false;
    }
    return true;
  }
}

function fontOf(fontSize: number): { fontFamily: string; fontSize: number } {
  return { fontFamily: getComputedStyle(document.documentElement).getPropertyValue("--mono"), fontSize };
}

/** The size that a terminal would have there: a program that starts with its true size need not draw twice. */
export function measureTerminal(container: HTMLElement, fontSize: number): PtySize | undefined {
  const place = document.createElement("div");
  place.className = "terminal-place";
  container.append(place);
  const terminal = new Terminal(fontOf(fontSize));
  const fit = new FitAddon();
  terminal.loadAddon(fit);
  try {
    withNonce(() => terminal.open(place));
    const size = fit.proposeDimensions();
    // A hidden terminal has no size.
    if (size === undefined || !(size.rows >= 1 && size.cols >= 1)) return undefined;
    return { rows: size.rows, columns: size.cols };
  } finally {
    terminal.dispose();
    place.remove();
  }
}

/** Buffered output may begin in the middle of a line or of a terminal sequence. */
function afterFirstLine(data: Uint8Array): Uint8Array {
  return data.subarray(data.indexOf(0x0a) + 1);
}
