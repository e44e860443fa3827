import type { ITheme } from "@xterm/xterm";

const DARK: ITheme = {
  background: "#0e1317",
  foreground: "#e6ebef",
  cursor: "#4fd1c5",
  cursorAccent: "#0e1317",
  selectionBackground: "#33506a",
  black: "#1f2830",
  red: "#ff8a80",
  green: "#7bd89b",
  yellow: "#f5c26b",
  blue: "#8fc1ff",
  magenta: "#d9a6ff",
  cyan: "#4fd1c5",
  white: "#c9d3db",
  brightBlack: "#7c8b98",
  brightRed: "#ffb0a8",
  brightGreen: "#a4ebbb",
  brightYellow: "#ffdb98",
  brightBlue: "#b7d8ff",
  brightMagenta: "#e9caff",
  brightCyan: "#8cebe2",
  brightWhite: "#ffffff",
};

const LIGHT: ITheme = {
  background: "#ffffff",
  foreground: "#16202a",
  cursor: "#0f6b64",
  cursorAccent: "#ffffff",
  selectionBackground: "#b9d9f5",
  black: "#16202a",
  red: "#b3261e",
  green: "#1b6e3c",
  yellow: "#7a5200",
  blue: "#1f5fa8",
  magenta: "#7d3aa8",
  cyan: "#0f6b64",
  white: "#5b6873",
  brightBlack: "#4a5763",
  brightRed: "#c9362d",
  brightGreen: "#22804a",
  brightYellow: "#8a5f00",
  brightBlue: "#2b71c4",
  brightMagenta: "#924cc0",
  brightCyan: "#137d75",
  brightWhite: "#16202a",
};

/** The page's own theme decides, whether it is chosen or the system's. */
export function terminalTheme(): ITheme {
  return getComputedStyle(document.documentElement).colorScheme === "dark" ? DARK : LIGHT;
}
