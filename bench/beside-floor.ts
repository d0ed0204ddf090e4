import type { PrivateRuntime } from '../test/private-runtime.ts';
import { type Sides, timed } from './compare.ts';
import { removePod, startPod } from './pods.ts';

/**
 * The measured kubelet. `appear` returns the milliseconds until all named pods are ready, `vanish`
 * the milliseconds until all are deleted.
 */
export interface Measured {
  appear(pods: readonly string[]): Promise<number>;
  vanish(pods: readonly string[]): Promise<number>;
}

export interface PodLives {
  readonly starts: Required<Sides>;
  readonly removals: Sides;
}

export const names = (word: string, count: number): readonly string[] =>
  Array.from({ length: count }, (_, index) => `${word}${index}`);

/**
 * Measures pods in three ways, one group of pod names at a time: minimal pods over bare CRI, pods
 * over bare CRI with the settings of a kubelet, and pods through the kubelet.
 */
export async function besideFloor(
  runtime: PrivateRuntime,
  kubelet: Measured,
  groups: readonly (readonly string[])[],
  whileThere: (group: number) => Promise<void> = async () => {},
): Promise<PodLives> {
  const lives: PodLives = { starts: { floor: [], ours: [], barest: [] }, removals: { floor: [], ours: [] } };
  const { starts, removals } = lives;
  for (const [index, group] of groups.entries()) {
    const barest = await timed(() => Promise.all(group.map((name) => startPod(runtime, name, 'barest'))));
    starts.barest.push(barest.ms);
    await Promise.all(barest.value.map((pod) => removePod(runtime, pod)));
    const floor = await timed(() => Promise.all(group.map((name) => startPod(runtime, name))));
    starts.floor.push(floor.ms);
    const removed = await timed(() => Promise.all(floor.value.map((pod) => removePod(runtime, pod))));
    removals.floor.push(removed.ms);
    starts.ours.push(await kubelet.appear(group));
    await whileThere(index);
    removals.ours.push(await kubelet.vanish(group));
  }
  return lives;
}
