import { signal } from "@preact/signals";

/** The overlay: the palette, or the list of shortcuts. */
export const overlay = signal<"palette" | "shortcuts" | undefined>(undefined);

export function showPalette(): void {
  overlay.value = "palette";
}

export function showShortcuts(): void {
  overlay.value = "shortcuts";
}

export function closeOverlay(): void {
  overlay.value = undefined;
}
