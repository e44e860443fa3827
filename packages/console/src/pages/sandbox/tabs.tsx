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
  /** Whether it needs a running sandbox. */
  readonly needsRunning: boolean;
  /** Whether it keeps its state while the user looks at another tab of the same sandbox. */
  readonly keep?: boolean;
  readonly Content: (properties: SandboxTabProperties) => JSX.Element | null;
}

const Terminals = lazy(
  () => import("./terminal/terminals.tsx"),
  (part) => part.Terminals,
);
const RunCode = lazy(
  () => import("./run/run-code.tsx"),
  (part) => part.RunCode,
);
const ProcessesTab = lazy(
  () => import("./processes/processes-tab.tsx"),
  (part) => part.ProcessesTab,
);
const NetworkTab = lazy(
  () => import("./network/network-tab.tsx"),
  (part) => part.NetworkTab,
);
const FilesTab = lazy(
  () => import("./files/files-tab.tsx"),
  (part) => part.FilesTab,
);
const TimelineTab = lazy(
  () => import("./timeline/timeline-tab.tsx"),
  (part) => part.TimelineTab,
);

const MetricsTab = lazy(
  () => import("./metrics/metrics-tab.tsx"),
  (part) => part.MetricsTab,
);
const FactsTab = lazy(
  () => import("./facts/facts-tab.tsx"),
  (part) => part.FactsTab,
);

/** The tabs of a sandbox's page. */
export const SANDBOX_TABS: readonly SandboxTab[] = [
  { path: "", title: "Terminal", needsRunning: true, keep: true, Content: Terminals },
  { path: "run", title: "Run code", needsRunning: true, keep: true, Content: RunCode },
  { path: "processes", title: "Processes", needsRunning: true, Content: ProcessesTab },
  { path: "network", title: "Network", needsRunning: false, Content: NetworkTab },
  { path: "files", title: "Files", needsRunning: true, Content: FilesTab },
  { path: "timeline", title: "Timeline", needsRunning: false, Content: TimelineTab },
  { path: "metrics", title: "Metrics", needsRunning: true, Content: MetricsTab },
  { path: "facts", title: "Facts", needsRunning: false, Content: FactsTab },
];

export function sandboxPath(id: string, tab = ""): string {
  return `/sandboxes/${encodeURIComponent(id)}${tab === "" ? "" : `/${tab}`}`;
}
