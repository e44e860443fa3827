import type { SandboxRecord } from "@sandboxer/client";
import type { JSX } from "preact";
import { lazy } from "../../ui/lazy.tsx";

export interface SandboxTabProperties {
  readonly record: SandboxRecord;
}

export interface SandboxTab {
  /** The last part of its address; the first tab has none. */
  readonly path: string;
  readonly title: string;
  /** Whether it has nothing to show of a sandbox that sleeps. */
  readonly needsRunning: boolean;
  /** Whether it stays as it is while the person looks at another tab of the same sandbox. */
  readonly keep?: boolean;
  readonly Content: (properties: SandboxTabProperties) => JSX.Element | null;
}

const Terminals = lazy(async () => (await import("./terminal/terminals.tsx")).Terminals);
const RunCode = lazy(async () => (await import("./run/run-code.tsx")).RunCode);
const ProcessesTab = lazy(async () => (await import("./processes/processes-tab.tsx")).ProcessesTab);
const FilesTab = lazy(async () => (await import("./files/files-tab.tsx")).FilesTab);
const TimelineTab = lazy(async () => (await import("./timeline/timeline-tab.tsx")).TimelineTab);

const MetricsTab = lazy(async () => (await import("./metrics/metrics-tab.tsx")).MetricsTab);
const FactsTab = lazy(async () => (await import("./facts/facts-tab.tsx")).FactsTab);

/** What a sandbox's page is made of: one line for each. */
export const SANDBOX_TABS: readonly SandboxTab[] = [
  { path: "", title: "Terminal", needsRunning: true, keep: true, Content: Terminals },
  { path: "run", title: "Run code", needsRunning: true, keep: true, Content: RunCode },
  { path: "processes", title: "Processes", needsRunning: true, Content: ProcessesTab },
  { path: "files", title: "Files", needsRunning: true, Content: FilesTab },
  { path: "timeline", title: "Timeline", needsRunning: false, Content: TimelineTab },
  { path: "metrics", title: "Metrics", needsRunning: true, Content: MetricsTab },
  { path: "facts", title: "Facts", needsRunning: false, Content: FactsTab },
];

export function sandboxPath(id: string, tab = ""): string {
  return `/sandboxes/${encodeURIComponent(id)}${tab === "" ? "" : `/${tab}`}`;
}
