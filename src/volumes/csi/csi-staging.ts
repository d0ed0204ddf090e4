import { posix } from 'node:path';
import { describeError, HintLatch, type KeyedMutex, KubelingError } from '../../lib/index.ts';
import { mayBePodUid, type Pod, type PodUid } from '../../pods/index.ts';
import { atStage, stageError } from '../manager/mount-attempts.ts';
import { timed } from '../manager/volume-metrics.ts';
import { unusable } from '../projected/payload.ts';
import { publishContextOf } from './csi-attach.ts';
import type { CsiBlock } from './csi-block.ts';
import { isRejected } from './csi-client.ts';
import type { CsiDriver } from './csi-drivers.ts';
import { attachedName, type CsiPaths, type CsiVolumePaths, csiPlugin, volumePathsIn } from './csi-paths.ts';
import { removeVolumeDirectory } from './csi-removal.ts';
import { type CsiVolume, capabilityOf, secretsFor } from './csi-request.ts';
import type { CsiVolumesDeps } from './csi-volumes.ts';
import {
  isValid,
  keyOf,
  readVolumeData,
  stagedVolumeData,
  type VolumeData,
  volumesIn,
  writeVolumeData,
} from './volume-data.ts';

export interface CsiStagingDeps
  extends Pick<
    CsiVolumesDeps,
    | 'podsDir'
    | 'nodeName'
    | 'attaching'
    | 'drivers'
    | 'api'
    | 'files'
    | 'clock'
    | 'logger'
    | 'isRecorded'
    | 'inUseChanged'
    | 'observe'
    | 'reconstruction'
    | 'otherMounts'
  > {
  readonly paths: CsiPaths;
  /** Serializes operations on the same volume; keyed by `keyOf`. */
  readonly lock: KeyedMutex<string>;
  /** Whether a pod other than the given one needs the volume. */
  readonly isDesired: (key: string, besides: PodUid | undefined) => boolean;
  /**
   * Returns the handles of a driver's volumes that pods need, that are recorded, or that the node
   * status lists.
   */
  readonly handlesOf: (driver: string) => readonly string[];
  /** Called when the last pod has released the volume. */
  readonly released: (data: VolumeData) => void;
  /** The CSI volumes in block mode. */
  readonly devices: Pick<CsiBlock, 'known' | 'sweep'>;
}

export const directoryMode = 0o750;
const sweepEveryMs = 60_000;
const noAttaching = 'attaching volumes from the kubelet is not supported';
/**
 * Key of the sweep of all block volumes in the map of running unstage tasks; it is empty, because
 * no volume has an empty key.
 */
const allDevices = '';

/**
 * The node-level steps of CSI volumes: waits until they are attached and stages them once for all
 * pods of the node.
 */
export class CsiStaging {
  readonly #deps: CsiStagingDeps;
  /** Volumes that this process has staged. */
  readonly #staged = new Set<string>();
  /** Volumes in use (volumesInUse), which the controller must not detach from this node. */
  readonly #inUse = new Set<string>();
  /** Volumes whose attachment to this node was confirmed. */
  readonly #attached = new Set<string>();
  /** Whether the volumes of previous kubelets have been added to the volumes in use. */
  #reconstruction: 'untaken' | 'taken' = 'untaken';
  /** Volumes that pods have released and that may have to be unstaged. */
  readonly #released = new Map<string, { readonly data: VolumeData; readonly releasedBy: PodUid }>();
  readonly #unstaging = new Map<string, Promise<void>>();
  readonly #reported = new Map<string, string>();
  readonly #sweeps: HintLatch;

  constructor(deps: CsiStagingDeps) {
    this.#deps = deps;
    this.#sweeps = new HintLatch(deps.clock);
  }

  /**
   * Returns the names of all volumes in use, sorted; undefined until the volumes of previous
   * kubelets were found on disk.
   */
  inUse(): readonly string[] | undefined {
    return this.#reconstruction === 'taken' ? [...this.#inUse].toSorted() : undefined;
  }

  /** Starts the next sweep for unused volumes immediately. */
  sweepSoon(): void {
    this.#sweeps.raise();
  }

  /** Unstages volumes that no pod uses, including those of previous kubelets. */
  async run(signal: AbortSignal): Promise<void> {
    await this.#reconstruct();
    this.#deps.inUseChanged();
    try {
      for (;;) {
        await this.#sweeps.wait(sweepEveryMs, signal);
        this.#sweeps.clear();
        await this.#sweep(signal);
      }
    } finally {
      await Promise.all(this.#unstaging.values());
    }
  }

  /**
   * Returns the driver of the volume. Throws CSI_ABSENT, which names the step that needs the
   * driver.
   */
  driver(what: string, { driver, origin }: Pick<VolumeData, 'driver' | 'origin'>): CsiDriver {
    try {
      return this.#deps.drivers.get(driver, origin);
    } catch (error) {
      throw new KubelingError('CSI_ABSENT', `kubernetes.io/csi: ${what}: ${describeError(error)}`);
    }
  }

  /**
   * Marks the volume as in use and returns the publish context of its attachment. Rejects until the
   * volume is attached.
   */
  async attach(volume: CsiVolume, signal: AbortSignal): Promise<Readonly<Record<string, string>>> {
    const { api, clock, nodeName, attaching } = this.#deps;
    if (api === undefined) return {};
    const spec = await atStage(
      'MountVolume.WaitForAttach failed',
      volume.name,
      api.driver(volume.driver, signal),
    );
    const name = attachedName(volume.driver, volume.handle);
    if (spec?.spec.attachRequired === false) {
      this.#changeInUse(() => this.#inUse.delete(name));
      return {};
    }
    if (attaching === 'node') throw stageError('AttachVolume.Attach failed', volume.name, noAttaching);
    this.#changeInUse(() => this.#inUse.size !== this.#inUse.add(name).size);
    const verify = () => publishContextOf({ api, clock, nodeName }, volume, spec?.spec, signal);
    if (this.#attached.has(name)) return await verify();
    const publishContext = await timed(
      this.#deps,
      'verify_controller_attached_volume',
      [csiPlugin(volume)],
      verify,
    );
    this.#attached.add(name);
    return publishContext;
  }

  /** Stages the volume; idempotent. The caller must hold the volume's lock. */
  async stage(
    pod: Pod,
    volume: CsiVolume & Pick<VolumeData, 'context'>,
    publishContext: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<void> {
    const { files, paths, api } = this.#deps;
    const key = keyOf(volume);
    const driver = this.driver('attacher.MountDevice failed to create newCsiDriverClient', volume);
    if ('context' in volume) await this.#rejectOtherContext(pod, volume);
    if (!driver.can.has('STAGE_UNSTAGE_VOLUME')) return;
    await this.#unstageOtherContext(pod, volume, signal);
    if (this.#staged.has(key)) return;
    const secrets = await secretsFor(api, 'NodeStageSecretRef', volume.stageSecret, signal);
    const staged = paths.stagedVolume(volume.driver, volume.handle);
    const before = await readVolumeData(files, staged);
    await files.makeDirectory(staged.directory, directoryMode);
    // Creates the mount directory only where nothing is mounted; a mounted directory is left
    // unchanged.
    if ((await files.mountAt(staged.mount)) === 'none')
      await files.makeDirectory(staged.mount, directoryMode);
    await writeVolumeData(files, staged, stagedVolumeData(volume));
    const request = {
      volumeId: volume.handle,
      publishContext,
      stagingTargetPath: staged.mount,
      volumeCapability: capabilityOf(volume, driver.can, pod),
      secrets,
      volumeContext: volume.attributes,
    };
    await driver.client.stage(request, signal).catch(async (error: unknown) => {
      if (isRejected(error) && before === undefined)
        await removeVolumeDirectory(files, staged, volume.driver);
      throw error;
    });
    this.#staged.add(key);
  }

  /**
   * Unstages a volume that was staged with another SELinux context, because it cannot be published
   * with a different one.
   */
  async #unstageOtherContext(
    { metadata: { uid } }: Pod,
    volume: CsiVolume & Pick<VolumeData, 'context'>,
    signal: AbortSignal,
  ): Promise<void> {
    const { driver, handle, mode, context, origin } = volume;
    const staged = this.#deps.paths.stagedVolume(driver, handle);
    const before = await readVolumeData(this.#deps.files, staged);
    if (!isValid(before) || before.context === context) return;
    if (!(await this.#isUsed(before, uid)))
      await this.#unstageUnused({ driver, handle, mode, origin }, uid, signal);
    else throw conflicting(volume, before.context);
  }

  /**
   * Rejects when the volume is published to another pod with another SELinux context, even if the
   * driver does not stage.
   */
  async #rejectOtherContext(
    { metadata: { uid } }: Pod,
    volume: CsiVolume & Pick<VolumeData, 'context'>,
  ): Promise<void> {
    const conflicts = (await this.#publishedTo(uid)).filter((other) => keyOf(other) === keyOf(volume));
    const unlike = conflicts.find(({ context }) => context !== volume.context);
    if (unlike !== undefined) throw conflicting(volume, unlike.context);
  }

  /**
   * Called when a pod releases the volume. The volume is unstaged later when no other pod uses it;
   * the pod does not wait for that.
   */
  release(data: VolumeData, releasedBy: PodUid): void {
    this.#released.set(keyOf(data), { data, releasedBy });
    this.#sweeps.raise();
  }

  /** Unstages a volume that no pod uses. Never rejects: failures are logged and retried. */
  async #unstage(data: VolumeData, releasedBy: PodUid | undefined, signal: AbortSignal): Promise<void> {
    try {
      using _held = await this.#deps.lock.acquire(keyOf(data), signal);
      await this.#unstageUnused(data, releasedBy, signal);
    } catch (error) {
      if (!signal.aborted) this.#reportUnstageFailure(data, error);
    }
  }

  async #unstageUnused(data: VolumeData, releasedBy: PodUid | undefined, signal: AbortSignal): Promise<void> {
    const { files, paths } = this.#deps;
    if (await this.#isUsed(data, releasedBy)) return;
    const staged = paths.stagedVolume(data.driver, data.handle);
    if ((await readVolumeData(files, staged)) !== undefined) {
      await this.#rejectReferenced(data, staged);
      const driver = this.driver('attacher.UnmountDevice failed to create newCsiDriverClient', data);
      this.#staged.delete(keyOf(data));
      const work = () => driver.client.unstage(data.handle, staged.mount, signal);
      if (driver.can.has('STAGE_UNSTAGE_VOLUME'))
        await timed(this.#deps, 'unmount_device', [csiPlugin(data)], work);
      await removeVolumeDirectory(files, staged, data.driver);
    }
    this.#reported.delete(keyOf(data));
    this.#deps.released(data);
    this.markNotInUse(data);
  }

  /**
   * Rejects when the staged file system is also mounted in a pod directory whose data file is
   * missing, damaged or names this volume.
   */
  async #rejectReferenced(data: VolumeData, { mount }: CsiVolumePaths): Promise<void> {
    const { files, paths, otherMounts } = this.#deps;
    const references: string[] = [];
    for (const other of (await otherMounts?.(mount)) ?? []) {
      if (!paths.isVolume(other)) continue;
      const published = await readVolumeData(files, volumePathsIn(posix.dirname(other), 'mount'));
      if (!isValid(published) || keyOf(published) === keyOf(data)) references.push(other);
    }
    if (references.length > 0)
      throw unusable(
        `the device mount path ${JSON.stringify(mount)} is still mounted by other references [${references.join(' ')}]`,
      );
  }

  /** Removes the volume from volumesInUse, so that the controller may detach it. */
  markNotInUse({ driver, handle }: Pick<VolumeData, 'driver' | 'handle'>): void {
    this.#attached.delete(attachedName(driver, handle));
    this.#changeInUse(() => this.#inUse.delete(attachedName(driver, handle)));
  }

  async #isUsed(data: VolumeData, releasedBy: PodUid | undefined): Promise<boolean> {
    const { isRecorded, isDesired } = this.#deps;
    const key = keyOf(data);
    if (isDesired(key, releasedBy) || isRecorded(data.driver, data.handle, releasedBy)) return true;
    return (await this.#publishedTo(releasedBy)).some((published) => keyOf(published) === key);
  }

  /** Returns the volumes published to other pods, according to their data files. */
  async #publishedTo(besides?: PodUid): Promise<readonly VolumeData[]> {
    const { files, podsDir, paths } = this.#deps;
    const pods = (await files.names(podsDir)).filter(mayBePodUid).filter((uid) => uid !== besides);
    const found = await Promise.all(pods.map((uid) => volumesIn(files, paths.ofPod(uid), 'mount')));
    return found.flat().flatMap(({ data }) => (isValid(data) ? [data] : []));
  }

  #changeInUse(change: () => boolean): void {
    if (change()) this.#deps.inUseChanged();
  }

  async #reconstruct(): Promise<void> {
    const { files, podsDir, paths, reconstruction, devices } = this.#deps;
    const add = (data: VolumeData | 'damaged' | undefined) => {
      if (this.#reconstruction === 'untaken')
        reconstruction('reconstructed', isValid(data) ? 'success' : 'failure');
      if (isValid(data) && data.mode === 'Persistent')
        this.#inUse.add(attachedName(data.driver, data.handle));
    };
    for (const uid of (await files.names(podsDir)).filter(mayBePodUid))
      for (const { data } of await volumesIn(files, paths.ofPod(uid), 'mount')) add(data);
    for (const { data } of await this.#allStaged()) add(data);
    for (const data of await devices.known()) add({ ...data, mode: 'Persistent' });
    this.#reconstruction = 'taken';
  }

  async #allStaged() {
    const { files, paths } = this.#deps;
    const directories = (await files.names(paths.staged)).map((driver) => `${paths.staged}/${driver}`);
    const ofDrivers = directories.filter((directory) => directory !== paths.devices);
    const found = await Promise.all(ofDrivers.map((directory) => volumesIn(files, directory, 'globalmount')));
    return found.flat();
  }

  async #sweep(signal: AbortSignal): Promise<void> {
    const staged = await this.#allStaged();
    for (const { paths, data: found } of staged) {
      const data = isValid(found) ? found : await this.#recoverData(paths);
      if (data === undefined) await this.#forceClean(paths);
      else if (!this.#deps.lock.isHeld(keyOf(data))) this.#startUnstage(data, undefined, signal);
    }
    for (const { data, releasedBy } of [...this.#released.values()])
      this.#startUnstage(data, releasedBy, signal);
    this.#sweepDevices(signal);
  }

  /**
   * Recovers the data of a staged volume whose data file is damaged: the driver from the path, and
   * the handle by hashing all known handles.
   */
  async #recoverData(staged: CsiVolumePaths): Promise<VolumeData | undefined> {
    const { paths, handlesOf } = this.#deps;
    const driver = posix.basename(posix.dirname(staged.directory));
    const ofPods = (await this.#publishedTo()).filter((data) => data.driver === driver);
    const handles = [...handlesOf(driver), ...ofPods.map(({ handle }) => handle)];
    const handle = paths.handleAt(staged, handles);
    return handle === undefined ? undefined : { driver, handle, mode: 'Persistent' };
  }

  /**
   * Removes the staging directory of a volume whose handle is unknown, unless it is mounted,
   * because only the volume's driver may unmount it.
   */
  async #forceClean(staged: CsiVolumePaths): Promise<void> {
    const { files, reconstruction, logger } = this.#deps;
    const driver = posix.basename(posix.dirname(staged.directory));
    try {
      await removeVolumeDirectory(files, staged, driver);
      reconstruction('force-cleaned', 'success');
      logger.info('Removed the directory of an unknown volume', { driver, place: staged.directory });
    } catch (error) {
      const because = `${staged.data} is missing or damaged, so that nobody knows the handle: ${describeError(error)}`;
      if (this.#reported.get(staged.directory) === because) return;
      this.#reported.set(staged.directory, because);
      reconstruction('force-cleaned', 'failure');
      logger.warn('Failed to unstage volume, unmount it manually', { driver, because });
    }
  }

  #sweepDevices(signal: AbortSignal): void {
    if (this.#unstaging.has(allDevices)) return;
    const work = this.#deps.devices.sweep(signal).catch(() => {
      // A sweep that was aborted needs no log message.
    });
    this.#unstaging.set(
      allDevices,
      work.then(() => void this.#unstaging.delete(allDevices)),
    );
  }

  /**
   * Starts to unstage the volume without waiting, so that an unresponsive driver delays only its
   * own volumes.
   */
  #startUnstage(data: VolumeData, releasedBy: PodUid | undefined, signal: AbortSignal): void {
    const key = keyOf(data);
    if (this.#unstaging.has(key)) return;
    const released = this.#released.get(key);
    this.#released.delete(key);
    const work = this.#unstage(data, releasedBy ?? released?.releasedBy, signal).then(() => {
      this.#unstaging.delete(key);
      if (this.#released.has(key)) this.#sweeps.raise();
    });
    this.#unstaging.set(key, work);
  }

  /** Logs an unstage failure once per reason; later sweeps retry. */
  #reportUnstageFailure(data: VolumeData, error: unknown): void {
    const because = describeError(error);
    if (this.#reported.get(keyOf(data)) === because) return;
    this.#reported.set(keyOf(data), because);
    const { driver, handle } = data;
    this.#deps.logger.warn('Failed to unstage volume, will retry', { driver, handle, because });
  }
}

function conflicting(
  { name, context }: CsiVolume & Pick<VolumeData, 'context'>,
  before: string | undefined,
): KubelingError {
  const [left, other] = [before ?? '', context ?? ''].map((label) => JSON.stringify(label));
  return unusable(`conflicting SELinux labels of volume ${name}: ${left} and ${other}`);
}
