import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { Dialog } from "../ui/dialog.tsx";
import { closeOverlay, overlay } from "./open.ts";
import { Palette } from "./palette.tsx";
import { listenForShortcuts, shortcuts } from "./shortcuts.ts";
import "./palette.css";

/** The overlays that the keyboard opens on every page. */
export function Overlays(): JSX.Element | null {
  useEffect(listenForShortcuts, []);
  if (overlay.value === "palette") return <Palette />;
  if (overlay.value === "shortcuts") return <ShortcutList />;
  return null;
}

function ShortcutList(): JSX.Element {
  return (
    <Dialog title="Keyboard shortcuts" onClose={closeOverlay}>
      <table>
        <thead>
          <tr>
            <th scope="col">Keys</th>
            <th scope="col">Action</th>
          </tr>
        </thead>
        <tbody>
          {shortcuts().map(({ keys, does }) => (
            <tr key={keys}>
              <td>
                {keys.split(" ").map((key) => (
                  <kbd key={key}>{key}</kbd>
                ))}
              </td>
              <td>{does}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Dialog>
  );
}
