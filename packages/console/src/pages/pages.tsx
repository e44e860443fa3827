import type { JSX } from "preact";
import { Link, match } from "../router.tsx";
import { lazy } from "../ui/lazy.tsx";
import { SandboxPage } from "./sandbox/sandbox-page.tsx";
import { SandboxesPage } from "./sandboxes/sandboxes-page.tsx";

export type Section = "sandboxes" | "lineage" | "images" | "instances" | "other";

interface Page {
  readonly section: Section;
  readonly title: string;
  show(): JSX.Element;
}

interface Route {
  readonly pattern: string;
  readonly section: Section;
  readonly title: string;
  readonly show: (parameters: Readonly<Record<string, string>>) => JSX.Element;
}

const LineagePage = lazy(
  () => import("./lineage/lineage-page.tsx"),
  (part) => part.LineagePage,
);

const ImagesPage = lazy(
  () => import("./images/images-page.tsx"),
  (part) => part.ImagesPage,
);

const InstancesPage = lazy(
  () => import("./instances/instances-page.tsx"),
  (part) => part.InstancesPage,
);

const ROUTES: readonly Route[] = [
  { pattern: "", section: "sandboxes", title: "Sandboxes", show: () => <SandboxesPage /> },
  ...["/sandboxes/:id", "/sandboxes/:id/:tab"].map((pattern): Route => ({
    pattern,
    section: "sandboxes",
    title: "Sandbox",
    show: ({ id = "", tab = "" }) => <SandboxPage key={id} id={id} tab={tab} />,
  })),
  { pattern: "/lineage", section: "lineage", title: "Lineage", show: () => <LineagePage /> },
  { pattern: "/images", section: "images", title: "Images", show: () => <ImagesPage /> },
  { pattern: "/instances", section: "instances", title: "Instances", show: () => <InstancesPage /> },
];

/** The page of an address. */
export function pageAt(path: string): Page {
  for (const { pattern, show, ...rest } of ROUTES) {
    const parameters = match(pattern, path);
    if (parameters !== undefined) return { ...rest, show: () => show(parameters) };
  }
  return { section: "other", title: "Page not found", show: () => <NotFound /> };
}

function NotFound(): JSX.Element {
  return (
    <section class="page">
      <h1>Page not found</h1>
      <p>
        The console has no page at this address. <Link to="/">Show the sandboxes.</Link>
      </p>
    </section>
  );
}
