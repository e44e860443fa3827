import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { path, query } from "../router.tsx";
import { lazy } from "../ui/lazy.tsx";
import { closeDialog, dialogRequest } from "./dialog-request.ts";

const Shown = lazy(
  () => import("./requested-dialog.tsx"),
  (part) => part.RequestedDialog,
);

/** Shows the dialogs that pages request. Leaving the page closes them. */
export function Dialogs(): JSX.Element | null {
  const { value } = dialogRequest;
  const keys = useRef({ request: value, key: 0 });
  if (keys.current.request !== value) keys.current = { request: value, key: keys.current.key + 1 };
  const address = `${path.value}?${query.value.toString()}`;
  useEffect(
    () => () => {
      const left = dialogRequest.peek();
      if (left !== undefined) closeDialog(left);
    },
    [address],
  );
  if (value === undefined) return null;
  return <Shown key={keys.current.key} request={value} onClose={() => closeDialog(value)} />;
}
