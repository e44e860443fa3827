import { dirname, join } from "node:path/posix";

/** The name of a page in the site: `docs/` is its root, and a README is the page of its folder. */
export function siteName(path: string): string {
  return path.replace(/^docs\//, "").replace(/(^|\/)README\.md$/, "$1index.md");
}

/** Anchors as GitHub makes them, so that a link works in both places. */
export function siteAnchor(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
    .trim()
    .replaceAll(" ", "-");
}

/** The part of markdown-it's tokens that this file uses. */
interface Token {
  readonly type: string;
  tag: string;
  readonly children: Token[] | null;
  attrs: [string, string][] | null;
  attrGet(name: string): string | null;
  attrSet(name: string, value: string): void;
}

interface State {
  readonly tokens: readonly Token[];
  readonly env: { readonly relativePath: string };
}

/** Pages that the site has, besides those of docs. */
const IN_SITE = /^(docs|examples)\/.*\.md$|^(ARCHITECTURE|CHANGELOG|COMPATIBILITY|CONTRIBUTING|SECURITY)\.md$/;

/** Whether a file or folder at the root of the repository has pages of the site. */
export function isInSite(name: string): boolean {
  return IN_SITE.test(name) || IN_SITE.test(`${name}/page.md`);
}

/** Links of the repository become links of the site. A link to a file that the site does not have becomes text. */
export function repositoryLinks({ tokens, env }: State): void {
  for (const { children } of tokens) {
    let dropped = false;
    for (const token of children ?? []) {
      if (token.type === "link_close" && dropped) {
        token.tag = "span";
        dropped = false;
      }
      const href = token.type === "link_open" ? token.attrGet("href") : null;
      if (href === null || /^([a-z]+:|#)/.test(href)) continue;
      const [path = "", anchor] = href.split("#");
      const target = join(dirname(sourceOf(env.relativePath)), decodeURI(path));
      if (IN_SITE.test(target)) {
        token.attrSet("href", `/${siteName(target)}${anchor === undefined ? "" : `#${anchor}`}`);
      } else {
        dropped = true;
        token.tag = "span";
        token.attrs = [["title", target]];
      }
    }
  }
}

/** VitePress gives the name in the site; the folder of the file in the repository follows from it. */
function sourceOf(page: string): string {
  return IN_SITE.test(page) ? page : join("docs", page);
}
