import { presentControl } from "./present-control.ts";

/** Lets the wall clock of this process jump as the runner says. Clocks for durations are not changed. */
export function disturbWallClock(): void {
  const RealDate = Date;
  const now = (): number => RealDate.now() + presentControl().clockOffsetMs;
  globalThis.Date = new Proxy(RealDate, {
    construct: (target, parameters: [], newTarget: NewableFunction) =>
      Reflect.construct(target, parameters.length === 0 ? [now()] : parameters, newTarget) as Date,
    apply: () => new RealDate(now()).toString(),
    get: (target, name, receiver) => (name === "now" ? now : (Reflect.get(target, name, receiver) as unknown)),
  });
}
