import { type Clock, quantityValue, Waiters } from '../../lib/index.ts';
import { type Pod, type PodUid, podLimits } from '../../pods/index.ts';
import type { DeviceTable } from './device-table.ts';
import type { PodDevices } from './pod-devices.ts';

export interface DeviceWaitsDeps {
  readonly clock: Clock;
  readonly table: DeviceTable;
  readonly podDevices: PodDevices;
  readonly isTerminating: (uid: PodUid) => boolean;
  /** Releases the devices of terminated pods. */
  readonly releaseInactive: () => void;
}

/** The maximum time that a pod waits for terminating pods to release devices. */
const terminationWaitMs = 30_000;
const terminationPollMs = 1_000;

/**
 * Lets a starting pod wait for plugins and terminating pods, so that it is not rejected for devices
 * that are available shortly afterwards.
 */
export class DeviceWaits {
  readonly #deps: DeviceWaitsDeps;
  readonly #waiting = new Waiters<'updated'>();

  constructor(deps: DeviceWaitsDeps) {
    this.#deps = deps;
  }

  /** Wakes the waiting pods after a change of devices or plugins. */
  notify(): void {
    this.#waiting.resolveAll('updated');
  }

  /** Waits until the expected plugins have listed their devices or their time has expired. */
  async forPlugins(resources: readonly string[], signal: AbortSignal): Promise<void> {
    const { table, clock } = this.#deps;
    for (;;) {
      const ms = Math.max(0, ...resources.map((resource) => table.expectedForMs(resource)));
      if (ms === 0) return;
      await this.#waiting.waitWithin(clock, ms, signal);
    }
  }

  /** Waits until terminating pods release their devices, if these would be sufficient. */
  async forTerminatingPods(pod: Pod, resources: readonly string[], signal: AbortSignal): Promise<void> {
    const { clock, releaseInactive, isTerminating } = this.#deps;
    const untilMs = clock.monotonicMs() + terminationWaitMs;
    const isAwaited = (resource: string) =>
      this.#isShort(pod, resource, () => true) &&
      !this.#isShort(pod, resource, (other) => !isTerminating(other));
    releaseInactive();
    while (clock.monotonicMs() < untilMs && resources.some(isAwaited)) {
      await this.#waiting.waitWithin(clock, terminationPollMs, signal);
      releaseInactive();
    }
  }

  /**
   * Whether there are too few devices for the pod, given the devices of the pods that are not
   * terminating.
   */
  #isShort(pod: Pod, resource: string, stays: (uid: PodUid) => boolean): boolean {
    const { table, podDevices } = this.#deps;
    const { uid } = pod.metadata;
    const limit = podLimits(pod, { overhead: 'excluded' }).get(resource);
    const allocatedIds = podDevices.allocated(resource, (other) => other !== uid && stays(other));
    const free = table.healthy(resource).filter(({ id }) => !allocatedIds.has(id)).length;
    return limit !== undefined && quantityValue(limit) > free;
  }
}
