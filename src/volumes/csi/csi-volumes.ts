import { posix } from 'node:path';
import type { Volume } from '../../kinds/index.ts';
import { cancelledError, describeError, KeyedMutex, LinkedController, type Logger } from '../../lib/index.ts';
import type { Pod, PodJournal, PodUid } from '../../pods/index.ts';
import type { Expansions } from '../claims/expansions.ts';
import { removalBlocked } from '../files/remove-volumes.ts';
import type { VolumeFiles } from '../files/volume-files.ts';
import { atStage } from '../manager/mount-attempts.ts';
import { type StorageObserver, timed } from '../manager/volume-metrics.ts';
import { type SetVolumeOwnershipDeps, setVolumeOwnership } from '../ownership/volume-ownership.ts';
import { unusable } from '../projected/payload.ts';
import { endOf, firstNonDirectory } from '../projected/payload-paths.ts';
import type { CsiApi } from './csi-attach.ts';
import { CsiAttempts, type CsiAttemptsDeps } from './csi-attempts.ts';
import { CsiBlock } from './csi-block.ts';
import { isDriverMissing, isRejected, isUnavailable } from './csi-client.ts';
import type { CsiDrivers } from './csi-drivers.ts';
import { CsiMaintenance, csiExpansion, maintenanceWork } from './csi-maintenance.ts';
import { attachmentName, CsiPaths, type CsiVolumePaths, csiPlugin, handleIn } from './csi-paths.ts';
import { type CsiRemovalDeps, removeCsiVolume, removeVolumeDirectory } from './csi-removal.ts';
import {
  type CsiVolume,
  capabilityOf,
  checkMode,
  groupFor,
  podInfo,
  secretsFor,
  tokensFor,
} from './csi-request.ts';
import { mountContext, type SelinuxFacts, withContext } from './csi-selinux.ts';
import { type CsiSpace, csiSpaceAt } from './csi-space.ts';
import { CsiStaging, directoryMode } from './csi-staging.ts';
import { type InlinePaths, inlinePaths, inlineVolume } from './inline-volumes.ts';
import {
  isValid,
  keyOf,
  podVolumeData,
  readVolumeData,
  type VolumeData,
  volumesIn,
  writeVolumeData,
} from './volume-data.ts';

type LabelledVolume = CsiVolume & Pick<VolumeData, 'context'>;

export interface CsiVolumesDeps
  extends CsiAttemptsDeps,
    Pick<CsiRemovalDeps, 'recordedVolume' | 'bootId' | 'reconstruction'>,
    Pick<SetVolumeOwnershipDeps, 'reportOwnership'> {
  readonly rootDir: string;
  readonly podsDir: string;
  readonly nodeName: string;
  /**
   * Whether the controller attaches volumes to this node (`cluster`); attaching by the kubelet is
   * not supported for CSI.
   */
  readonly attaching?: 'cluster' | 'node' | undefined;
  readonly drivers: Pick<CsiDrivers, 'get'>;
  /** SELinux configuration of the machine; undefined on a machine without SELinux. */
  readonly selinux?: SelinuxFacts | undefined;
  /** API requests for CSI; undefined on a node without an API server. */
  readonly api: CsiApi | undefined;
  readonly files: VolumeFiles;
  readonly logger: Logger;
  readonly journal: Pick<PodJournal, 'event'>;
  readonly observe: StorageObserver;
  /**
   * Returns the other mount points of the file system mounted at a directory; undefined to skip
   * this check.
   */
  readonly otherMounts?: ((directory: string) => Promise<readonly string[]>) | undefined;
  readonly expansions: Pick<Expansions, 'atMount' | 'online' | 'forget'>;
  /** Unmaps all block devices of a terminated pod, whichever plugin mapped them. */
  readonly hideDevices: (uid: PodUid, signal: AbortSignal) => Promise<void>;
  /** Whether the volume is recorded for a pod other than the given one. */
  readonly isRecorded: (driver: string, handle: string, besides: PodUid | undefined) => boolean;
  /** Returns the handles of a driver's recorded volumes. */
  readonly recordedHandles: (driver: string) => readonly string[];
  /** Requeues a pod that waited for a driver which has registered. */
  readonly requestSync: (uid: PodUid) => void;
  /** Called when the result of `inUse` has changed. */
  readonly inUseChanged: () => void;
}

/*
 * A volume is staged once for the node, then published to each pod:
 *
 *   recorded on disk ──> staged ──> recorded in the pod directory ──> published
 *                                                                         │ pod terminates
 *   unstaged after its last pod <────────────────────────────────── unpublished
 *
 * Each record is written before the driver call and removed after the reverse call, so that a
 * restarted process finds everything after a crash. The volume's content belongs to the user: only
 * empty directories are ever removed.
 */
/** Mounts and unmounts the volumes of CSI drivers for pods. */
export class CsiVolumes {
  /** The CSI volumes in block mode. */
  readonly devices: CsiBlock;
  readonly #deps: CsiVolumesDeps;
  readonly #paths: CsiPaths;
  /** Serializes operations on the same volume. */
  readonly #lock = new KeyedMutex<string>();
  readonly #attempts: CsiAttempts;
  readonly #staging: CsiStaging;
  readonly #maintenance: CsiMaintenance;
  readonly #removal: CsiRemovalDeps;
  /** Volumes that this process has published, by pod UID. */
  readonly #published = new Map<PodUid, Set<string>>();
  readonly #contexts = new Map<PodUid, Map<string, string>>();
  readonly #desired = new Map<PodUid, Map<string, VolumeData>>();

  constructor(deps: CsiVolumesDeps) {
    this.#deps = deps;
    this.#paths = new CsiPaths(deps.rootDir, deps.podsDir);
    this.#attempts = new CsiAttempts(deps);
    const isDesired = (key: string, besides: PodUid | undefined) =>
      [...this.#desired].some(([uid, volumes]) => uid !== besides && volumes.has(key));
    const paths = this.#paths;
    const released = (data: Pick<VolumeData, 'driver' | 'handle'>) => deps.expansions.forget(keyOf(data));
    this.devices = new CsiBlock({
      ...deps,
      paths,
      attempts: this.#attempts,
      attach: (volume, signal) => this.#staging.attach(volume, signal),
      expand: (...args) => this.#expandAtMount(...args),
      release: (volume) => {
        released(volume);
        this.#staging.markNotInUse(volume);
      },
      hide: deps.hideDevices,
    });
    const desired = () => [...this.#desired.values()].flatMap((volumes) => [...volumes.values()]);
    const handlesOf = (driver: string) => [
      ...desired().flatMap((data) => (data.driver === driver ? [data.handle] : [])),
      ...deps.recordedHandles(driver),
      ...(deps.api?.listed() ?? []).flatMap((name) => handleIn(name, driver) ?? []),
    ];
    const { devices } = this;
    this.#staging = new CsiStaging({
      ...deps,
      paths,
      lock: this.#lock,
      isDesired,
      handlesOf,
      released,
      devices,
    });
    const driver: CsiRemovalDeps['driver'] = (...args) => this.#staging.driver(...args);
    this.#removal = { ...deps, lock: this.#lock, driver };
    const keepUp = maintenanceWork({
      ...deps,
      publishAgain: (...args) => this.#publishAgain(...args),
      expand: (...args) => this.#expandOnline(...args),
    });
    this.#maintenance = new CsiMaintenance({ ...deps, work: keepUp });
  }

  /** Number of drivers that pods wait for. */
  get size(): number {
    return this.#attempts.size;
  }

  /** Path in the pod directory at which the volume is mounted. */
  mountPathOf(uid: PodUid, name: string): string {
    return this.#paths.volume(uid, name).mount;
  }

  /**
   * Returns the driver's stats of the volume mounted at the path; undefined when it is no CSI
   * volume.
   */
  spaceAt(path: string, signal: AbortSignal): Promise<CsiSpace> | undefined {
    const { files, drivers } = this.#deps;
    const device = this.#paths.deviceAt(path);
    if (device !== undefined) return this.devices.spaceOf(device.uid, device.name, signal);
    if (!this.#paths.isVolume(path)) return undefined;
    return csiSpaceAt({ files, drivers, paths: this.#paths }, path, signal);
  }

  /**
   * Returns the SELinux context with which the volume is mounted; undefined when the runtime
   * relabels its files.
   */
  contextOf(uid: PodUid, name: string): string | undefined {
    return this.#contexts.get(uid)?.get(name);
  }

  /**
   * Returns the names of all volumes in use, sorted; undefined until the volumes of previous
   * kubelets were found on disk.
   */
  inUse(): readonly string[] | undefined {
    return this.#staging.inUse();
  }

  /** Requeues the pods that wait for the driver. */
  driverRegistered(driver: string): void {
    for (const uid of this.#attempts.driverRegistered(driver)) this.#deps.requestSync(uid);
    this.#staging.sweepSoon();
  }

  /** Publishes an inline volume to the pod. Idempotent. */
  async setUpInline(pod: Pod, described: Volume, signal: AbortSignal): Promise<void> {
    const volume = inlineVolume(pod, described);
    if (volume?.mode === 'Persistent') await this.setUp(pod, volume, signal);
    if (volume?.mode !== 'Ephemeral') return;
    await this.#setUp(pod, volume, (inner) => this.#publish(pod, volume, {}, inner), signal);
  }

  /** Stages a PersistentVolume and publishes it to the pod. Idempotent. */
  async setUp(pod: Pod, volume: CsiVolume, signal: AbortSignal): Promise<void> {
    const { name } = volume;
    const work = async (inner: AbortSignal) => {
      const publishContext = await this.#staging.attach(volume, inner);
      const labelled = await atStage(
        'MountVolume.MountDevice failed',
        name,
        this.#labelled(pod, volume, inner),
      );
      await atStage(
        'MountVolume.MountDevice failed',
        name,
        this.#staging.stage(pod, labelled, publishContext, inner),
      );
      await atStage('MountVolume.SetUp failed', name, this.#publish(pod, labelled, publishContext, inner));
    };
    await this.#setUp(pod, volume, work, signal);
  }

  /**
   * Schedules republishing and expansion of a running pod's volume, independently of the pod
   * worker.
   */
  maintain(pod: Pod, volume: CsiVolume): void {
    this.#maintenance.schedule(pod, volume);
  }

  /** Schedules republishing and expansion of an inline volume. */
  maintainInline(pod: Pod, described: Volume): void {
    const volume = inlineVolume(pod, described);
    if (volume !== undefined) this.maintain(pod, volume);
  }

  /** Returns the paths of an inline volume; undefined when no CSI driver mounts it. */
  inline(pod: Pod, described: Volume): InlinePaths | undefined {
    return inlinePaths(this.#paths, pod, described);
  }

  /**
   * Unpublishes the pod's volumes once none of its containers runs; the UID is enough. Idempotent.
   * Rejects with VOLUME_REMOVE, which names the remaining drivers and paths. `described`, the
   * volumes in the pod's spec, replaces damaged data files. Volumes without other pods are unstaged
   * afterwards.
   */
  async remove(uid: PodUid, signal: AbortSignal, described: readonly Volume[] = []): Promise<void> {
    const { files } = this.#deps;
    await this.#maintenance.cancel(uid);
    const end = await endOf(files, this.#paths.chainTo(uid));
    if (end === 'foreign') return;
    const directory = this.#paths.ofPod(uid);
    const problems: string[] = [];
    for (const { paths, data } of end === 'ours' ? await volumesIn(files, directory, 'mount') : []) {
      const volume = { uid, name: posix.basename(paths.directory), paths, data, described };
      const removed = await removeCsiVolume(this.#removal, volume, signal).catch((error: unknown) => {
        signal.throwIfAborted();
        problems.push(describeError(error));
        return undefined;
      });
      if (removed === undefined) continue;
      this.#published.get(uid)?.delete(keyOf(removed));
      // A removed volume that this process has not published was mounted by a previous kubelet; it
      // is added here so that it is unstaged too.
      this.#desired.set(uid, (this.#desired.get(uid) ?? new Map()).set(keyOf(removed), removed));
    }
    this.#attempts.forgetPod(uid);
    if (problems.length > 0) throw removalBlocked(problems);
    if (end === 'ours') await files.removeEmptyDirectory(directory);
    this.#published.delete(uid);
    this.#contexts.delete(uid);
    // Volumes that were attached or staged but never published are added, because they have no data
    // file in the pod directory.
    const desired = [...(this.#desired.get(uid)?.values() ?? [])];
    this.#desired.delete(uid);
    for (const data of desired) if (data.mode === 'Persistent') this.#staging.release(data, uid);
  }

  /**
   * Unstages volumes that no pod uses, including those of previous kubelets, until the signal is
   * aborted.
   */
  async run(signal: AbortSignal): Promise<void> {
    using end = new LinkedController(signal);
    const loops = [this.#staging, this.#maintenance].map((loop) =>
      loop.run(end.signal).finally(() => end.abort(cancelledError('The other loop has ended'))),
    );
    await Promise.allSettled(loops);
    await Promise.all(loops);
  }

  async #setUp(
    pod: Pod,
    volume: CsiVolume,
    work: (signal: AbortSignal) => Promise<void>,
    signal: AbortSignal,
  ): Promise<void> {
    const { uid } = pod.metadata;
    const key = keyOf(volume);
    if (this.#published.get(uid)?.has(key) === true) return;
    const { driver, handle, mode, origin } = volume;
    const attempt = async () => {
      this.#desired.set(
        uid,
        (this.#desired.get(uid) ?? new Map()).set(key, { driver, handle, mode, origin }),
      );
      using _held = await this.#lock.acquire(key, signal);
      await work(signal).catch((error: unknown) => this.#unlessPublished(uid, volume, error, signal));
      const stage = 'MountVolume.Setup failed while expanding volume';
      await atStage(stage, volume.name, this.#expandAtMount(pod, volume, signal));
      this.#published.set(uid, (this.#published.get(uid) ?? new Set()).add(key));
    };
    await this.#attempts.run(uid, volume, attempt, signal);
  }

  async #publishAgain(pod: Pod, volume: CsiVolume, signal: AbortSignal): Promise<void> {
    if (volume.shownAs === 'device') {
      await this.devices.publishAgain(pod, volume, signal);
      return;
    }
    using _held = await this.#lock.acquire(keyOf(volume), signal);
    const work = async () => {
      const publishContext = volume.mode === 'Persistent' ? await this.#staging.attach(volume, signal) : {};
      await this.#publish(pod, await this.#labelled(pod, volume, signal), publishContext, signal);
    };
    await atStage('MountVolume.SetUp failed', volume.name, work());
  }

  async #expandOnline(pod: Pod, volume: CsiVolume, signal: AbortSignal): Promise<void> {
    const { expansions } = this.#deps;
    const growing = csiExpansion({ ...this.#deps, paths: this.#paths }, pod, volume);
    if (growing === undefined) return;
    const work = () => expansions.online(pod, growing, signal);
    if (volume.shownAs === 'device') await this.devices.withLock(volume, work, signal);
    else await this.#lock.run(keyOf(volume), work, signal);
  }

  async #expandAtMount(pod: Pod, volume: CsiVolume, signal: AbortSignal): Promise<void> {
    try {
      const growing = csiExpansion({ ...this.#deps, paths: this.#paths }, pod, volume);
      if (growing !== undefined) await this.#deps.expansions.atMount(pod, growing, signal);
    } catch (error) {
      // An unregistered driver does not fail the sync of a pod whose volume a previous kubelet
      // mounted; the expansion is skipped.
      if (!isDriverMissing(error)) throw error;
    }
  }

  /**
   * Rethrows the error, unless the driver or the API server is unavailable and a previous kubelet
   * has already published the volume.
   */
  async #unlessPublished(uid: PodUid, volume: CsiVolume, error: unknown, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const paths = this.#paths.volume(uid, volume.name);
    const data = await readVolumeData(this.#deps.files, paths);
    const isDone = isValid(data) && data.state === 'published' && keyOf(data) === keyOf(volume);
    if (!isUnavailable(error) || !isDone || (await this.#deps.files.mountAt(paths.mount)) === 'none')
      throw error;
    if (data.context !== undefined) this.#recordContext(uid, volume.name, data.context);
  }

  async #labelled(pod: Pod, volume: CsiVolume, signal: AbortSignal): Promise<LabelledVolume> {
    const { selinux, api } = this.#deps;
    if (selinux === undefined) return volume;
    const context = mountContext(selinux, pod, volume, await api?.driver(volume.driver, signal));
    return { ...withContext(volume, context), context };
  }

  async #publish(
    pod: Pod,
    volume: LabelledVolume,
    publishContext: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<void> {
    const { files, api, nodeName } = this.#deps;
    const { uid } = pod.metadata;
    const driver = this.#staging.driver('mounter.SetUpAt failed to get CSI client', volume);
    const spec = await api?.driver(volume.driver, signal);
    if (api !== undefined) checkMode(volume, spec);
    const secrets = await secretsFor(this.#deps.api, 'NodePublishSecretRef', volume.publishSecret, signal);
    const tokens = await tokensFor(api, pod, spec, signal);
    const isSecret = spec?.spec.serviceAccountTokenInSecrets === true;
    const info = spec?.spec.podInfoOnMount === true ? podInfo(pod, volume.mode) : {};
    const paths = await this.#createDirectory(uid, volume.name);
    const before = await readVolumeData(files, paths);
    const attachment = attachmentName(volume.handle, volume.driver, nodeName);
    const boot = await this.#deps.bootId();
    const record = (state: 'asked' | 'published') =>
      writeVolumeData(
        files,
        paths,
        podVolumeData({ ...volume, state, boot }, volume.name, nodeName, attachment),
      );
    await record('asked');
    const isStaged = volume.mode === 'Persistent' && driver.can.has('STAGE_UNSTAGE_VOLUME');
    const request = {
      volumeId: volume.handle,
      publishContext,
      stagingTargetPath: isStaged ? this.#paths.stagedVolume(volume.driver, volume.handle).mount : '',
      targetPath: paths.mount,
      volumeCapability: capabilityOf(volume, driver.can, pod),
      readonly: volume.readOnly,
      secrets: isSecret ? { ...secrets, ...tokens } : secrets,
      volumeContext: { ...volume.attributes, ...info, ...(isSecret ? {} : tokens) },
    };
    await driver.client.publish(request, signal).catch(async (error: unknown) => {
      if (isRejected(error) && before === undefined) await removeVolumeDirectory(files, paths, volume.driver);
      throw error;
    });
    const group = groupFor(pod, volume, driver.can, spec);
    const shown = { name: volume.name, directory: paths.mount };
    if (group !== undefined) await setVolumeOwnership(this.#ownershipDeps(volume), pod, shown, group);
    await record('published');
    if (volume.context !== undefined) this.#recordContext(uid, volume.name, volume.context);
  }

  #recordContext(uid: PodUid, name: string, context: string): void {
    this.#contexts.set(uid, (this.#contexts.get(uid) ?? new Map()).set(name, context));
  }

  async #createDirectory(uid: PodUid, name: string): Promise<CsiVolumePaths> {
    const { files } = this.#deps;
    const paths = this.#paths.volume(uid, name);
    const foreign = await firstNonDirectory(files, [...this.#paths.chainTo(uid), paths.directory]);
    if (foreign !== undefined) throw unusable(`${foreign} is not a directory`);
    await files.makeDirectory(paths.directory, directoryMode);
    return paths;
  }

  #ownershipDeps(volume: CsiVolume): SetVolumeOwnershipDeps {
    const plugins = [csiPlugin(volume)];
    const { files, reportOwnership } = this.#deps;
    return {
      files,
      reportOwnership,
      timed: (work) => timed(this.#deps, 'volume_apply_access_control', plugins, work),
    };
  }
}
