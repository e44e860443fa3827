import { tell, tellError } from "./toasts.tsx";

export async function copyText(text: string, what: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    tell(`Copied: ${what}`);
  } catch (thrown) {
    tellError("The browser denied access to the clipboard", thrown);
  }
}
