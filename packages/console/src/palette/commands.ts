import { stateWord } from "@sandboxer/protocol/state-word";
import { offersFor } from "../actions/offered.ts";
import { sandboxTitle } from "../format/names.ts";
import { sandboxes } from "../live/sandboxes.ts";
import { logOutOrTell } from "../log-out.ts";
import { SANDBOX_TABS, sandboxPath } from "../pages/sandbox/tabs.tsx";
import { askForSandbox } from "../pages/sandboxes/new/ask-for-sandbox.ts";
import { navigate, sandboxInSight } from "../router.tsx";
import { may, server } from "../session.ts";
import { nextTheme } from "../theme.ts";
import { showShortcuts } from "./open.ts";

export interface Command {
  readonly id: string;
  readonly text: string;
  /** Searched besides the text. */
  readonly more?: string;
  readonly group: string;
  readonly run: () => void;
  /** Absent: for everyone. */
  readonly offered?: () => boolean;
}

/** All commands of the palette: those for the current sandbox come first. */
export function commands(): readonly Command[] {
  return [...commandsHere(), ...COMMANDS.filter(({ offered }) => offered?.() !== false), ...jumps()];
}

const COMMANDS: readonly Command[] = [
  { id: "new", text: "New sandbox", group: "Do", run: askForSandbox, offered: () => may("use") },
  { id: "sandboxes", text: "Go to the sandboxes", group: "Go", run: () => navigate("/") },
  { id: "lineage", text: "Go to the lineage", group: "Go", run: () => navigate("/lineage") },
  { id: "images", text: "Go to the images", group: "Go", run: () => navigate("/images") },
  { id: "instances", text: "Go to the servers", group: "Go", run: () => navigate("/instances") },
  { id: "theme", text: "Change the theme", group: "Do", run: nextTheme },
  { id: "shortcuts", text: "Show the keyboard shortcuts", group: "Do", run: showShortcuts },
  {
    id: "log-out",
    text: "Log out",
    group: "Do",
    run: logOutOrTell,
    offered: () => server.value?.hasKey === true,
  },
];

function commandsHere(): readonly Command[] {
  const record = sandboxes.value.get(sandboxInSight() ?? "");
  if (record === undefined) return [];
  const group = sandboxTitle(record);
  return [
    ...offersFor(record).map(({ text, choose }) => ({ id: `offer ${text}`, text, group, run: choose })),
    ...SANDBOX_TABS.map(({ path, title }) => ({
      id: `tab ${path}`,
      text: `Show ${title.toLowerCase()}`,
      group,
      run: () => navigate(sandboxPath(record.id, path)),
    })),
  ];
}

function jumps(): readonly Command[] {
  return [...sandboxes.value.values()].map((record) => ({
    id: `sandbox ${record.id}`,
    text: sandboxTitle(record),
    more: `${record.id} ${record.key ?? ""} ${stateWord(record.state)}`,
    group: "Sandboxes",
    run: () => navigate(sandboxPath(record.id)),
  }));
}
