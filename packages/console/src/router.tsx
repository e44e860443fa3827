import { computed, signal } from "@preact/signals";
import type { ComponentChildren, JSX, TargetedMouseEvent } from "preact";

/** The current location. Every view has its own URL. */
const address = signal(new URL(location.href));

addEventListener("popstate", ({ state }: PopStateEvent) => {
  address.value = new URL(location.href);
  // The browser restores the scroll position before the page is drawn, when it may be too short.
  const { scrollTop = 0 } = (state ?? {}) as { readonly scrollTop?: number };
  requestAnimationFrame(() => requestAnimationFrame(() => scrollTo(0, scrollTop)));
});

/** The name of the sandbox that the page shows, for the window's title. */
export const subject = signal<string | undefined>(undefined);

export const path = computed(() => address.value.pathname);
export const query = computed(() => address.value.searchParams);

export function navigate(to: string, { replace = false }: { readonly replace?: boolean } = {}): void {
  const target = new URL(to, location.href);
  if (target.href === location.href) return;
  const isOtherPage = target.pathname !== location.pathname;
  if (replace) history.replaceState(null, "", target);
  else {
    history.replaceState({ scrollTop: scrollY }, "");
    history.pushState(null, "", target);
  }
  address.value = target;
  if (isOtherPage) scrollTo(0, 0);
}

/** Changes only the query: filters, the selected tab. Not a step of the history. */
export function setQuery(changes: Readonly<Record<string, string | undefined>>): void {
  const target = new URL(location.href);
  for (const [name, value] of Object.entries(changes)) {
    if (value === undefined || value === "") target.searchParams.delete(name);
    else target.searchParams.set(name, value);
  }
  navigate(target.href, { replace: true });
}

/** The parts of the path that match a pattern such as `/sandboxes/:id/:tab`; undefined for another path. */
export function match(pattern: string, at: string): Readonly<Record<string, string>> | undefined {
  const wanted = pattern.split("/");
  const parts = at.replace(/\/$/, "").split("/");
  if (wanted.length !== parts.length) return undefined;
  const found: Record<string, string> = {};
  for (const [index, name] of wanted.entries()) {
    const part = parts[index] ?? "";
    if (name.startsWith(":")) found[name.slice(1)] = decodePart(part);
    else if (name !== part) return undefined;
  }
  return found;
}

/** The id of the sandbox whose page is shown. */
export function sandboxInSight(): string | undefined {
  return (match("/sandboxes/:id", path.value) ?? match("/sandboxes/:id/:tab", path.value))?.["id"];
}

function decodePart(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

interface LinkProperties {
  readonly to: string;
  readonly children: ComponentChildren;
  readonly class?: string;
  readonly title?: string;
  /** Whether it leads to the current location. */
  readonly current?: boolean;
}

/** A link within the console: a real one, so that it can be copied and opened in another tab. */
export function Link({ to, children, current = false, ...rest }: LinkProperties): JSX.Element {
  const follow = (event: TargetedMouseEvent<HTMLAnchorElement>): void => {
    if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    navigate(to);
  };
  return (
    <a href={to} onClick={follow} aria-current={current ? "page" : undefined} {...rest}>
      {children}
    </a>
  );
}
