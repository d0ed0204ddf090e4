import {
  Backoff,
  type Clock,
  cancelledError,
  describeError,
  HintLatch,
  LinkedController,
  type Random,
} from '../../lib/index.ts';
import type { Pod, PodJournal, PodUid } from '../../pods/index.ts';
import type { ExpandableVolume } from '../claims/expansions.ts';
import type { CsiApi } from './csi-attach.ts';
import { isDriverMissing } from './csi-client.ts';
import type { CsiDrivers } from './csi-drivers.ts';
import { type CsiPaths, csiPlugin } from './csi-paths.ts';
import type { CsiVolume } from './csi-request.ts';
import { capabilityOf, secretsFor } from './csi-request.ts';
import { keyOf } from './volume-data.ts';

export interface CsiMaintenanceDeps {
  readonly clock: Clock;
  readonly random: Random;
  /**
   * Does the periodic work on a volume. Returns 'again' for a retry; rejects only when the signal
   * is aborted.
   */
  readonly work: (pod: Pod, volume: CsiVolume, signal: AbortSignal) => Promise<'done' | 'again'>;
}

interface Task {
  readonly controller: LinkedController;
  readonly ended: Promise<void>;
}

const retry = { baseMs: 500, maxMs: 122_000 };
const idleMs = 600_000;

/**
 * Maintains the volumes of running pods independently of pod workers, so that an unresponsive
 * driver does not block a pod.
 */
export class CsiMaintenance {
  readonly #deps: CsiMaintenanceDeps;
  /**
   * Volumes whose periodic work is scheduled and not started, by pod UID and volume name;
   * scheduling a volume again replaces the stored pod.
   */
  readonly #pending = new Map<PodUid, Map<string, { readonly pod: Pod; readonly volume: CsiVolume }>>();
  readonly #running = new Map<PodUid, Map<string, Task>>();
  readonly #hints: HintLatch;

  constructor(deps: CsiMaintenanceDeps) {
    this.#deps = deps;
    this.#hints = new HintLatch(deps.clock);
  }

  /** Schedules work on a volume; neither blocks nor fails. */
  schedule(pod: Pod, volume: CsiVolume): void {
    mapIn(this.#pending, pod.metadata.uid).set(volume.name, { pod, volume });
    this.#hints.raise();
  }

  /** Cancels the work on the pod's volumes; none runs once this has resolved. */
  async cancel(uid: PodUid): Promise<void> {
    this.#pending.delete(uid);
    const tasks = [...(this.#running.get(uid)?.values() ?? [])];
    for (const { controller } of tasks) controller.abort(cancelledError('The pod has terminated'));
    await Promise.all(tasks.map(({ ended }) => ended));
  }

  async run(signal: AbortSignal): Promise<void> {
    try {
      for (;;) {
        await this.#hints.wait(idleMs, signal);
        this.#hints.clear();
        this.#startAll(signal);
      }
    } finally {
      const tasks = [...this.#running.values()].flatMap((of) => [...of.values()]);
      await Promise.all(tasks.map(({ ended }) => ended));
      if (this.#pending.size > 0) this.#hints.raise();
    }
  }

  #startAll(signal: AbortSignal): void {
    for (const [uid, volumes] of [...this.#pending])
      for (const [name, { pod, volume }] of [...volumes]) {
        if (this.#running.get(uid)?.has(name) === true) continue;
        forgetIn(this.#pending, uid, name);
        const controller = new LinkedController(signal);
        const ended = this.#work(pod, volume, controller).then(() => {
          forgetIn(this.#running, uid, name);
          if (this.#pending.get(uid)?.has(name) === true) this.#hints.raise();
        });
        mapIn(this.#running, uid).set(name, { controller, ended });
      }
  }

  async #work(pod: Pod, volume: CsiVolume, controller: LinkedController): Promise<void> {
    const { clock, random, work } = this.#deps;
    const backoff = new Backoff(retry, random);
    using held = controller;
    // Yields before the work starts, so that the task is already registered as running.
    await Promise.resolve();
    try {
      while ((await work(pod, volume, held.signal)) === 'again') {
        // When the work is scheduled again, it starts without waiting for the back-off of the
        // failed attempt.
        if (this.#pending.get(pod.metadata.uid)?.has(volume.name) === true) return;
        await clock.sleep(backoff.fail(clock.monotonicMs()), held.signal);
      }
    } catch {
      // An aborted task is not retried; newly scheduled work starts again.
    }
  }
}

function mapIn<K, N, V>(maps: Map<K, Map<N, V>>, key: K): Map<N, V> {
  const found = maps.get(key) ?? new Map<N, V>();
  maps.set(key, found);
  return found;
}

function forgetIn<K, N, V>(maps: Map<K, Map<N, V>>, key: K, name: N): void {
  const found = maps.get(key);
  if (found?.delete(name) === true && found.size === 0) maps.delete(key);
}

export interface CsiExpansionDeps {
  readonly paths: CsiPaths;
  readonly drivers: Pick<CsiDrivers, 'get'>;
  /** API requests for CSI; undefined on a node without an API server. */
  readonly api: CsiApi | undefined;
}

/**
 * Returns how the driver expands a volume of a pod; undefined when the driver does not support
 * expansion. Throws CSI_ABSENT.
 */
export function csiExpansion(
  { paths, drivers, api }: CsiExpansionDeps,
  pod: Pod,
  volume: CsiVolume,
): ExpandableVolume | undefined {
  const { name, claim, readOnly } = volume;
  if (claim === undefined) return undefined;
  const { client, can } = drivers.get(volume.driver, volume.origin);
  if (!can.has('EXPAND_VOLUME')) return undefined;
  const expand = async (bytes: bigint, signal: AbortSignal) => {
    const request = {
      volumeId: volume.handle,
      volumePath: paths.shown(pod.metadata.uid, volume),
      stagingTargetPath: can.has('STAGE_UNSTAGE_VOLUME') ? paths.stagedAt(volume) : '',
      capacityRange: { requiredBytes: bytes, limitBytes: 0n },
      volumeCapability: capabilityOf(volume, can, pod),
      secrets: await secretsFor(api, 'NodeExpandSecretRef', volume.expandSecret, signal),
    };
    await client.expand(request, signal);
  };
  return { name, claim, readOnly, key: keyOf(volume), plugin: csiPlugin(volume), expand };
}

type Work = (pod: Pod, volume: CsiVolume, signal: AbortSignal) => Promise<void>;

export interface MaintenanceWorkDeps {
  /** Reads CSIDriver objects; undefined on a node without an API server. */
  readonly api: Pick<CsiApi, 'driver'> | undefined;
  readonly journal: Pick<PodJournal, 'event'>;
  readonly publishAgain: Work;
  /** Expands the volume on this node to the size of its PersistentVolume. */
  readonly expand: Work;
}

/**
 * Creates the periodic work on a volume of a running pod: republishing and expansion. The published
 * volume stays mounted when the driver fails.
 */
export function maintenanceWork(deps: MaintenanceWorkDeps): CsiMaintenanceDeps['work'] {
  return async (pod, volume, signal) => {
    const ends = [
      await republish(deps, pod, volume, signal).then(...doneUnless(signal)),
      await deps.expand(pod, volume, signal).then(...doneUnless(signal)),
    ];
    return ends.includes('again') ? 'again' : 'done';
  };
}

async function republish(
  { api, journal, publishAgain }: MaintenanceWorkDeps,
  pod: Pod,
  volume: CsiVolume,
  signal: AbortSignal,
): Promise<void> {
  const driver = await api?.driver(volume.driver, signal);
  if (driver?.spec.requiresRepublish !== true) return;
  await publishAgain(pod, volume, signal).catch((error: unknown) => {
    signal.throwIfAborted();
    const reason = volume.shownAs === 'device' ? 'FailedMapVolume' : 'FailedMount';
    journal.event(pod, { type: 'Warning', reason, message: describeError(error) });
    throw error;
  });
}

/**
 * Ignores an unregistered driver, because the next sync of the running pod schedules the work
 * again.
 */
function doneUnless(signal: AbortSignal) {
  const failed = (error: unknown) => {
    signal.throwIfAborted();
    return isDriverMissing(error) ? ('done' as const) : ('again' as const);
  };
  return [() => 'done' as const, failed] as const;
}
