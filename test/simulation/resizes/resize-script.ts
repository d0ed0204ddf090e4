import { pick, type Random, randomInt } from '../../../src/lib/index.ts';
import type { TimedStep } from '../script.ts';
import { type ContainerSize, type ContainerSketch, images, type PodSketch } from '../sketch.ts';

const sizes = {
  milliCpu: [50, 200, 700, 1_500, 2_500],
  mebibytes: [32, 256, 1_024, 3_072, 5_000],
} as const;

/**
 * Adds resizes of pods, sometimes beyond the node's capacity, to the actions of a simulated seed.
 */
export function withResizes(random: Random, script: readonly TimedStep[]): readonly TimedStep[] {
  const spanMs = Math.max(60_000, script.at(-1)?.atMs ?? 0);
  const pods = 2 + randomInt(random, 2);
  const steps = Array.from({ length: pods }, (_, index) => podSteps(random, `sized${index}`, spanMs));
  return [...script, ...steps.flat()].toSorted((each, other) => each.atMs - other.atMs);
}

function podSteps(random: Random, name: string, spanMs: number): readonly TimedStep[] {
  const sketch = sizedPod(random, name);
  let atMs = random.next() * (spanMs / 4);
  const steps: TimedStep[] = [{ atMs, step: { do: 'cluster', what: { do: 'create', sketch } } }];
  const names = [...sketch.init, ...sketch.containers].map((each) => each.name);
  for (let resizes = 1 + randomInt(random, 5); resizes > 0; resizes--) {
    atMs += random.next() * (pick(random, [50, 3_000, spanMs / 3]) ?? 0);
    const chosen = names.filter(() => random.next() < 0.7);
    const expected = Object.fromEntries(chosen.map((each) => [each, sizeOf(random)]));
    steps.push({ atMs, step: { do: 'cluster', what: { do: 'resize', name, sizes: expected } } });
  }
  if (random.next() < 0.3) {
    atMs += random.next() * (spanMs / 3);
    steps.push({ atMs, step: { do: 'cluster', what: { do: 'delete', name } } });
  }
  return steps;
}

function sizedPod(random: Random, name: string): PodSketch {
  const container = (prefix: string) => (index: number) => sized(random, `${prefix}${index}`);
  const many = (count: number, make: (index: number) => ContainerSketch) =>
    Array.from({ length: count }, (_, index) => make(index));
  return {
    name,
    revision: 1,
    source: 'api',
    restartPolicy: 'Always',
    graceSeconds: 1,
    mayBeRefused: true,
    init: many(randomInt(random, 2), container('init')).map((each) => ({
      ...each,
      restartPolicy: 'Always' as const,
    })),
    containers: many(1 + randomInt(random, 2), container('main')),
  };
}

function sized(random: Random, name: string): ContainerSketch {
  const restarting = pick(random, [undefined, undefined, 'cpu', 'memory'] as const);
  return {
    name,
    image: images.present,
    onTerm: 'die',
    size: { milliCpu: 50, mebibytes: 32 },
    ...(restarting !== undefined && { restartsForSize: restarting }),
  };
}

function sizeOf(random: Random): ContainerSize {
  return {
    milliCpu: pick(random, sizes.milliCpu) ?? 50,
    mebibytes: pick(random, sizes.mebibytes) ?? 32,
  };
}
