import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import UPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { shownTheme } from "../../../theme.ts";
import type { Measure } from "./series.ts";

const HEIGHT = 180;
const AXIS_WIDTH = 78;

/** A line over time, with the limit as a dashed line. The numbers are listed beside it for screen readers. */
export function Plot({ measure, minutes }: { readonly measure: Measure; readonly minutes: number }): JSX.Element {
  const element = useRef<HTMLDivElement>(null);
  const plot = useRef<UPlot | undefined>(undefined);
  const colours = shownTheme.value;
  useEffect(() => {
    const target = element.current;
    if (target === null) return;
    plot.current = new UPlot(optionsFor(measure, minutes, target), dataOf(measure), target);
    const resize = new ResizeObserver(() => plot.current?.setSize({ width: target.clientWidth, height: HEIGHT }));
    resize.observe(target);
    return () => {
      resize.disconnect();
      plot.current?.destroy();
      plot.current = undefined;
    };
  }, [measure.title, measure.limit, minutes, colours]);
  useEffect(() => plot.current?.setData(dataOf(measure)), [measure]);
  return <div ref={element} class="plot" aria-hidden="true" />;
}

function dataOf({ times, values, limit }: Measure): UPlot.AlignedData {
  return [[...times], [...values], times.map(() => limit)];
}

function optionsFor({ title, format, increments }: Measure, minutes: number, target: HTMLElement): UPlot.Options {
  const style = getComputedStyle(target);
  const color = (name: string): string => style.getPropertyValue(name).trim();
  const axis = { stroke: color("--text-2"), grid: { stroke: color("--line"), width: 1 }, ticks: { show: false } };
  return {
    width: target.clientWidth,
    height: HEIGHT,
    legend: { show: false },
    cursor: { drag: { x: false, y: false } },
    scales: {
      // The selected time range, even if there are few points.
      x: { range: (_plot, _first, last) => [last - minutes * 60, last] },
      y: { range: (_plot, _least, most) => [0, Math.max(most * 1.1, 0.01)] },
    },
    axes: [
      axis,
      {
        ...axis,
        size: AXIS_WIDTH,
        values: (_plot, splits) => splits.map((value) => format(value)),
        ...(increments === undefined ? {} : { incrs: [...increments] }),
      },
    ],
    series: [
      {},
      { label: title, stroke: color("--accent"), width: 2, points: { show: false } },
      { label: "limit", stroke: color("--danger"), width: 1, dash: [6, 4], points: { show: false } },
    ],
  };
}
