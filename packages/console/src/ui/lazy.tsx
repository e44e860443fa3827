import type { SandboxerError } from "@sandboxer/client";
import type { ComponentType, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { asError } from "../session.ts";
import { Button } from "./button.tsx";
import { ErrorBox } from "./error-box.tsx";
import { fetchPart } from "./fetch-part.ts";

/** A component with a library of its own, which is fetched when it is first shown. */
export function lazy<Part, Properties extends object>(
  load: () => Promise<Part>,
  componentOf: (part: Part) => ComponentType<Properties>,
): (properties: Properties) => JSX.Element {
  let loaded: ComponentType<Properties> | undefined;
  return function Lazy(properties: Properties): JSX.Element {
    const [shown, setShown] = useState<{ readonly component: ComponentType<Properties> } | undefined>(
      loaded === undefined ? undefined : { component: loaded },
    );
    const [error, setError] = useState<SandboxerError | undefined>(undefined);
    const fetchIt = (): void => {
      setError(undefined);
      fetchPart(load).then(
        (part) => {
          loaded = componentOf(part);
          setShown({ component: loaded });
        },
        (thrown: unknown) => setError(asError(thrown)),
      );
    };
    useEffect(() => {
      if (shown === undefined) fetchIt();
    }, []);
    if (error !== undefined) {
      return (
        <ErrorBox error={error}>
          <Button onClick={fetchIt}>Try again</Button>{" "}
          <Button onClick={() => location.reload()}>Reload the page</Button>
        </ErrorBox>
      );
    }
    if (shown === undefined) return <p class="page-note">Loading …</p>;
    const Component = shown.component;
    return <Component {...properties} />;
  };
}
