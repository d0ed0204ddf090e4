import { posix } from 'node:path';
import { describeError, KeyedMutex, KubelingError, type Logger } from '../../lib/index.ts';
import type { Pod, PodUid } from '../../pods/index.ts';
import { removalBlocked } from '../files/remove-volumes.ts';
import type { VolumeFiles } from '../files/volume-files.ts';
import { atStage, stageError } from '../manager/mount-attempts.ts';
import { checkedName, PodVolumePaths } from '../projected/payload-paths.ts';
import type { CsiApi } from './csi-attach.ts';
import type { CsiAttempts } from './csi-attempts.ts';
import {
  type BlockData,
  BlockDataFiles,
  type CsiBlockRemovalDeps,
  removeDevice,
} from './csi-block-removal.ts';
import { isUnavailable } from './csi-client.ts';
import type { CsiDriver, CsiDrivers } from './csi-drivers.ts';
import type { CsiPaths } from './csi-paths.ts';
import { type CsiVolume, capabilityOf, podInfo, secretsFor, tokensFor } from './csi-request.ts';
import { type CsiSpace, queryVolumeStats } from './csi-space.ts';

export interface CsiBlockDeps extends Pick<CsiBlockRemovalDeps, 'recordedVolume' | 'clock' | 'observe'> {
  readonly paths: CsiPaths;
  readonly nodeName: string;
  readonly drivers: Pick<CsiDrivers, 'get'>;
  /** API requests for CSI; undefined on a node without an API server. */
  readonly api: CsiApi | undefined;
  readonly files: VolumeFiles;
  readonly logger: Logger;
  readonly attempts: Pick<CsiAttempts, 'run'>;
  /** Waits until the volume is attached and returns the publish context. */
  readonly attach: (volume: CsiVolume, signal: AbortSignal) => Promise<Readonly<Record<string, string>>>;
  /** Expands the volume on this node before the pod gets it. */
  readonly expand: (pod: Pod, volume: CsiVolume, signal: AbortSignal) => Promise<void>;
  /** Whether the volume is recorded for a pod other than the given one. */
  readonly isRecorded: (driver: string, handle: string, besides: PodUid | undefined) => boolean;
  /** Removes the volume from volumesInUse, so that the controller may detach it. */
  readonly release: (volume: BlockData) => void;
  /** Unmaps all block devices of a terminated pod, whichever plugin mapped them. */
  readonly hide: (uid: PodUid, signal: AbortSignal) => Promise<void>;
}

/** Progress of setting up a volume for a pod. */
type Stage = 'published' | 'ready';

const directoryMode = 0o750;

/*
 * A volume's data file is written, the volume is staged once for the node, and it is published to
 * each pod at a file:
 *
 *   <volume>/data/vol_data.json ──> staging/<volume> ──> publish/<volume>/<pod>
 *
 * The steps are undone in reverse order; staging path and data file are removed with the last pod.
 */
/** Sets up CSI volumes in block mode. */
export class CsiBlock {
  readonly #deps: CsiBlockDeps;
  readonly #dataFiles: BlockDataFiles;
  /** Serializes operations on the same volume. */
  readonly #lock = new KeyedMutex<string>();
  /** Volumes that this process has staged and published. */
  readonly #staged = new Set<string>();
  readonly #published = new Map<PodUid, Map<string, Stage>>();
  /** Volumes that pods wait for or use, by pod UID. */
  readonly #desired = new Map<PodUid, Set<string>>();
  /** Last logged removal failure of each volume. */
  readonly #reported = new Map<string, string>();

  constructor(deps: CsiBlockDeps) {
    this.#deps = deps;
    this.#dataFiles = new BlockDataFiles(deps.files, deps.paths, deps.nodeName);
  }

  /** Returns the data of all volumes on disk, including those of previous kubelets. */
  async known(): Promise<readonly BlockData[]> {
    const found = await Promise.all(
      (await this.#dataFiles.names()).map((name) => this.#dataFiles.read(name)),
    );
    return found.filter((data) => data !== undefined && data !== 'damaged');
  }

  /**
   * Stages and publishes the device, then maps it for the pod by calling `show` with the path of
   * the device. Idempotent. Rejects with the failed step.
   */
  async setUp(
    pod: Pod,
    volume: CsiVolume,
    show: (path: string) => Promise<void>,
    signal: AbortSignal,
  ): Promise<void> {
    const { paths, attempts, expand } = this.#deps;
    const { uid } = pod.metadata;
    const name = this.#checked(volume.name);
    const work = async () => {
      using _held = await this.#lock.acquire(name, signal);
      this.#desired.set(uid, (this.#desired.get(uid) ?? new Set()).add(name));
      if (this.#stageOf(uid, name) === undefined) await this.#publishUnlessMapped(pod, volume, signal);
      await show(paths.publishedDevice(name, uid));
      const stage = 'MapVolume.MarkVolumeAsMounted failed while expanding volume';
      await atStage(stage, name, expand(pod, volume, signal));
      this.#reached(uid, name, 'ready');
    };
    if (this.#stageOf(uid, name) !== 'ready') await attempts.run(uid, volume, work, signal);
  }

  /** Calls NodePublishVolume again for a running pod when the driver requires republishing. */
  async publishAgain(pod: Pod, volume: CsiVolume, signal: AbortSignal): Promise<void> {
    const name = this.#checked(volume.name);
    using _held = await this.#lock.acquire(name, signal);
    const context = await asMapping(this.#deps.attach(volume, signal));
    await atStage('MapVolume.MapPodDevice failed', name, this.#publish(pod, volume, context, signal));
  }

  /** Returns the driver's stats of the volume; empty when it reports none. */
  async spaceOf(uid: PodUid, name: string, signal: AbortSignal): Promise<CsiSpace> {
    const { paths, drivers } = this.#deps;
    const data = await this.#dataFiles.read(name);
    if (data === undefined || data === 'damaged') return {};
    const at = { shown: paths.publishedDevice(name, uid), staged: paths.stagedDevice(name) };
    return await queryVolumeStats(drivers, data, at, signal);
  }

  /** Runs the work while holding the volume's lock. */
  async withLock<T>({ name }: CsiVolume, work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    return await this.#lock.run(name, work, signal);
  }

  /**
   * Unpublishes the pod's devices after they were unmapped, and unstages volumes without pods.
   * Idempotent. Rejects with VOLUME_REMOVE, which names the drivers of the remaining volumes.
   */
  async remove(uid: PodUid, signal: AbortSignal): Promise<void> {
    const problems: string[] = [];
    this.#desired.delete(uid);
    for (const name of await this.#dataFiles.names()) {
      using _held = await this.#lock.acquire(name, signal);
      await this.#removeDevice(name, uid, signal).catch((error: unknown) => {
        signal.throwIfAborted();
        problems.push(describeError(error));
      });
    }
    if (problems.length > 0) throw removalBlocked(problems);
    this.#published.delete(uid);
  }

  /**
   * Removes the devices of orphaned pods and unstages volumes without pods. Rejects only when the
   * signal is aborted.
   */
  async sweep(signal: AbortSignal): Promise<void> {
    const names = await this.#dataFiles.names();
    for (const known of [...this.#reported.keys()]) if (!names.includes(known)) this.#reported.delete(known);
    // Volumes are processed concurrently, so that an unresponsive driver blocks only its own
    // volumes.
    const free = names.filter((name) => !this.#lock.isHeld(name));
    const sweeps = free.map((name) => this.#lock.run(name, () => this.#sweepVolume(name, signal), signal));
    const ends = await Promise.allSettled(sweeps);
    signal.throwIfAborted();
    for (const [index, end] of ends.entries())
      if (end.status === 'rejected') this.#reportRemovalFailure(free[index] ?? '', describeError(end.reason));
  }

  async #sweepVolume(name: string, signal: AbortSignal): Promise<void> {
    const pods = await this.#dataFiles.podsOf(name);
    for (const uid of pods) {
      if (!(await this.#isOrphaned(uid, name))) continue;
      await this.#deps.hide(uid, signal);
      await this.#removeDevice(name, uid, signal);
    }
    if (pods.length === 0) await this.#removeDevice(name, undefined, signal);
  }

  /**
   * Whether the device belongs to a pod that does not exist on this node any more; the devices of
   * an existing pod are removed with the pod.
   */
  async #isOrphaned(uid: PodUid, name: string): Promise<boolean> {
    const { files, paths, recordedVolume } = this.#deps;
    if (this.#desired.has(uid) || recordedVolume(uid, name) !== undefined) return false;
    return (await files.kindAt(new PodVolumePaths(paths.podsDir, uid).pod)) === undefined;
  }

  /** Logs a removal failure once per reason; later sweeps retry. */
  #reportRemovalFailure(volume: string, because: string): void {
    if (this.#reported.get(volume) === because) return;
    this.#reported.set(volume, because);
    this.#deps.logger.warn('Failed to remove orphaned block volume, will retry', {
      volume,
      because,
    });
  }

  /**
   * Publishes the device; while the driver or the API server is unavailable, a device mapped by a
   * previous kubelet is accepted.
   */
  async #publishUnlessMapped(pod: Pod, volume: CsiVolume, signal: AbortSignal): Promise<void> {
    const { files, paths } = this.#deps;
    const { name, driver, handle } = volume;
    const read = await this.#dataFiles.read(name);
    const before = read === 'damaged' ? undefined : read;
    const isSame = before?.driver === driver && before.handle === handle;
    if (before !== undefined && !isSame && (await this.#dataFiles.podsOf(name)).length > 0) {
      const why = `pods still have the volume ${before.handle} of the CSI driver ${before.driver} that was called so`;
      throw stageError('MapVolume.SetUpDevice failed', name, why);
    }
    await this.#stageAndPublish(pod, volume, signal).catch(async (error: unknown) => {
      signal.throwIfAborted();
      // While a device is mapped, its publish call is known to have succeeded. After a reboot the
      // bound file is only a regular file, which does not count as mapped.
      const shown = posix.join(paths.device(name).dev, pod.metadata.uid);
      const isShown = (await files.kindAt(shown)) === 'other';
      if (!isUnavailable(error) || !isSame || !isShown) throw error;
    });
  }

  async #stageAndPublish(pod: Pod, volume: CsiVolume, signal: AbortSignal): Promise<void> {
    const { name } = volume;
    await atStage('MapVolume.SetUpDevice failed', name, this.#dataFiles.write(volume));
    const context = await asMapping(this.#deps.attach(volume, signal));
    await atStage('MapVolume.SetUpDevice failed', name, this.#stage(pod, volume, context, signal));
    await atStage('MapVolume.MapPodDevice failed', name, this.#publish(pod, volume, context, signal));
    this.#reached(pod.metadata.uid, name, 'published');
  }

  #stageOf(uid: PodUid, name: string): Stage | undefined {
    return this.#published.get(uid)?.get(name);
  }

  #reached(uid: PodUid, name: string, stage: Stage): void {
    this.#published.set(uid, (this.#published.get(uid) ?? new Map()).set(name, stage));
  }

  async #stage(
    pod: Pod,
    volume: CsiVolume,
    publishContext: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<void> {
    const { files, api, paths } = this.#deps;
    const driver = this.#driver(volume);
    if (this.#staged.has(volume.name) || !driver.can.has('STAGE_UNSTAGE_VOLUME')) return;
    const secrets = await secretsFor(api, 'NodeStageSecretRef', volume.stageSecret, signal);
    const stagingTargetPath = paths.stagedDevice(volume.name);
    await files.makeDirectory(stagingTargetPath, directoryMode);
    const request = {
      volumeId: volume.handle,
      publishContext,
      stagingTargetPath,
      volumeCapability: capabilityOf(volume, driver.can, pod),
      secrets,
      volumeContext: volume.attributes,
    };
    await driver.client.stage(request, signal);
    this.#staged.add(volume.name);
  }

  async #publish(
    pod: Pod,
    volume: CsiVolume,
    publishContext: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<void> {
    const { files, api, paths } = this.#deps;
    const driver = this.#driver(volume);
    const spec = await api?.driver(volume.driver, signal);
    const secrets = await secretsFor(api, 'NodePublishSecretRef', volume.publishSecret, signal);
    const tokens = await tokensFor(api, pod, spec, signal);
    const isSecret = spec?.spec.serviceAccountTokenInSecrets === true;
    const info = spec?.spec.podInfoOnMount === true ? podInfo(pod, volume.mode) : {};
    await files.makeDirectory(paths.publishedDevices(volume.name), directoryMode);
    const isStaged = driver.can.has('STAGE_UNSTAGE_VOLUME');
    const request = {
      volumeId: volume.handle,
      publishContext,
      stagingTargetPath: isStaged ? paths.stagedDevice(volume.name) : '',
      targetPath: paths.publishedDevice(volume.name, pod.metadata.uid),
      volumeCapability: capabilityOf(volume, driver.can, pod),
      readonly: volume.readOnly,
      secrets: isSecret ? { ...secrets, ...tokens } : secrets,
      volumeContext: { ...volume.attributes, ...info, ...(isSecret ? {} : tokens) },
    };
    await driver.client.publish(request, signal);
  }

  /**
   * Removes the device of a pod, or the volume without pods; the caller must hold the volume's
   * lock.
   */
  async #removeDevice(name: string, uid: PodUid | undefined, signal: AbortSignal): Promise<void> {
    const isDesired = (data: BlockData | undefined) =>
      [...this.#desired.values()].some((names) => names.has(name)) ||
      (data !== undefined && this.#deps.isRecorded(data.driver, data.handle, uid));
    const isRequested = uid !== undefined && this.#stageOf(uid, name) !== undefined;
    const volume = { name, uid, isRequested, isDesired };
    const driver = (data: BlockData) => this.#driver(data);
    const deps = {
      ...this.#deps,
      records: this.#dataFiles,
      driver,
      unstaged: () => this.#staged.delete(name),
    };
    const removed = await removeDevice(deps, volume, signal);
    if (uid !== undefined) this.#published.get(uid)?.delete(name);
    if (removed.left === 'nothing' && removed.data !== undefined) this.#deps.release(removed.data);
  }

  #driver({ driver, origin }: Pick<BlockData, 'driver' | 'origin'>): CsiDriver {
    try {
      return this.#deps.drivers.get(driver, origin);
    } catch (error) {
      const message = `kubernetes.io/csi: blockMapper failed to get CSI client: ${describeError(error)}`;
      throw new KubelingError('CSI_ABSENT', message);
    }
  }

  #checked(name: string): string {
    if (this.#deps.paths.isShared(name))
      throw stageError('MapVolume.SetUpDevice failed', name, 'no volume of the mode Block can be called so');
    return checkedName(name);
  }
}

/**
 * Changes the step named in an error from MountVolume to MapVolume, which is the step's name for
 * block volumes.
 */
async function asMapping<T>(work: Promise<T>): Promise<T> {
  return await work.catch((error: unknown) => {
    if (!(error instanceof KubelingError) || typeof error.details['stage'] !== 'string') throw error;
    const details = { ...error.details, stage: error.details['stage'].replace(/^MountVolume/, 'MapVolume') };
    const message = error.message.replace(/^MountVolume/, 'MapVolume');
    throw new KubelingError(error.code, message, { details, cause: error });
  });
}
