import { KubelingError } from '../../lib/index.ts';
import type { Device } from './device.ts';

export interface ChoiceRequest {
  readonly resource: string;
  readonly count: number;
  /** Of the pod's own containers that have ended by then: they are taken first. */
  readonly reusable: readonly string[];
  /** Healthy, and nobody's. */
  readonly available: readonly Device[];
  /** NUMA nodes that all of what the container is given should be near; undefined where that does not matter. */
  readonly affinity: readonly number[] | undefined;
  /** What the plugin would take; empty where it does not care. */
  readonly preferred: (question: PreferenceQuestion) => Promise<readonly string[]>;
}

export interface PreferenceQuestion {
  readonly available: readonly string[];
  readonly mustInclude: readonly string[];
  readonly size: number;
}

/** Picks the devices for a container: what can be used again, then what is near, then what the plugin prefers. */
export async function chooseDevices(request: ChoiceRequest): Promise<readonly string[]> {
  const { resource, count, available, preferred } = request;
  const choice = new Choice(count);
  choice.take(request.reusable);
  if (choice.missing === 0) return choice.taken;
  if (available.length < choice.missing) {
    const amounts = `Requested: ${choice.missing}, Available: ${available.length}`;
    throw new KubelingError(
      'DEVICE_UNAVAILABLE',
      `requested number of devices unavailable for ${resource}. ${amounts}`,
    );
  }
  const { near, elsewhere } = byNearness(request);
  const ask = async (from: readonly string[]) => {
    const mustInclude = [...choice.taken];
    const wishes = await preferred({ available: [...from, ...mustInclude], mustInclude, size: count });
    choice.take(wishes.filter((id) => from.includes(id)));
  };
  // All that is near goes first, so that what was promised of nearness holds; who picks among it is the plugin.
  if (choice.missing < near.length) await ask(near);
  choice.take(near);
  if (choice.missing > 0) await ask(available.map(({ id }) => id));
  choice.take(elsewhere);
  return choice.taken;
}

class Choice {
  readonly #taken = new Set<string>();
  readonly #count: number;

  constructor(count: number) {
    this.#count = count;
  }

  get missing(): number {
    return this.#count - this.#taken.size;
  }

  get taken(): readonly string[] {
    return [...this.#taken];
  }

  take(ids: readonly string[]): void {
    for (const id of ids) if (this.missing > 0) this.#taken.add(id);
  }
}

/** Devices near no node in particular come last. */
function byNearness({ available, affinity }: ChoiceRequest) {
  const isPlaced = (device: Device) => device.numaNodes.length > 0;
  const isNear = ({ numaNodes }: Device) => numaNodes.some((node) => affinity?.includes(node));
  const near = affinity === undefined ? [] : available.filter(isNear);
  const far = available.filter((device) => !near.includes(device));
  const elsewhere = [...far.filter(isPlaced), ...far.filter((device) => !isPlaced(device))];
  const ids = (devices: readonly Device[]) => devices.map(({ id }) => id);
  return { near: ids(near), elsewhere: ids(elsewhere) };
}
