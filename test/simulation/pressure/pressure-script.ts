import { pick, type Random, randomInt } from '../../../src/lib/index.ts';
import type { Step, TimedStep } from '../script.ts';
import type { Scarce } from './pressure-world.ts';

const scarce: readonly Scarce[] = ['memory', 'memory', 'disk', 'pids'];
/** Pods with at least this priority are critical. */
const critical = 2_000_000_000;

/**
 * Gives priorities to the pods of a simulated seed, and adds periods of resource pressure on the
 * node.
 */
export function withPressure(random: Random, script: readonly TimedStep[]): readonly TimedStep[] {
  const spanMs = Math.max(60_000, script.at(-1)?.atMs ?? 0);
  const times = 2 + randomInt(random, 3);
  const pressure = Array.from({ length: times }, () => shortage(random, spanMs)).flat();
  const all = script.map(({ atMs, step }) => ({ atMs, step: withPriority(step) }));
  return [...all, ...pressure].toSorted((each, other) => each.atMs - other.atMs);
}

function shortage(random: Random, spanMs: number): readonly TimedStep[] {
  const resource = pick(random, scarce) ?? 'memory';
  const atMs = random.next() * spanMs;
  const forMs = random.next() * (pick(random, [20_000, 60_000, 120_000]) ?? 0);
  const room = randomInt(random, 600);
  return [
    { atMs, step: { do: 'pressure', what: { resource, room } } },
    { atMs: atMs + forMs, step: { do: 'pressure', what: { resource, room: 10_000 } } },
  ];
}

/**
 * Gives the pod a priority derived from its name, so that successors with the same name have the
 * same priority.
 */
function withPriority(step: Step): Step {
  if (step.do !== 'cluster' || (step.what.do !== 'create' && step.what.do !== 'delete')) return step;
  const { what } = step;
  if (what.do === 'create') return { do: 'cluster', what: { ...what, sketch: prioritized(what.sketch) } };
  return what.next === undefined ? step : { do: 'cluster', what: { ...what, next: prioritized(what.next) } };
}

function prioritized<T extends { readonly name: string }>(sketch: T): T {
  if (sketch.name === 'api0') return { ...sketch, priority: critical };
  return sketch.name === 'api1' ? { ...sketch, priority: 5 } : sketch;
}

export function isCritical({ priority = 0 }: { readonly priority?: number | undefined }): boolean {
  return priority >= critical;
}
