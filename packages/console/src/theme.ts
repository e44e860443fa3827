import { computed, effect, signal } from "@preact/signals";

const THEMES = ["system", "light", "dark"] as const;
type Theme = (typeof THEMES)[number];
const KEY = "sandboxer.theme";

export const theme = signal<Theme>(stored());

const systemIsDark = matchMedia("(prefers-color-scheme: dark)");
const dark = signal(systemIsDark.matches);
systemIsDark.addEventListener("change", () => (dark.value = systemIsDark.matches));

/** The visible theme. */
export const shownTheme = computed(() => (theme.value === "system" ? (dark.value ? "dark" : "light") : theme.value));

export function nextTheme(): void {
  theme.value = THEMES[(THEMES.indexOf(theme.value) + 1) % THEMES.length] ?? "system";
}

effect(() => {
  document.documentElement.dataset["theme"] = shownTheme.value;
});

effect(() => {
  const { value } = theme;
  try {
    localStorage.setItem(KEY, value);
  } catch {
    // A browser without storage shows the system's theme.
  }
});

function stored(): Theme {
  try {
    return THEMES.find((name) => name === localStorage.getItem(KEY)) ?? "system";
  } catch {
    return "system";
  }
}
