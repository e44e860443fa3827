import type { ComponentChildren, JSX } from "preact";
import { shortId } from "./format/names.ts";
import { logOutOrTell } from "./log-out.ts";
import { connected } from "./live/events.ts";
import { sandboxesState } from "./live/sandboxes.ts";
import type { Section } from "./pages/pages.tsx";
import { showPalette } from "./palette/open.ts";
import { Link } from "./router.tsx";
import { server } from "./session.ts";
import { nextTheme, theme } from "./theme.ts";
import { Button } from "./ui/button.tsx";
import { OperationTray } from "./ui/operation-tray.tsx";

const SECTIONS = [
  { section: "sandboxes", to: "/", title: "Sandboxes" },
  { section: "lineage", to: "/lineage", title: "Lineage" },
  { section: "images", to: "/images", title: "Images" },
  { section: "instances", to: "/instances", title: "Servers" },
] as const;

/** The frame of every page: navigation, the server, and the connection state. */
export function Shell({
  section,
  children,
}: {
  readonly section: Section;
  readonly children: ComponentChildren;
}): JSX.Element {
  const info = server.value;
  // A broken connection may look open for long; then the list is not answered.
  const isLive = connected.value && sandboxesState.value.error === undefined;
  return (
    <div class="shell">
      <a class="skip-link" href="#content">
        Skip to the content
      </a>
      <header class="shell-header">
        <Link to="/" class="shell-brand">
          <img src="/icon.svg" alt="" width="22" height="22" />
          sandboxer
        </Link>
        <nav aria-label="Sections">
          {SECTIONS.map(({ section: name, to, title }) => (
            <Link key={name} to={to} current={section === name}>
              {title}
            </Link>
          ))}
          <a href="/docs/">Docs</a>
        </nav>
        <div class="shell-facts">
          <span class={isLive ? "live live-on" : "live"} role="status">
            {isLive ? "live" : "reconnecting …"}
          </span>
          <OperationTray />
          {info?.instanceId == null ? null : (
            <span title={`Server: ${info.instanceId}`}>{shortId(info.instanceId)}</span>
          )}
          {info?.scope === "read" ? <span class="chip">read only</span> : null}
          <Button kind="quiet" label="Command palette (Ctrl K)" onClick={showPalette}>
            ⌕
          </Button>
          <Button kind="quiet" label={`Theme: ${theme.value}`} onClick={nextTheme}>
            ◐
          </Button>
          {info?.hasKey === true ? (
            <Button kind="quiet" onClick={logOutOrTell}>
              Log out
            </Button>
          ) : null}
        </div>
      </header>
      <main id="content" tabIndex={-1}>
        {children}
      </main>
    </div>
  );
}
